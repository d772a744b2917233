/* Classes of iterations in numbers: which iteration runs which body. */
#include "lower/lower_int.h"

struct etch_classes {
    const etch_pattern *pattern;
    /* by segment of the pattern */
    etch_bound_interval *iterations;
};

/* Every iteration is of one class. */
static void check_members(etch_outliner *o, const etch_loop *loop, const etch_classes *classes)
{
    const uint64_t count = etch_bound_number(o, loop->count);
    uint64_t members = 0;
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        members += etch_class_members(classes, k, (etch_bound_interval){0, count});
    etch_lower_require(o->arena, members == count);
}

const etch_classes *etch_classes_make(etch_outliner *o, const etch_loop *loop)
{
    const etch_pattern *pattern = loop->pattern;
    if (!pattern)
        return NULL;
    etch_classes *classes = ETCH_NEW(o->arena, etch_classes);
    classes->pattern = pattern;
    classes->iterations = ETCH_NEW_ARRAY(o->arena, pattern->segments.count, etch_bound_interval);
    for (uint32_t i = 0; i < pattern->segments.count; i++) {
        const etch_segment *from = &pattern->segments.at[i];
        classes->iterations[i] =
            (etch_bound_interval){etch_bound_number(o, from->first), etch_bound_number(o, from->end)};
    }
    check_members(o, loop, classes);
    return classes;
}

uint32_t etch_class_at(const etch_classes *classes, uint64_t iteration)
{
    for (uint32_t i = 0; classes && i < classes->pattern->segments.count; i++)
        if (classes->iterations[i].first <= iteration && iteration < classes->iterations[i].end)
            return classes->pattern->segments.at[i].class_of[iteration % classes->pattern->period];
    return 0;
}

/* How many of 0, 1, .. to before `end` are `residue` modulo `period`. */
static uint64_t count_below(uint64_t end, uint32_t residue, uint32_t period)
{
    return end / period + (end % period > residue);
}

uint64_t etch_class_members(const etch_classes *classes, uint32_t class, etch_bound_interval held)
{
    uint64_t count = 0;
    if (!classes)
        return held.end - held.first;
    const uint32_t period = classes->pattern->period;
    for (uint32_t i = 0; i < classes->pattern->segments.count; i++) {
        const etch_bound_interval both = etch_overlap(held, classes->iterations[i]);
        for (uint32_t r = 0; r < period; r++)
            if (classes->pattern->segments.at[i].class_of[r] == class)
                count += count_below(both.end, r, period) - count_below(both.first, r, period);
    }
    return count;
}
