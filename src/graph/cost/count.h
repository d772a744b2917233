/* Counting conventions: what of the work counts as FLOP. Programs and papers differ; the items are where.
 * Part of what other modules see of graph. */
#ifndef ETCH_GRAPH_COST_COUNT_H
#define ETCH_GRAPH_COST_COUNT_H

#include "base/base.h"

typedef enum etch_count_item {
    ETCH_COUNT_CAUSAL,
    ETCH_COUNT_RESCORE,
    ETCH_COUNT_RECOMPUTE,
    ETCH_COUNT_ELEMENTWISE,
    ETCH_COUNT_NORMS,
    ETCH_COUNT_EMBEDDING,
    ETCH_COUNT_ROUTER,
    ETCH_COUNT_LOGITS,
    ETCH_COUNT_ITEMS
} etch_count_item;

typedef struct etch_count_preset etch_count_preset;

/* A convention. All zero: the work as it is executed. */
typedef struct etch_count {
    /* whose named terms are added; NULL: none */
    const etch_count_preset *preset;
    /* which of an item's values: an index */
    unsigned char at[ETCH_COUNT_ITEMS];
} etch_count;

/* "causal"; NULL past the end. */
const char *etch_count_item_name(size_t item);
/* The value of an item with this index: "exact"; NULL past the end. The first is that of execution. */
const char *etch_count_value_name(size_t item, size_t value);
/* "megatron"; NULL past the end. */
const char *etch_count_preset_name(size_t preset);
/* The convention that a preset is. */
etch_count etch_count_of_preset(size_t preset);
/* Every item with its value: "causal=half,rescore=no,..."; a preset's terms under its name. */
const char *etch_count_text(etch_arena *arena, const etch_count *count);
/* The tables of items and presets, for people. */
void etch_count_describe(etch_buf *out);

#endif
