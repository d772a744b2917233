#include "exec_traffic.h"
#include "exec_ranks.h"

#include "graph/step/kernel.h"

#include <string.h>

const exec_convention exec_conventions[] = {
    {"gather", true, false, "rows of a table by occurrence, not all of it"},
    {"scatter", false, true, "rows are added to the table, which is not written as a whole"},
    {"slice_dx", false, true, "the first elements are added to, the others are not written"},
    {"append", false, true, "a cache is written behind what it holds"},
    {NULL, false, false, NULL},
};

/* What a kernel has of a value. */
typedef struct moved {
    const etch_value *value; /* behind renames; of a gradient: what is added to it */
    const etch_tensor *gradient;
    bool is_rows;   /* some rows of it, once for each occurrence */
    bool is_wanted; /* a first result, which is written even when nobody reads it */
    uint64_t bytes;
    uint64_t again; /* of what is written, what is read as well, as later runs of a ring go on from it */
} moved;

typedef ETCH_VEC(moved) moved_list;

typedef struct counted {
    const etch_kernel *kernel;
    bool is_run;
    moved_list reads, writes, adds;
} counted;

struct exec_traffic {
    etch_arena *arena;
    const etch_placed *placed;
    exec_mesh mesh;
    counted *kernels; /* all, in any order */
    uint32_t count;
    counted **of_step;   /* by step id; NULL: no kernel */
    bool *seen;          /* by step id: it was run before */
    bool *used, *leaves; /* by value id, behind views: something reads it; outside of its kernel */
    exec_rounds rounds;
};

/* ---- the kernels ------------------------------------------------------------------------------------- */

static uint32_t kernels_in(const etch_placed_region *region)
{
    uint32_t count = region->kernels.count;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            count += kernels_in(loop->bodies.at[k]);
    }
    return count;
}

static void list_kernels(exec_traffic *t, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->kernels.count; i++) {
        const etch_kernel *kernel = region->kernels.at[i];
        counted *c = &t->kernels[t->count++];
        c->kernel = kernel;
        for (uint32_t k = 0; k < kernel->steps.count; k++)
            t->of_step[kernel->steps.at[k]->id] = c;
    }
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            list_kernels(t, loop->bodies.at[k]);
    }
}

exec_traffic *exec_traffic_new(etch_arena *arena, const etch_placed *placed)
{
    exec_traffic *t = ETCH_NEW(arena, exec_traffic);
    *t = (exec_traffic){.arena = arena,
                        .placed = placed,
                        .of_step = ETCH_NEW_ARRAY(arena, placed->step_count, counted *),
                        .seen = ETCH_NEW_ARRAY(arena, placed->step_count, bool),
                        .mesh = exec_mesh_of(placed->training->graph, placed->plan),
                        .used = ETCH_NEW_ARRAY(arena, placed->value_count, bool),
                        .leaves = ETCH_NEW_ARRAY(arena, placed->value_count, bool)};
    const uint32_t count =
        kernels_in(placed->forward) + (placed->backward ? kernels_in(placed->backward) : 0);
    t->kernels = ETCH_NEW_ARRAY(arena, count, counted);
    exec_mesh_note_slots(&t->mesh, placed);
    list_kernels(t, placed->forward);
    if (placed->backward)
        list_kernels(t, placed->backward);
    return t;
}

/* ---- values ------------------------------------------------------------------------------------------ */

static bool is_view(const etch_step *step)
{
    return step && step->op && step->collective == ETCH_NO_COLLECTIVE && etch_op_is_view(step->op);
}

static bool is_free(const etch_step *step)
{
    return step && (step->collective == ETCH_SLICE ||
                    (step->collective == ETCH_NO_COLLECTIVE && step->row->role == ETCH_ROLE_FREE));
}

static const etch_value *behind_names(const etch_value *value)
{
    while (is_view(value->step))
        value = value->step->ins[0];
    return value;
}

/* What makes the memory that a value is in, or is a part of. */
static const etch_value *memory_of(const etch_value *value)
{
    while (is_free(value->step))
        value = value->step->ins[0];
    return value;
}

static const exec_convention *convention_of(const etch_step *step)
{
    const exec_convention *c = exec_conventions;
    while (c->row && strcmp(c->row, etch_row_name(step->row)) != 0)
        c++;
    return c;
}

static uint32_t width_of(const etch_value *value)
{
    return etch_dtype_bytes(value->tensor->dtype);
}

/* Elements of a value on the first rank, in this microbatch, with padding. */
static uint64_t size_of(const exec_traffic *t, const exec_env *env, const etch_value *value)
{
    const exec_array part = exec_mesh_part(&t->mesh, env, value->tensor, value->place, 0);
    return exec_array_size(&part);
}

/* ---- counting ---------------------------------------------------------------------------------------- */

static bool is_same(const moved *a, const moved *b)
{
    return a->gradient ? a->gradient == b->gradient : a->value == b->value;
}

/* A whole once; rows each time. */
static void add(exec_traffic *t, moved_list *list, moved one)
{
    for (uint32_t i = 0; i < list->count && !one.is_rows; i++)
        if (!list->at[i].is_rows && is_same(&one, &list->at[i]))
            return;
    ETCH_PUSH(t->arena, list, one);
}

static void note_reads(exec_traffic *t, counted *c, const exec_env *env, const etch_step *step)
{
    for (uint32_t i = 0; i < step->in_count; i++) {
        const etch_value *memory = memory_of(step->ins[i]), *value = behind_names(step->ins[i]);
        const counted *maker = memory->step ? t->of_step[memory->step->id] : NULL;
        t->used[memory->id] = true;
        t->leaves[memory->id] = t->leaves[memory->id] || maker != c;
        if (maker == c || t->seen[step->id])
            continue;
        const bool rows = i == 0 && convention_of(step)->reads_rows;
        const uint64_t size = size_of(t, env, rows ? step->outs[0] : value);
        const uint64_t runs = step->ring ? t->rounds.runs : 1; /* each reads it */
        add(t, &c->reads, (moved){.value = value, .is_rows = rows, .bytes = runs * size * width_of(value)});
    }
}

/* Each run writes it. Blocks of gradients are added to what has come; all else is gone on from. */
static void write_in_rounds(const exec_traffic *t, moved *one)
{
    const uint64_t bytes = one->bytes, sums = t->rounds.sums;
    const bool is_block = one->value->blocks != NULL;
    one->bytes = (t->rounds.runs + (is_block ? sums : 0)) * bytes;
    one->again = (is_block ? 2 * sums : t->rounds.runs - 1) * bytes;
}

/* Does the op go on from what the run before has left, as rows that are served under another name do? */
static bool is_state(const etch_step *step)
{
    const char *name = etch_row_name(step->row);
    const size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, "_from") == 0;
}

static void note_writes(exec_traffic *t, counted *c, const exec_env *env, const etch_step *step)
{
    const uint32_t width = etch_dtype_bytes(t->placed->training->graph->dtypes.grads);
    for (uint32_t i = 0; i < step->out_count && !t->seen[step->id]; i++) {
        const bool rows = i == 0 && convention_of(step)->writes_rows;
        const etch_value *value = step->outs[i];
        const uint64_t size = size_of(t, env, rows ? step->ins[0] : value);
        moved one = {.value = value, .bytes = size * width_of(value)};
        one.is_wanted = i == 0 ? !value->tensor->optional_result : is_state(step);
        if (i > 0 && is_state(step))
            one.again = one.bytes;
        if (step->ring && !step->accumulate_into[i])
            write_in_rounds(t, &one);
        if (!step->accumulate_into[i]) {
            add(t, &c->writes, one);
            continue;
        }
        one.is_rows = rows;
        one.gradient = step->accumulate_into[i];
        one.bytes = size * width;
        add(t, &c->adds, one);
    }
}

void exec_traffic_go_round(exec_traffic *t, exec_rounds rounds)
{
    t->rounds = rounds;
}

/* Every iteration moves the same: the first one is counted; who reads what is seen in all of them. */
void exec_traffic_note(exec_traffic *t, const exec_env *env, const etch_step *step)
{
    counted *c = t->of_step[step->id];
    if (!c) /* a view, which reads nothing */
        return;
    note_reads(t, c, env, step);
    if (step->collective == ETCH_NO_COLLECTIVE)
        note_writes(t, c, env, step);
    c->is_run = t->seen[step->id] = true;
}

void exec_traffic_leave(exec_traffic *t, const etch_value *value)
{
    const etch_value *memory = memory_of(value);
    t->used[memory->id] = t->leaves[memory->id] = true;
}

/* ---- comparing --------------------------------------------------------------------------------------- */

/* Rows of what the kernel has moved as a whole before are part of that; those that were touched before the
 * whole is moved count beside it: a convention (tests/graph/test_granularity.c), which depends on the order
 * of the kernel's steps. */
static uint64_t sum_of(const moved_list *list)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const moved *one = &list->at[i];
        bool is_part = false;
        for (uint32_t k = 0; k < i && one->is_rows; k++)
            is_part = is_part || (!list->at[k].is_rows && is_same(one, &list->at[k]));
        bytes += is_part ? 0 : one->bytes;
    }
    return bytes;
}

static bool is_written(const exec_traffic *t, const moved *m)
{
    return t->leaves[m->value->id] || (m->is_wanted && !t->used[m->value->id]);
}

static uint64_t read_by(const exec_traffic *t, const counted *c)
{
    uint64_t bytes = sum_of(&c->reads) + sum_of(&c->adds);
    for (uint32_t i = 0; i < c->writes.count; i++)
        bytes += is_written(t, &c->writes.at[i]) ? c->writes.at[i].again : 0;
    return bytes;
}

static uint64_t written_by(const exec_traffic *t, const counted *c)
{
    uint64_t bytes = sum_of(&c->adds);
    for (uint32_t i = 0; i < c->writes.count; i++)
        bytes += is_written(t, &c->writes.at[i]) ? c->writes.at[i].bytes : 0;
    return bytes;
}

/* Of the first rank, of those that have unequal work. */
static uint64_t said_of(const exec_traffic *t, etch_expr bytes)
{
    return exec_integer(etch_at_work_share(t->placed, bytes, etch_int(t->placed->training->graph->sym, 0)));
}

static const char *compare(const exec_traffic *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        const counted *c = &t->kernels[i];
        if (!c->is_run || c->kernel->anchor->collective != ETCH_NO_COLLECTIVE)
            continue;
        const uint64_t read = read_by(t, c), written = written_by(t, c);
        const uint64_t said = said_of(t, c->kernel->read), all = said_of(t, c->kernel->bytes);
        if (read != said || read + written != all)
            return etch_text(t->placed->arena,
                             "%s kernel %s -> %s reads %llu bytes and writes %llu; %llu and %llu are said",
                             etch_phase_name(c->kernel->anchor->phase), etch_row_name(c->kernel->anchor->row),
                             c->kernel->anchor->outs[0]->tensor->name, (unsigned long long)read,
                             (unsigned long long)written, (unsigned long long)said,
                             (unsigned long long)(all - said));
    }
    return NULL;
}

const char *exec_check_traffic(const etch_placed *placed, uint64_t seed)
{
    exec_traffic *t = exec_traffic_new(placed->arena, placed);
    exec_run *run =
        exec_run_new(placed->arena, placed->training, exec_data_new(placed->arena, placed->training, seed));
    exec_ranks *ranks = exec_ranks_new(placed->arena, placed, run, EXEC_PROGRAM);
    ranks->traffic = t;
    exec_run_forward(run, 0);
    exec_run_backward(run);
    if (!run->env.failure)
        exec_ranks_run(ranks);
    etch_arena_free(run->values.arena);
    const char *failure = run->env.failure ? run->env.failure : ranks->env.failure;
    return failure ? failure : compare(t);
}
