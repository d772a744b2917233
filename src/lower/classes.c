/* Classes of iterations in numbers: which iteration runs which body. */
#include "lower/lower_int.h"

typedef struct segment {
    etch_bound_interval iterations;
    /* by residue */
    const uint32_t *class_of;
} segment;

struct etch_classes {
    uint32_t period, segment_count;
    segment *segments;
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
    *classes = (etch_classes){.period = pattern->period, .segment_count = pattern->segments.count};
    classes->segments = ETCH_NEW_ARRAY(o->arena, pattern->segments.count, segment);
    for (uint32_t i = 0; i < pattern->segments.count; i++) {
        const etch_segment *from = &pattern->segments.at[i];
        segment *to = &classes->segments[i];
        to->class_of = from->class_of;
        to->iterations.first = etch_bound_number(o, from->first);
        to->iterations.end = etch_bound_number(o, from->end);
    }
    check_members(o, loop, classes);
    return classes;
}

uint32_t etch_class_at(const etch_classes *classes, uint64_t iteration)
{
    for (uint32_t i = 0; classes && i < classes->segment_count; i++) {
        const segment *s = &classes->segments[i];
        if (s->iterations.first <= iteration && iteration < s->iterations.end)
            return s->class_of[iteration % classes->period];
    }
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
    for (uint32_t i = 0; i < classes->segment_count; i++) {
        const segment *s = &classes->segments[i];
        const etch_bound_interval both = etch_overlap(held, s->iterations);
        for (uint32_t r = 0; r < classes->period; r++)
            if (s->class_of[r] == class)
                count +=
                    count_below(both.end, r, classes->period) - count_below(both.first, r, classes->period);
    }
    return count;
}
