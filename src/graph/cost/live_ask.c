/* Answers that decide a fold: where the facts say nothing, it is run with either answer, and what differs
 * gets the answer as a factor. */
#include "graph/cost/live.h"

/* ETCH_NO: it is less for all values. */
static etch_truth truth_of(const etch_live_answers *a, etch_expr amount, int64_t least)
{
    int64_t number;
    if (etch_to_i64(amount, &number))
        return number >= least ? ETCH_YES : ETCH_NO;
    for (uint32_t i = 0; i < a->assumed.count; i++) {
        const etch_live_question *q = &a->assumed.at[i];
        if (q->amount == amount && (q->answer ? q->least >= least : q->least <= least))
            return q->answer ? ETCH_YES : ETCH_NO;
    }
    if (etch_at_least(a->sym, amount, etch_int(a->sym, least), NULL) == ETCH_YES)
        return ETCH_YES;
    return etch_at_least(a->sym, etch_int(a->sym, least - 1), amount, NULL) == ETCH_YES ? ETCH_NO
                                                                                        : ETCH_UNKNOWN;
}

bool etch_live_is_least(etch_live_answers *a, etch_expr amount, int64_t least)
{
    const etch_truth truth = truth_of(a, amount, least);
    if (truth == ETCH_UNKNOWN && !a->is_open) {
        a->is_open = true;
        a->open = (etch_live_question){amount, least, true};
    }
    return truth != ETCH_NO;
}

etch_expr etch_live_indicator(const etch_live_answers *a, etch_expr amount, int64_t least)
{
    const etch_truth truth = truth_of(a, amount, least);
    const etch_expr zero = etch_int(a->sym, 0), one = etch_int(a->sym, 1);
    if (truth != ETCH_UNKNOWN)
        return truth == ETCH_YES ? one : zero;
    const etch_expr over = etch_sub(a->sym, amount, etch_int(a->sym, least - 1));
    return etch_smaller(a->sym, one, etch_larger(a->sym, zero, over));
}

void etch_live_add(etch_sym *sym, etch_arena *arena, etch_live_counts *counts, uint32_t name, etch_expr times)
{
    uint32_t i = 0;
    while (i < counts->count && counts->at[i].name != name)
        i++;
    if (i == counts->count)
        ETCH_PUSH(arena, counts, (etch_live_count){name, etch_int(sym, 0)});
    counts->at[i].times = etch_add(sym, counts->at[i].times, times);
}

static etch_expr times_of(etch_sym *sym, const etch_live_counts *counts, uint32_t name)
{
    for (uint32_t i = 0; i < counts->count; i++)
        if (counts->at[i].name == name)
            return counts->at[i].times;
    return etch_int(sym, 0);
}

/* `no`, and where the answer is yes what `yes` has more. */
static void join(const etch_live_answers *a, etch_expr answer, const etch_live_counts *yes,
                 const etch_live_counts *no, etch_live_counts *out)
{
    for (uint32_t i = 0; i < no->count; i++)
        etch_live_add(a->sym, a->arena, out, no->at[i].name, no->at[i].times);
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < (k ? no : yes)->count; i++) {
            const uint32_t name = (k ? no : yes)->at[i].name;
            const etch_expr with = times_of(a->sym, yes, name), without = times_of(a->sym, no, name);
            const bool done = k && !etch_is_zero(with);
            if (with != without && !done)
                etch_live_add(a->sym, a->arena, out, name,
                              etch_mul(a->sym, answer, etch_sub(a->sym, with, without)));
        }
}

/* Of questions that depend on each other: each doubles the work. */
enum { MOST_OPEN = 10 };

/* Goes as deep as there are questions. */
void etch_live_decide(etch_live_answers *a, etch_live_fold fold, void *data, etch_live_counts *out)
{
    etch_live_counts counts = {0}, with = {0}, without = {0};
    a->is_open = false;
    fold(data, a, &counts);
    if (!a->is_open) {
        *out = counts;
        return;
    }
    if (a->assumed.count == MOST_OPEN)
        etch_sym_end_at_limit(a->sym, "loops that may have no iterations, one after the other", MOST_OPEN);
    const etch_live_question question = a->open;
    const etch_expr answer = etch_live_indicator(a, question.amount, question.least);
    ETCH_PUSH(a->arena, &a->assumed, question);
    etch_live_decide(a, fold, data, &with);
    a->assumed.at[a->assumed.count - 1].answer = false;
    etch_live_decide(a, fold, data, &without);
    a->assumed.count--;
    join(a, answer, &with, &without, out);
}
