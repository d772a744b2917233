/* Which case rows are of, by their values, and what these must be there: of cases that others compile. */
#include "session/sweep/sweep_int.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

etch_case_key etch_case_key_of(const etch_sweep_frame *frame, bool by_row, const etch_exact *row,
                               etch_exact *values)
{
    etch_case_key key = {frame->formulas, values, by_row, mix(frame->formulas->number, by_row)};
    for (uint32_t i = 0; i < frame->axis_count; i++) {
        const etch_sweep_axis *axis = &frame->axes[i];
        const etch_exact value = row[i];
        const bool one = axis->is_size && value.number == 1 && value.denominator == 1;
        values[i] = by_row || axis->decides || one ? value : (etch_exact){0};
        key.hash = mix(mix(key.hash, (uint64_t)values[i].number), (uint64_t)values[i].denominator);
    }
    return key;
}

static bool same_key(const etch_case_key *a, const etch_case_key *b)
{
    if (a->hash != b->hash || a->frame != b->frame || a->by_row != b->by_row)
        return false;
    for (uint32_t i = 0; i < a->frame->axis_count; i++)
        if (a->values[i].number != b->values[i].number ||
            a->values[i].denominator != b->values[i].denominator)
            return false;
    return true;
}

etch_sweep_case *etch_case_find(const etch_sweep *sweep, const etch_case_key *key)
{
    etch_sweep_case *found = sweep->case_slots ? sweep->cases[key->hash & (sweep->case_slots - 1)] : NULL;
    while (found && !same_key(&found->key, key))
        found = found->next;
    return found;
}

bool etch_case_must_is_met(etch_arena *arena, const etch_must *must, bool defined, etch_exact left,
                           etch_exact right)
{
    const etch_exact least = {must->least, 1, NULL}, one = {1, 1, NULL};
    switch (must->kind) {
    case ETCH_MUST_BE_NUMBER:
        if (!defined || (!must->fraction && (left.text || left.denominator != 1)))
            return false;
        return etch_exact_compare(arena, left, least) >= must->above &&
               (!must->share || etch_exact_compare(arena, left, one) <= 0);
    case ETCH_MUST_HOLD:
        return defined && etch_exact_holds(arena, must->relation, left, right);
    case ETCH_MUST_DIVIDE:
        return !defined || etch_exact_divides(arena, left, right);
    case ETCH_MUST_BE_RANKS:
        return !defined || etch_exact_compare(arena, left, right) == 0 ||
               etch_exact_compare(arena, right, (etch_exact){ETCH_MAX_RANKS, 1, NULL}) > 0;
    }
    return false;
}
