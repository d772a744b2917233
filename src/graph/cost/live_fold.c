/* What backward reads, and what is kept for it: the program run on the names of values.
 *
 * First the later phases say which names of forward they read, then forward says which value each name stands
 * for. Both run a loop until its iterations are alike. A value counts under the first name that is read; then
 * it is settled, as is what is there anyway. */
#include "graph/cost/live_int.h"

/* What the walk over an item takes, in operations on formulas: it may be run many times. */
enum { OPERATIONS_OF_ITEM = 24 };

/* ---- regions ------------------------------------------------------------------------------------------- */

/* What a view or a move makes of a value is read in its place: only where nothing does, it is the reader. */
static void note_reader(etch_live_name *name, const etch_live_item *item)
{
    const bool is_weak = name->reader && name->reader->row->role == ETCH_ROLE_FREE;
    if (!name->reader || (is_weak && !item->shows))
        name->reader = item->op;
}

static void read_step(etch_live_walk *w, const etch_live_item *item, bool is_here, etch_live_counts *out)
{
    etch_live_program *p = w->program;
    for (uint32_t i = 0; i < item->ins.count; i++) {
        const uint32_t value = etch_live_value_of(w, item->ins.at[i]);
        etch_live_name *read = &p->names[etch_live_under(p, item->ins.at[i])];
        if (!read->order && !item->shows)
            read->order = ++p->read_count;
        if (!is_here || !etch_live_is_forward(value))
            continue;
        note_reader(&p->names[value & ~ETCH_LIVE_FORWARD], item);
        if (item->reads)
            etch_live_add(w->sym, w->arena, out, value & ~ETCH_LIVE_FORWARD, etch_int(w->sym, 1));
    }
    for (uint32_t i = 0; i < item->outs.count; i++)
        w->now[item->outs.at[i]] = ETCH_LIVE_SETTLED;
}

/* A part of what is there anyway is there as well. */
static bool is_new(const etch_live_walk *w, const etch_live_item *item, uint32_t name)
{
    return w->program->names[name].counts &&
           !(item->is_brought && etch_live_value_of(w, item->ins.at[0]) == ETCH_LIVE_SETTLED);
}

static void make_step(etch_live_walk *w, const etch_live_item *item, bool is_here, etch_live_counts *out)
{
    for (uint32_t i = 0; !item->shows && i < item->outs.count; i++) {
        const uint32_t name = item->outs.at[i];
        const bool counts = is_new(w, item, name);
        etch_live_bind(w, name, counts ? etch_live_value_new(w, name) : ETCH_LIVE_SETTLED, is_here, out);
    }
}

/* Does the stage run what is at the position? */
static bool runs_at(const etch_live_walk *w, etch_position position)
{
    return !w->program->view || position == ETCH_NO_POSITION || etch_stage_holds(w->program->view, position);
}

static void run_region(etch_live_walk *w, const etch_live_region *region, bool is_here, etch_live_counts *out)
{
    for (uint32_t i = 0; i < region->items.count && !w->answers->is_open; i++) {
        const etch_live_item *item = &region->items.at[i];
        etch_sym_charge(w->sym, OPERATIONS_OF_ITEM);
        const bool is_top = !region->of->loop;
        const bool here = is_here && (!is_top || !w->is_derived || item->loop || runs_at(w, item->position));
        if (item->loop)
            etch_live_run_loop(w, item->loop, is_top, here, out);
        else if (w->is_derived)
            read_step(w, item, here, out);
        else
            make_step(w, item, here, out);
    }
}

/* ---- the program --------------------------------------------------------------------------------------- */

static etch_live_walk begin(etch_live_program *p, etch_live_answers *answers)
{
    etch_live_walk w = {.program = p,
                        .sym = p->sym,
                        .arena = p->arena,
                        .answers = answers,
                        .run_region = run_region,
                        .now = ETCH_NEW_ARRAY(p->arena, p->name_count, uint32_t)};
    ETCH_PUSH(w.arena, &w.values, (etch_live_value){.is_settled = true});
    return w;
}

static void find_reads(etch_live_walk *w)
{
    etch_live_program *p = w->program;
    etch_live_counts reads = {0};
    for (uint32_t i = 0; i < p->name_count; i++)
        p->names[i].read = false;
    w->is_derived = true;
    run_region(w, p->backward, true, &reads);
    etch_live_settle_reads(w, NULL, &reads);
    w->is_derived = false;
}

static void fold(void *data, etch_live_answers *answers, etch_live_counts *out)
{
    etch_live_program *p = data;
    etch_live_walk w = begin(p, answers);
    find_reads(&w);
    run_region(&w, p->forward, true, out);
}

void etch_live_kept(etch_live_program *p, etch_live_counts *out)
{
    etch_live_answers answers = {.sym = p->sym, .arena = p->arena};
    etch_live_decide(&answers, fold, p, out);
}
