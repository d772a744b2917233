/* Values that a loop carries, followed from iteration to iteration: each reads them, hands them on, as they
 * are or as another carried value, or drops them. */
#include "graph/stage/stage_int.h"

/* Names that a value has, as bits, where that is so: 1, or 0. */
typedef struct known_as {
    uint64_t names;
    etch_expr so;
} known_as;

typedef struct following {
    etch_sym *sym;
    const etch_carrying *c;
    etch_arena *arena;
    bool backward;
    etch_expr zero, one;
    ETCH_VEC(known_as) all;
} following;

/* Iterations that are followed one by one, and of those whose class is not known. */
enum { MOST_STEPS = 1024, MOST_OPEN_STEPS = 16 };

static etch_expr reads_by(const following *w, uint32_t class, uint64_t names)
{
    etch_expr sum = w->zero;
    for (uint32_t k = 0; k < w->c->carries; k++)
        if (names & etch_carried_bit(k))
            sum = etch_add(w->sym, sum, w->c->reads[class * w->c->carries + k]);
    return etch_some(w->sym, sum);
}

static uint64_t next_by(const following *w, uint32_t class, uint64_t names)
{
    uint64_t next = 0;
    for (uint32_t k = 0; k < w->c->carries; k++)
        if (names & etch_carried_bit(k))
            next |= w->c->next[class * w->c->carries + k];
    return next;
}

static etch_expr leaving(const following *w, uint64_t names)
{
    etch_expr sum = w->zero;
    for (uint32_t k = 0; k < w->c->carries; k++)
        if (names & etch_carried_bit(k))
            sum = etch_add(w->sym, sum, w->c->leaving[k]);
    return sum;
}

/* Iterations of a class from here on. */
static etch_expr rest_of(const following *w, uint32_t class, etch_expr at)
{
    const etch_expr low = w->backward ? w->zero : at, high = w->backward ? at : w->c->loop->count;
    return etch_class_count(w->sym, w->c->loop->bodies.at[class], low, high);
}

/* Whether anything reads it where nothing drops it before. */
static etch_expr read_later(const following *w, uint64_t names, etch_expr at)
{
    etch_expr sum = leaving(w, names);
    for (uint32_t i = 0; i < w->c->loop->bodies.count; i++)
        sum = etch_add(w->sym, sum, etch_mul(w->sym, rest_of(w, i, at), reads_by(w, i, names)));
    return etch_some(w->sym, sum);
}

/* Is it read by each iteration that does not hand it on as it came? */
static bool stays(const following *w, uint64_t names)
{
    for (uint32_t i = 0; i < w->c->loop->bodies.count; i++)
        if (reads_by(w, i, names) != w->one && next_by(w, i, names) != names)
            return false;
    return true;
}

static void add_names(following *w, uint64_t names, etch_expr so)
{
    if (!names || etch_is_zero(so))
        return;
    for (uint32_t i = 0; i < w->all.count; i++)
        if (w->all.at[i].names == names) {
            w->all.at[i].so = etch_add(w->sym, w->all.at[i].so, so);
            return;
        }
    ETCH_PUSH(w->arena, &w->all, ((known_as){names, so}));
}

/* 1 where the next iteration is of the class, else 0. */
static etch_expr is_of_class(const following *w, uint32_t class, etch_expr at)
{
    etch_sym *sym = w->sym;
    const etch_expr low = w->backward ? etch_sub(sym, at, w->one) : at;
    if (w->c->loop->pattern)
        return etch_class_count(sym, w->c->loop->bodies.at[class], low, etch_add(sym, low, w->one));
    const etch_expr left = w->backward ? at : etch_sub(sym, w->c->loop->count, at);
    return etch_smaller(sym, w->one, etch_larger(sym, w->zero, left));
}

/* Goes through one iteration, and says where it reads what is followed, or the loop ends and something reads
 * it then. */
static etch_expr step(following *w, etch_expr at, bool *open)
{
    etch_sym *sym = w->sym;
    const known_as *now = w->all.at;
    const uint32_t count = w->all.count;
    etch_expr read = w->zero, end = w->one;
    w->all.at = NULL;
    w->all.count = w->all.capacity = 0;
    for (uint32_t c = 0; c < w->c->loop->bodies.count; c++) {
        const etch_expr is = is_of_class(w, c, at);
        end = etch_sub(sym, end, is);
        *open = *open || !etch_is_constant(is);
        for (uint32_t i = 0; i < count && !etch_is_zero(is); i++) {
            const etch_expr so = etch_mul(sym, now[i].so, is), reads = reads_by(w, c, now[i].names);
            read = etch_add(sym, read, etch_mul(sym, so, reads));
            add_names(w, next_by(w, c, now[i].names), etch_mul(sym, so, etch_sub(sym, w->one, reads)));
        }
    }
    for (uint32_t i = 0; i < count && !etch_is_zero(end); i++)
        read =
            etch_add(sym, read,
                     etch_mul(sym, etch_mul(sym, now[i].so, end), etch_some(sym, leaving(w, now[i].names))));
    return read;
}

/* Takes out what is clear without looking at iterations, or all. */
static etch_expr settle(following *w, etch_expr at, bool all)
{
    etch_expr read = w->zero;
    uint32_t left = 0;
    for (uint32_t i = 0; i < w->all.count; i++) {
        const known_as *k = &w->all.at[i];
        if (all || stays(w, k->names))
            read = etch_add(w->sym, read, etch_mul(w->sym, k->so, read_later(w, k->names, at)));
        else
            w->all.at[left++] = *k;
    }
    w->all.count = left;
    return read;
}

etch_expr etch_carried_read(etch_sym *sym, const etch_carrying *carrying, uint32_t k, bool backward,
                            etch_expr iteration)
{
    following w = {.sym = sym,
                   .c = carrying,
                   .arena = carrying->arena,
                   .backward = backward,
                   .zero = etch_int(sym, 0),
                   .one = etch_int(sym, 1)};
    etch_expr read = w.zero, at = iteration;
    add_names(&w, etch_carried_bit(k), w.one);
    for (uint32_t steps = 0, open_steps = 0; w.all.count > 0; steps++) {
        bool open = false;
        read = etch_add(sym, read, settle(&w, at, steps == MOST_STEPS || open_steps == MOST_OPEN_STEPS));
        if (w.all.count == 0)
            break;
        read = etch_add(sym, read, step(&w, at, &open));
        at = backward ? etch_sub(sym, at, w.one) : etch_add(sym, at, w.one);
        open_steps += open;
    }
    return read;
}
