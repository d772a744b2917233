#include "exec_env.h"
#include "exec_random.h"

/* One segment or two, and a period: each residue of each has some class. */
static etch_pattern *any_pattern(exec_model *m, exec_dice *dice, uint32_t iterations, uint32_t classes)
{
    etch_arena *arena = m->arena;
    etch_pattern *pattern = ETCH_NEW(arena, etch_pattern);
    const uint32_t cut = exec_roll(dice, iterations + 1);
    pattern->period = 1 + exec_roll(dice, 3);
    for (uint32_t i = 0; i < 2; i++) {
        etch_segment segment = {.first = etch_int(m->sym, i ? cut : 0),
                                .end = etch_int(m->sym, i ? iterations : cut),
                                .class_of = ETCH_NEW_ARRAY(arena, pattern->period, uint32_t)};
        for (uint32_t r = 0; r < pattern->period; r++)
            segment.class_of[r] = exec_roll(dice, classes);
        ETCH_PUSH(arena, &pattern->segments, segment);
    }
    return pattern;
}

/* Of each class there are iterations: without them a spec has no body. */
static const etch_pattern *random_pattern(exec_model *m, exec_dice *dice, const etch_loop *loop)
{
    const uint32_t iterations = exec_integer(loop->count), classes = loop->bodies.count;
    etch_loop tried = *loop;
    for (uint32_t seen = 0; seen + 1 != 1u << classes;) {
        tried.pattern = any_pattern(m, dice, iterations, classes);
        seen = 0;
        for (uint32_t i = 0; i < iterations; i++)
            seen |= 1u << exec_class(&tried, i);
    }
    return tried.pattern;
}

void exec_random_classes(exec_model *m, etch_loop *loop, exec_dice *dice)
{
    const etch_pattern *pattern = random_pattern(m, dice, loop);
    etch_graph_classes(m->graph, loop, pattern);
    for (uint32_t k = 0; k < loop->bodies.count; k++) {
        uint32_t members = 0;
        for (uint32_t i = 0; i < exec_integer(loop->count); i++)
            members += exec_class(loop, i) == k;
        ck_assert_uint_eq(exec_integer(loop->bodies.at[k]->count), members);
    }
}
