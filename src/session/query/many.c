/* Quantities of many steps: how long a number of tokens takes, what that costs, and the share of the time
 * that failures and checkpoints leave. */
#include "session/query/query.h"

#include <string.h>

enum { DAY = 86400, HOUR = 3600, ROOT_BITS = 64 };

/* The numbers of a quantity, all of which it needs; NULL ends them. */
static const char *const *numbers_of(const etch_quantity_row *row)
{
    static const char *const none[] = {NULL}, *const tokens[] = {"tokens", NULL},
                             *const money[] = {"tokens", "price", NULL},
                             *const failures[] = {"mtbf", "checkpoint", "restart", NULL};
    switch (row->timing) {
    case ETCH_TIMED_DAYS:
    case ETCH_TIMED_DEVICE_HOURS:
        return tokens;
    case ETCH_TIMED_COST:
        return money;
    case ETCH_TIMED_GOODPUT:
        return failures;
    default:
        return none;
    }
}

bool etch_timed_of_many(const etch_quantity_row *row)
{
    return numbers_of(row)[0] != NULL;
}

const char *etch_timed_argument(const etch_quantity_row *row)
{
    switch (row->timing) {
    case ETCH_TIMED_DAYS:
    case ETCH_TIMED_DEVICE_HOURS:
        return "(tokens=N)";
    case ETCH_TIMED_COST:
        return "(tokens=N, price=N)";
    case ETCH_TIMED_GOODPUT:
        return "(mtbf=N, checkpoint=N, restart=N)";
    default:
        return "(step)";
    }
}

static const etch_quantity_number *find(const etch_quantity *q, const char *name)
{
    for (uint32_t i = 0; i < q->number_count; i++)
        if (strcmp(q->numbers[i].name, name) == 0)
            return &q->numbers[i];
    return NULL;
}

bool etch_many_allow(etch_session *session, const etch_quantity *q, const etch_quantity_row *row)
{
    const char *const *names = numbers_of(row);
    uint32_t needed = 0;
    for (; names[needed]; needed++) {
        if (find(q, names[needed]))
            continue;
        etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_ARGUMENT, q->span, "'%s' needs '%s'",
                                     q->name, names[needed]);
        return etch_help(diag, "ask for %s%s", q->name, etch_timed_argument(row));
    }
    for (uint32_t i = 0; i < q->number_count; i++) {
        uint32_t k = 0;
        while (k < needed && strcmp(names[k], q->numbers[i].name) != 0)
            k++;
        if (k < needed)
            continue;
        etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_ARGUMENT, q->numbers[i].span,
                                     "'%s' has no argument '%s'", q->name, q->numbers[i].name);
        return etch_help(diag, "ask for %s%s", q->name, etch_timed_argument(row));
    }
    return true;
}

/* The number with the values of the run put in. NULL after an error: it is none, or not above 0. */
static etch_expr number(etch_session *session, const etch_quantity *q, const char *name,
                        const etch_compiled *compiled)
{
    const etch_quantity_number *given = find(q, name);
    const etch_expr value = etch_compiled_apply(session, compiled, given->value);
    if (value && etch_is_constant(value) &&
        etch_constant_compare(session->sym, value, etch_int(session->sym, 0)) > 0)
        return value;
    if (value)
        etch_error(session->diags, ETCH_E_QUERY_ARGUMENT, given->span, "'%s' is to be a number above 0",
                   name);
    return NULL;
}

/* Numbers between which the root of one from 0 to 1 lies, 2^-64 apart. */
static void root_of(etch_sym *sym, etch_expr square, etch_expr *low, etch_expr *high)
{
    etch_expr step = etch_int(sym, 1);
    *low = etch_int(sym, 0);
    for (int bit = 0; bit < ROOT_BITS; bit++) {
        step = etch_div(sym, step, etch_int(sym, 2));
        const etch_expr middle = etch_add(sym, *low, step);
        if (etch_constant_compare(sym, etch_mul(sym, middle, middle), square) <= 0)
            *low = middle;
    }
    *high = etch_add(sym, *low, step);
}

static etch_expr left_of(etch_sym *sym, etch_expr root, etch_expr restarts)
{
    return etch_sub(sym, etch_sub(sym, etch_int(sym, 1), root), restarts);
}

/* A job fails every mtbf/ranks = M seconds. With a checkpoint of C seconds every sqrt(2 C M) the least is
 * lost, sqrt(2 C/M) of the time, and R/M more by restarts (Young, 1974). */
static bool set_goodput(etch_session *session, const etch_quantity *q, const etch_one_step *step,
                        etch_within *out)
{
    etch_sym *sym = session->sym;
    const etch_expr mtbf = number(session, q, "mtbf", step->compiled),
                    checkpoint = number(session, q, "checkpoint", step->compiled),
                    restart = number(session, q, "restart", step->compiled);
    if (!mtbf || !checkpoint || !restart)
        return false;
    const etch_expr fails = etch_div(sym, step->ranks, mtbf);
    const etch_expr square = etch_mul(sym, etch_int(sym, 2), etch_mul(sym, checkpoint, fails));
    const etch_expr restarts = etch_mul(sym, restart, fails);
    etch_expr low, high;
    if (etch_constant_compare(sym, square, etch_int(sym, 1)) < 0) {
        root_of(sym, square, &low, &high);
        *out = (etch_within){left_of(sym, high, restarts), left_of(sym, low, restarts),
                             left_of(sym, low, restarts)};
        if (etch_constant_compare(sym, out->low, etch_int(sym, 0)) > 0)
            return true;
    }
    etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_ARGUMENT, q->span,
                                 "the job fails before it gets on: no share of the time is left");
    return etch_help(diag,
                     "'mtbf' is of one device, in seconds, as are 'checkpoint' and 'restart' of the job");
}

static etch_within scaled(etch_sym *sym, const etch_within *by, etch_expr factor)
{
    return (etch_within){etch_mul(sym, by->low, factor), etch_mul(sym, by->value, factor),
                         etch_mul(sym, by->high, factor)};
}

bool etch_many_of(etch_session *session, const etch_quantity *q, const etch_quantity_row *row,
                  const etch_one_step *step, etch_within *out)
{
    etch_sym *sym = session->sym;
    if (row->timing == ETCH_TIMED_GOODPUT)
        return set_goodput(session, q, step, out);
    const etch_expr tokens = number(session, q, "tokens", step->compiled);
    etch_expr each = tokens;
    if (tokens && row->timing == ETCH_TIMED_COST) {
        const etch_expr price = number(session, q, "price", step->compiled);
        each = price ? etch_mul(sym, tokens, price) : NULL;
    }
    if (!each)
        return false;
    const bool days = row->timing == ETCH_TIMED_DAYS;
    const etch_expr unit = days ? etch_int(sym, DAY) : etch_div(sym, etch_int(sym, HOUR), step->ranks);
    *out = scaled(sym, step->seconds, etch_div(sym, each, etch_mul(sym, step->tokens, unit)));
    return true;
}
