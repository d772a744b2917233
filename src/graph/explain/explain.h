/* Explanations: placements and the provenances of collectives as text. Part of what other modules see of
 * graph. */
#ifndef ETCH_GRAPH_EXPLAIN_EXPLAIN_H
#define ETCH_GRAPH_EXPLAIN_EXPLAIN_H

#include "graph/stage/stage.h"
#include "graph/step/step.h"

/* A part of an explanation, and the place that it speaks of (nowhere: of none). */
typedef struct etch_phrase {
    etch_phrase_role role;
    /* `span` is a line of the plan, or of the train block */
    bool of_plan;
    /* "needed as [B@dp,S,H] by einsum(x, wq) in llama.block.attention" */
    const char *text;
    etch_span span;
} etch_phrase;

typedef ETCH_VEC(etch_phrase) etch_phrases;

/* How placements and provenances are explained. */
typedef struct etch_explaining {
    const etch_placed *placed;
    etch_arena *arena;
    /* of those that are not bound to 1: nothing is told of others */
    uint32_t axes;
    /* of tensors, by id, in place of their own; may be NULL */
    const char *const *names;
    /* where explanations go; NULL for questions that make none */
    etch_phrases *out;
} etch_explaining;

/* "[B@dp,S@(cp,tp),H]", with " partial over tp" after it where it is a partial sum, and " in parts over dp"
 * where ranks hold flat parts. */
const char *etch_value_text(const etch_explaining *how, const etch_value *value);
/* The line of the plan that puts `dim` on `axis` in `scope` (NULL: the model's); nowhere when there is
 * none. */
etch_span etch_place_line(const etch_placed *placed, const etch_scope *scope, const etch_dim *dim,
                          uint32_t axis);
/* Those axes that divide `dim` in a placement, outermost first; returns how many. */
uint32_t etch_place_axes(const etch_explaining *how, const etch_state *place, const etch_dim *dim,
                         uint32_t axes[ETCH_MAX_AXES]);
/* Why a collective is there, as parts of a sentence: all texts about provenances are made here. */
void etch_step_explain(const etch_explaining *how, const etch_step *step);
/* The same of one that is no step: of the end of a step, or between stages, over `axes`. */
void etch_provenance_explain(const etch_explaining *how, const etch_provenance *provenance, uint32_t axes);
/* For a dim of fewer parts than its axis has ranks: lines that let another dim take what is left over, "mesh
 * [.., kv = .."; NULL where they would not help. `size` and `divisor`: what the requirement's are bound
 * to. */
const char *etch_two_axes_text(const etch_placed *placed, const etch_requirement *requirement, int64_t size,
                               int64_t divisor);
/* One line a step: phase, results with their placement, op, operands, why a move is there, kernel. For tests
 * and for people. */
void etch_placed_dump(const etch_placed *placed, etch_buf *out);
/* How formulas of a dump are printed: with the values that are known. */
typedef struct etch_dump_values {
    /* NULL: as they are */
    etch_expr (*apply)(void *data, etch_expr expr);
    void *data;
} etch_dump_values;

/* The chain of layers of a plan with stages, and what crosses where it may be cut; nothing without stages. */
void etch_stages_dump(const etch_placed *placed, const etch_dump_values *values, etch_buf *out);
/* The same of a graph that is not placed (`backward` may be NULL), and one line a task of a step program. */
void etch_graph_dump(const etch_graph *graph, const etch_region *backward, const etch_dump_values *values,
                     etch_buf *out);
void etch_step_program_dump(const etch_step_program *program, const etch_dump_values *values, etch_buf *out);
/* The text of a formula in a dump. */
const char *etch_dump_text(etch_sym *sym, const etch_dump_values *values, etch_expr expr);

#endif
