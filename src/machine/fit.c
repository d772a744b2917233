/* The numbers of a machine from measurements: least squares of the logarithms, by NLopt.
 *
 * This is the one place that decides by floating point: which numbers fit best has no exact answer. The
 * search is deterministic, and its result is rounded to four digits; how good that is, is said of the rounded
 * numbers by the exact formulas. */
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "machine/machine_int.h"
#include "machine/nlopt_open.h"

enum { LEAST_ROWS = 6, DIGITS = 4, EVALUATIONS = 4000 };

/* ---- which rows are fitted ----------------------------------------------------------------------------- */

/* Is the kernel large enough for its formula? */
static bool is_large(const etch_kernel_call *kernel)
{
    enum { TILE = 128, KEYS = 1024 };
    switch (kernel->kind) {
    case ETCH_KERNEL_PRODUCT:
        return kernel->m >= TILE && kernel->n >= TILE && kernel->k >= TILE;
    case ETCH_KERNEL_GROUPED:
        return kernel->m >= TILE * kernel->groups;
    case ETCH_KERNEL_ATTENTION:
        return !kernel->backward && kernel->queries > 1 && kernel->keys >= KEYS;
    default:
        return true;
    }
}

/* The numbers of a fit are those of one dtype: that of most rows, the first of equals. */
static const char *dtype_of(const etch_measurements *rows)
{
    uint32_t counts[ETCH_DTYPE_COUNT] = {0}, most = 0;
    const char *result = NULL;
    for (uint32_t i = 0; i < rows->count; i++)
        counts[etch_dtype_of(rows->at[i].kernel.dtype)] += rows->at[i].calibrates;
    for (uint32_t i = 0; i < rows->count; i++) {
        const uint32_t count = counts[etch_dtype_of(rows->at[i].kernel.dtype)];
        if (count <= most)
            continue;
        most = count;
        result = rows->at[i].kernel.dtype;
    }
    return result;
}

const etch_fit_part *etch_fit_parts(etch_arena *arena, const etch_measurements *rows)
{
    enum { THIRD = 3 };
    etch_fit_part *parts = ETCH_NEW_ARRAY(arena, rows->count, etch_fit_part);
    const char *dtype = dtype_of(rows);
    uint32_t fit = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        const etch_measured *row = &rows->at[i];
        if (!row->calibrates)
            parts[i] = ETCH_FIT_GIVEN;
        else if (row->kernel.dtype != dtype || !is_large(&row->kernel))
            parts[i] = ETCH_FIT_ASIDE;
        else
            parts[i] = ++fit % THIRD == 0 ? ETCH_FIT_KEPT_OUT : ETCH_FIT_USED;
    }
    return parts;
}

/* ---- the formulas in doubles --------------------------------------------------------------------------- */

/* A row as the search sees it: seconds at the peak and at the bandwidth. */
typedef struct point {
    double work, bytes, keys;
    /* of collectives: how often a message is waited for; what the switch sends, 0 where it does not add up */
    double steps, reduced;
    double log_measured;
} point;

typedef struct search {
    etch_kernel_kind kind;
    const point *points;
    uint32_t count;
} search;

static double norm(double a, double b, double p)
{
    const double large = fmax(a, b), small = fmin(a, b);
    return large * pow(1 + pow(small / large, p), 1 / p);
}

static double predict(etch_kernel_kind kind, const point *at, const double *x)
{
    switch (kind) {
    case ETCH_KERNEL_ATTENTION:
        return x[0] + fmax(at->work * (1 + x[2] / at->keys) / x[1], at->bytes);
    case ETCH_KERNEL_ELEMENTWISE:
        return x[0] + at->bytes / x[1];
    case ETCH_KERNEL_SYSTOLIC:
        return x[0] + at->work / x[1];
    case ETCH_KERNEL_COLLECTIVE: {
        const double plain = norm(x[0] + x[1] * at->steps, at->work / x[2], x[3]);
        return at->reduced > 0 ? fmin(plain, norm(x[0] + 2 * x[1], at->reduced / x[4], x[3])) : plain;
    }
    default:
        return x[0] + norm(at->work / x[1], at->bytes / x[2], x[3]);
    }
}

/* What NLopt makes small: of the logarithms of the numbers. */
static double squares(unsigned n, const double *logs, double *gradient, void *data)
{
    const search *s = data;
    double x[ETCH_FIT_NUMBERS], sum = 0;
    (void)gradient;
    for (unsigned i = 0; i < n; i++)
        x[i] = exp(logs[i]);
    for (uint32_t i = 0; i < s->count; i++) {
        const double gap = log(predict(s->kind, &s->points[i], x)) - s->points[i].log_measured;
        sum += gap * gap;
    }
    return sum;
}

static double middle(const etch_enclosure *range)
{
    return mpfr_get_d(range->low, MPFR_RNDN);
}

static point point_of(const etch_machine *machine, const etch_measured *row)
{
    const etch_kernel_call *kernel = &row->kernel;
    point at = {.keys = (double)kernel->keys, .log_measured = log(row->seconds)};
    if (kernel->kind == ETCH_KERNEL_COLLECTIVE) {
        const bool twice = kernel->op == ETCH_NODE_ALL_REDUCE;
        const double bare = (double)kernel->bytes / etch_level_rate_double(machine->level);
        at.steps = (double)(kernel->ranks - 1) * (twice ? 2 : 1);
        at.work = bare * at.steps / (double)kernel->ranks;
        if (machine->level->reduces && twice && kernel->bytes >= ETCH_REDUCED_FROM &&
            kernel->ranks >= ETCH_REDUCED_RANKS)
            at.reduced = bare;
    } else if (kernel->kind == ETCH_KERNEL_SYSTOLIC) {
        uint64_t cycles = 0;
        (void)etch_kernel_cycles(machine->device, kernel, &cycles); /* was asked before: they fit */
        at.work = (double)cycles / etch_decimal_double(machine->device->clock);
    } else {
        etch_enclosure work, bytes;
        etch_enclosure_start(&work, false);
        etch_enclosure_start(&bytes, false);
        etch_enclosure_count(&work, 0);
        etch_kernel_bare(machine->device, kernel, &work, &bytes);
        at.work = middle(&work);
        at.bytes = middle(&bytes);
        etch_enclosure_end(&work);
        etch_enclosure_end(&bytes);
    }
    return at;
}

/* ---- the search ---------------------------------------------------------------------------------------- */

static unsigned numbers_of(const etch_machine *machine, etch_kernel_kind kind)
{
    unsigned count = 0;
    while (count < ETCH_FIT_NUMBERS && etch_fit_row_of(kind)->numbers[count].name)
        count++;
    const bool reduces = kind == ETCH_KERNEL_COLLECTIVE && machine->level->reduces;
    const bool last_is_apart = kind == ETCH_KERNEL_COLLECTIVE || kind == ETCH_KERNEL_ATTENTION;
    return last_is_apart && !reduces ? count - 1 : count; /* that of the switch, and that of backward */
}

/* From one start to the nearest minimum: the search begins anew where it ended, some times. */
static nlopt_result descend(const etch_nlopt *nlopt, nlopt_opt opt, double *x, double *value)
{
    enum { ROUNDS = 4 };
    nlopt_result result = NLOPT_SUCCESS;
    for (int i = 0; i < ROUNDS && result > 0; i++)
        result = nlopt->optimize(opt, x, value);
    return result;
}

static nlopt_opt new_search(const etch_nlopt *nlopt, search *s, unsigned count)
{
    double least[ETCH_FIT_NUMBERS], most[ETCH_FIT_NUMBERS];
    for (unsigned i = 0; i < count; i++) {
        least[i] = log(etch_fit_row_of(s->kind)->numbers[i].least);
        most[i] = log(etch_fit_row_of(s->kind)->numbers[i].most);
    }
    nlopt_opt opt = nlopt->create(NLOPT_LN_SBPLX, count);
    const bool ready = opt && nlopt->set_min_objective(opt, squares, s) > 0 &&
                       nlopt->set_lower_bounds(opt, least) > 0 && nlopt->set_upper_bounds(opt, most) > 0 &&
                       nlopt->set_xtol_rel(opt, 1e-9) > 0 && nlopt->set_maxeval(opt, EVALUATIONS) > 0;
    if (opt && !ready) {
        nlopt->destroy(opt);
        opt = NULL;
    }
    return opt;
}

static bool minimize(const etch_nlopt *nlopt, search *s, unsigned count, double *best)
{
    double least = HUGE_VAL;
    bool found = false;
    const int starts = 1 << count; /* each number begins at each of its two places */
    for (int start = 0; start < starts; start++) {
        double x[ETCH_FIT_NUMBERS], value = HUGE_VAL;
        nlopt_opt opt = new_search(nlopt, s, count);
        for (unsigned i = 0; i < count; i++)
            x[i] = log(etch_fit_row_of(s->kind)->numbers[i].begin[start >> i & 1]);
        const bool fine = opt && descend(nlopt, opt, x, &value) > 0;
        if (opt)
            nlopt->destroy(opt);
        if (fine && value < least) {
            least = value;
            memcpy(best, x, sizeof x);
            found = true;
        }
    }
    return found;
}

/* Half a nanosecond is no overhead. */
static etch_decimal rounded(const etch_fit_number *number, double value)
{
    if (number->dimension == ETCH_OF_TIME && value <= 2 * number->least)
        return etch_decimal_of(0, 0);
    return etch_decimal_round(value, DIGITS);
}

etch_status etch_fit_find(etch_arena *arena, const etch_machine *machine, etch_kernel_kind kind,
                          const etch_measurements *rows, etch_fitted *out, const char **why)
{
    const etch_fit_part *parts = etch_fit_parts(arena, rows);
    point *points = ETCH_NEW_ARRAY(arena, rows->count, point);
    search s = {.kind = kind, .points = points};
    double logs[ETCH_FIT_NUMBERS];
    *why = NULL;
    for (uint32_t i = 0; i < rows->count && !*why; i++)
        if (parts[i] == ETCH_FIT_USED)
            *why = etch_kernel_lacks(arena, machine, &rows->at[i].kernel);
    for (uint32_t i = 0; i < rows->count && !*why; i++)
        if (parts[i] == ETCH_FIT_USED)
            points[s.count++] = point_of(machine, &rows->at[i]);
    mpfr_free_cache();
    if (!*why && s.count < LEAST_ROWS)
        *why = etch_text(arena, "%u rows are too few to fit: it takes %d", s.count, LEAST_ROWS);
    etch_nlopt nlopt;
    if (!*why)
        *why = etch_nlopt_open(&nlopt);
    if (*why)
        return ETCH_EINPUT;
    const unsigned count = numbers_of(machine, kind);
    const bool found = minimize(&nlopt, &s, count, logs);
    etch_nlopt_close(&nlopt);
    if (!found)
        return ETCH_ENOMEM; /* the objective has a value everywhere: nothing else makes NLopt fail */
    *out = (etch_fitted){.given = true};
    for (unsigned i = 0; i < count; i++)
        out->at[i] = rounded(&etch_fit_row_of(kind)->numbers[i], exp(logs[i]));
    if (kind == ETCH_KERNEL_ATTENTION)
        out->at[count] = etch_decimal_round(etch_fit_row_of(kind)->numbers[count].begin[0], 2);
    return ETCH_OK;
}
