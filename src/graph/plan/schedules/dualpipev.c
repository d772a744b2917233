/* DualPipeV (DeepSeek-AI 2025, github.com/deepseek-ai/DualPipe): DualPipe (arXiv 2412.19437) with each of its
 * ranks folded onto the one that is its mirror image, which holds the same layers. Two chunks in each stage
 * remain, of which the second comes back, and no weight is there twice. See dual.c. */
#include "graph/plan/schedules/generator.h"

const etch_schedule etch_schedule_dualpipev = {.name = "dualpipev",
                                               .chunks = 2,
                                               .map = ETCH_MAP_MIRRORED,
                                               .has_halves = true,
                                               .overlaps = true,
                                               .pairs = etch_dual_pairs,
                                               .least_for_stage = 2,
                                               .actions = etch_actions_dual,
                                               .in_flight = etch_dual_in_flight,
                                               .until_weights = etch_dual_in_flight,
                                               .between_halves = etch_dual_between_halves,
                                               .chunk_in_flight = etch_dual_chunk_in_flight,
                                               .bubble = etch_dual_bubble,
                                               .bubble_is_exact = true};
