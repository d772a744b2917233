/* The moments of a run in which kernels are slower while a collective runs on their device. How long a kernel
 * takes is not known when it begins: what is left of it is counted in whole units, of which a picosecond has
 * as many as the slowdown has in its numerator; beside a collective it does as many as its denominator has.
 * Nothing is rounded but the end, up to a whole picosecond. */
#include "simulate/simulate_int.h"

__extension__ typedef unsigned __int128 units;

typedef enum moment_kind { BEGINS, KERNEL_ENDS, COLLECTIVE_ENDS, MESSAGE_ENDS } moment_kind;

typedef struct moment {
    uint64_t at;
    /* of moments at one time the first that was noted comes first */
    uint64_t order;
    uint32_t class, node;
    moment_kind kind;
    /* KERNEL_ENDS: holds while it is that of its kernel */
    uint32_t version;
} moment;

/* What a class computes. */
typedef struct kernel {
    uint32_t node, version;
    bool runs;
    units left;
    /* what is left was left then */
    uint64_t since;
    /* collectives that run on the device */
    uint32_t beside;
} kernel;

struct etch_sim_pace {
    etch_arena *arena;
    /* units a picosecond: alone, and beside a collective */
    uint64_t alone, beside;
    kernel *kernels;
    /* a heap: none is before the one at half its place */
    ETCH_VEC(moment) moments;
    uint64_t order;
};

/* ---- the heap ------------------------------------------------------------------------------------------ */

static bool is_before(const moment *a, const moment *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void note(etch_sim_pace *pace, moment m)
{
    m.order = pace->order++;
    ETCH_PUSH(pace->arena, &pace->moments, m);
    uint32_t at = pace->moments.count - 1;
    for (; at > 0 && is_before(&m, &pace->moments.at[(at - 1) / 2]); at = (at - 1) / 2)
        pace->moments.at[at] = pace->moments.at[(at - 1) / 2];
    pace->moments.at[at] = m;
}

static moment take(etch_sim_pace *pace)
{
    moment *all = pace->moments.at;
    const moment first = all[0], last = all[--pace->moments.count];
    const uint32_t count = pace->moments.count;
    uint32_t at = 0;
    for (uint32_t child = 1; child < count; child = 2 * at + 1) {
        child += child + 1 < count && is_before(&all[child + 1], &all[child]);
        if (!is_before(&all[child], &last))
            break;
        all[at] = all[child];
        at = child;
    }
    if (count > 0)
        all[at] = last;
    return first;
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

static uint64_t units_a_picosecond(const etch_sim_pace *pace, const kernel *k)
{
    return k->beside ? pace->beside : pace->alone;
}

/* When the kernel ends, if nothing changes. */
static void foresee(etch_sim_pace *pace, uint32_t class)
{
    kernel *k = &pace->kernels[class];
    const uint64_t rate = units_a_picosecond(pace, k);
    const units lasts = k->left / rate + (k->left % rate != 0);
    const bool fits = lasts < INT64_MAX - k->since;
    note(pace, (moment){.at = fits ? k->since + (uint64_t)lasts : INT64_MAX,
                        .class = class,
                        .node = k->node,
                        .kind = KERNEL_ENDS,
                        .version = ++k->version});
}

/* A collective begins or ends on the device. */
static void change(etch_sim_pace *pace, uint64_t now, uint32_t class, uint32_t beside)
{
    kernel *k = &pace->kernels[class];
    const units done = (units)(now - k->since) * units_a_picosecond(pace, k);
    const bool changes = k->runs && (k->beside != 0) != (beside != 0) && done < k->left;
    if (changes) {
        k->left -= done;
        k->since = now;
    }
    k->beside = beside;
    if (changes)
        foresee(pace, class);
}

/* ---- the header ---------------------------------------------------------------------------------------- */

etch_sim_pace *etch_sim_pace_new(etch_arena *arena, etch_decimal slowdown, uint32_t class_count)
{
    etch_sim_pace *pace = ETCH_NEW(arena, etch_sim_pace);
    pace->arena = arena;
    pace->alone = (uint64_t)slowdown.digits;
    pace->beside = 1;
    for (int32_t power = slowdown.power; power > 0; power--)
        pace->alone *= 10;
    for (int32_t power = slowdown.power; power < 0; power++)
        pace->beside *= 10;
    pace->kernels = ETCH_NEW_ARRAY(arena, class_count, kernel);
    return pace;
}

uint64_t etch_sim_pace_longest(const etch_sim_pace *pace, uint64_t lasts)
{
    const units all = (units)lasts * pace->alone;
    return (uint64_t)(all / pace->beside + (all % pace->beside != 0));
}

void etch_sim_pace_wait(etch_sim_pace *pace, uint64_t until, uint32_t class, uint32_t node)
{
    note(pace, (moment){.at = until, .class = class, .node = node, .kind = BEGINS});
}

void etch_sim_pace_compute(etch_sim_pace *pace, uint64_t now, uint64_t lasts, uint32_t class, uint32_t node)
{
    kernel *k = &pace->kernels[class];
    k->node = node;
    k->runs = true;
    k->left = (units)lasts * pace->alone;
    k->since = now;
    foresee(pace, class);
}

void etch_sim_pace_transfer(etch_sim_pace *pace, uint64_t now, uint64_t ends, uint32_t class, uint32_t node,
                            bool collective)
{
    if (collective)
        change(pace, now, class, pace->kernels[class].beside + 1);
    note(pace,
         (moment){
             .at = ends, .class = class, .node = node, .kind = collective ? COLLECTIVE_ENDS : MESSAGE_ENDS});
}

bool etch_sim_pace_next(etch_sim_pace *pace, etch_sim_moment *out)
{
    moment m;
    do {
        if (pace->moments.count == 0)
            return false;
        m = take(pace);
    } while (m.kind == KERNEL_ENDS && m.version != pace->kernels[m.class].version);
    if (m.kind == KERNEL_ENDS)
        pace->kernels[m.class].runs = false;
    if (m.kind == COLLECTIVE_ENDS)
        change(pace, m.at, m.class, pace->kernels[m.class].beside - 1);
    *out = (etch_sim_moment){.at = m.at, .class = m.class, .node = m.node, .begins = m.kind == BEGINS};
    return true;
}
