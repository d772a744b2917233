/* Names of kinds that are of sessions alone; the others are beside what they are names of. */
#include "session/core/core.h"

/* The name at `i` of a list of `count`. */
#define NAME_AT(names, i, count) ((unsigned)(i) < (unsigned)(count) ? (names)[i] : NULL)

const char *etch_truth_name(etch_truth truth)
{
    static const char *const names[] = {
        [ETCH_NO] = "refuted", [ETCH_YES] = "proved", [ETCH_UNKNOWN] = "unknown"};
    return NAME_AT(names, truth, sizeof names / sizeof *names);
}

const char *etch_unit_name(etch_unit unit)
{
    static const char *const names[ETCH_UNIT_COUNT] = {
        [ETCH_UNIT_NONE] = "",           [ETCH_UNIT_ELEMENTS] = "elements",
        [ETCH_UNIT_FLOP] = "FLOP",       [ETCH_UNIT_BYTES] = "bytes",
        [ETCH_UNIT_SECONDS] = "seconds", [ETCH_UNIT_TOKENS_A_SECOND] = "tokens/s",
        [ETCH_UNIT_HOURS] = "hours",     [ETCH_UNIT_DAYS] = "days"};
    return NAME_AT(names, unit, ETCH_UNIT_COUNT);
}

const char *etch_sum_kind_name(etch_sum_kind sum)
{
    static const char *const names[ETCH_SUM_COUNT] = {
        [ETCH_SUM_TOTAL] = "total", [ETCH_SUM_HEAVIEST] = "heaviest", [ETCH_SUM_GREATEST] = "greatest"};
    return NAME_AT(names, sum, ETCH_SUM_COUNT);
}

const char *etch_tensor_kind_name(etch_tensor_kind kind)
{
    static const char *const names[ETCH_TENSOR_KIND_COUNT] = {[ETCH_INPUT] = "input",
                                                              [ETCH_WEIGHT] = "weight",
                                                              [ETCH_ACT] = "value",
                                                              [ETCH_GRADIENT] = "gradient",
                                                              [ETCH_CONSTANT] = "constant"};
    return NAME_AT(names, kind, ETCH_TENSOR_KIND_COUNT);
}

const char *etch_placed_by_name(etch_placed_by by)
{
    static const char *const names[ETCH_PLACED_BY_COUNT] = {
        [ETCH_PLACED_BY_MAP] = "map",    [ETCH_PLACED_BY_ZERO] = "zero",   [ETCH_PLACED_BY_PIN] = "pin",
        [ETCH_PLACED_BY_LOOP] = "loop",  [ETCH_PLACED_BY_SCOPE] = "scope", [ETCH_PLACED_BY_MOVE] = "moved",
        [ETCH_PLACED_BY_OP] = "inferred"};
    return NAME_AT(names, by, ETCH_PLACED_BY_COUNT);
}

const char *etch_phrase_role_name(etch_phrase_role role)
{
    static const char *const names[ETCH_PHRASE_COUNT] = {
        [ETCH_PHRASE_MADE] = "made", [ETCH_PHRASE_NEEDS] = "needed", [ETCH_PHRASE_LINE] = "plan"};
    return NAME_AT(names, role, ETCH_PHRASE_COUNT);
}

const char *etch_memory_kind_name(etch_memory_kind kind)
{
    static const char *const names[ETCH_MEMORY_KINDS] = {[ETCH_BYTES_OF_WEIGHTS] = "weights",
                                                         [ETCH_BYTES_OF_GRADS] = "grads",
                                                         [ETCH_BYTES_OF_OPTIMIZER] = "optimizer",
                                                         [ETCH_BYTES_OF_CACHE] = "cache",
                                                         [ETCH_BYTES_OF_ACTIVATIONS] = "activations",
                                                         [ETCH_BYTES_OF_GATHERED] = "gathered",
                                                         [ETCH_BYTES_OF_COMMUNICATION] = "communication",
                                                         [ETCH_BYTES_OF_WORKSPACE] = "workspace"};
    return NAME_AT(names, kind, ETCH_MEMORY_KINDS);
}

const char *etch_simulation_work_name(etch_simulation_work work)
{
    static const char *const names[ETCH_STEP_WORKS] = {
        [ETCH_STEP_COMPUTES] = "compute", [ETCH_STEP_MEETS] = "collective", [ETCH_STEP_SENDS] = "send",
        [ETCH_STEP_RECEIVES] = "receive", [ETCH_STEP_LOADS] = "load",       [ETCH_STEP_STORES] = "store"};
    return NAME_AT(names, work, ETCH_STEP_WORKS);
}
