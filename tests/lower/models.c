#include "models.h"

#include <check.h>
#include <string.h>

static const etch_span nowhere = {0, 0};

/* ---- models -------------------------------------------------------------------------------------------- */

static etch_tensor *residual(sample *x, etch_tensor *a, etch_tensor *b)
{
    etch_tensor *sum = sample_sum(x, "x", a, b);
    sample_tag(x, sum, "residual");
    return sum;
}

static etch_tensor *mlp(sample *x, const char *module, etch_tensor *value)
{
    etch_graph_enter(x->graph, module, nowhere);
    etch_tensor *y = sample_mlp(x, value);
    etch_graph_leave(x->graph);
    return y;
}

static etch_tensor *embedding(sample *x, etch_tensor **table)
{
    *table = sample_weight(x, "emb", "vh");
    etch_tensor *ids = sample_input(x, "ids", "bs", ETCH_I32);
    etch_tensor *e = sample_call(x, "e", "gather", *table, ids, 'v', NULL);
    sample_tag(x, e, "residual");
    return e;
}

static etch_tensor *layers_of(sample *x, const char *name, const char *module, etch_expr count,
                              etch_tensor *value, etch_tensor *again)
{
    etch_tensor *result;
    etch_graph_begin(x->graph, name, count, nowhere);
    etch_tensor *in = etch_graph_carry(x->graph, value, nowhere);
    etch_tensor *out = residual(x, in, mlp(x, module, in));
    if (again)
        out = residual(x, out, again);
    etch_graph_end(x->graph, &out, &result, 1);
    return result;
}

void build_decoder(sample *x, etch_expr layers, etch_expr steps)
{
    etch_tensor *table;
    (void)steps;
    sample_loss(x, layers_of(x, "layer", "mlp", layers, embedding(x, &table), NULL));
}

void build_tied(sample *x, etch_expr layers, etch_expr steps)
{
    etch_tensor *table;
    (void)steps;
    etch_tensor *value = layers_of(x, "layer", "mlp", layers, embedding(x, &table), NULL);
    etch_tensor *labels = sample_input(x, "labels", "bs", ETCH_I32);
    etch_tensor *logits = sample_product(x, "logits", value, table, "bsv");
    sample_tag(x, sample_call(x, "l", "cross_entropy", logits, labels, 'v', NULL), "loss");
}

void build_nested(sample *x, etch_expr layers, etch_expr steps)
{
    etch_tensor *table, *outer_result, *inner_result;
    etch_tensor *value = embedding(x, &table);
    etch_tensor *model_gain = sample_weight(x, "model_gain", "h");
    etch_graph_begin(x->graph, "layer", layers, nowhere);
    etch_tensor *in = etch_graph_carry(x->graph, value, nowhere);
    etch_tensor *layer_gain = sample_weight(x, "layer_gain", "h");
    etch_tensor *before = residual(x, in, mlp(x, "first", in));

    etch_graph_begin(x->graph, "step", steps, nowhere);
    etch_tensor *inner = etch_graph_carry(x->graph, before, nowhere);
    etch_tensor *h = sample_call(x, "n", "rms_norm", inner, model_gain, 'h', NULL);
    h = sample_call(x, "m", "rms_norm", h, layer_gain, 'h', NULL);
    h = residual(x, inner, mlp(x, "second", h));
    h = residual(x, h, before);
    etch_graph_end(x->graph, &h, &inner_result, 1);

    etch_tensor *out = sample_call(x, "x", "rms_norm", inner_result, layer_gain, 'h', NULL);
    etch_graph_end(x->graph, &out, &outer_result, 1);
    sample_loss(x, outer_result);
}

void build_two_loops(sample *x, etch_expr layers, etch_expr steps)
{
    etch_tensor *table;
    etch_tensor *value = embedding(x, &table);
    etch_tensor *middle = layers_of(x, "layer", "first", layers, value, NULL);
    etch_tensor *gain = sample_weight(x, "gain", "h");
    middle = sample_call(x, "middle", "rms_norm", middle, gain, 'h', NULL);
    sample_loss(x, layers_of(x, "step", "second", steps, value, middle));
}

/* Before iteration `steps` one kind, behind it two that take turns. */
static const etch_pattern *prefix_pattern(sample *x, etch_expr layers, etch_expr steps)
{
    static uint32_t before[] = {0, 0}, behind[] = {1, 2};
    etch_pattern *pattern = ETCH_NEW(x->arena, etch_pattern);
    pattern->period = 2;
    etch_expr cut = etch_min(x->sym, steps, layers), zero = etch_int(x->sym, 0);
    ETCH_PUSH(x->arena, &pattern->segments, (etch_segment){zero, cut, before});
    ETCH_PUSH(x->arena, &pattern->segments, (etch_segment){cut, layers, behind});
    return pattern;
}

/* The first iterations have a weight in a loop, then odd and even ones differ. */
void build_classes(sample *x, etch_expr layers, etch_expr steps)
{
    etch_tensor *table, *inner, *result, *value = embedding(x, &table);
    etch_tensor *gain = sample_weight(x, "gain", "h");
    etch_loop *loop = etch_graph_begin(x->graph, "layer", layers, nowhere);
    etch_tensor *in = etch_graph_carry(x->graph, value, nowhere);
    etch_graph_begin(x->graph, "step", etch_int(x->sym, 2), nowhere);
    etch_tensor *h = etch_graph_carry(x->graph, in, nowhere);
    h = residual(x, h, mlp(x, "first", h));
    etch_graph_end(x->graph, &h, &inner, 1);
    etch_graph_next_body(x->graph, &inner, &in, 1);
    etch_tensor *out = residual(x, in, mlp(x, "second", in));
    etch_graph_next_body(x->graph, &out, &in, 1);
    out = residual(x, in, sample_call(x, "n", "rms_norm", in, gain, 'h', NULL));
    etch_graph_end(x->graph, &out, &result, 1);
    etch_graph_classes(x->graph, loop, prefix_pattern(x, layers, steps));
    sample_loss(x, result);
}

const shape all_shapes[] = {
    {build_decoder, PLAN_NONE, 8, 1, 1, 1, 1, 1, NULL, false},
    {build_decoder, PLAN_NONE, 8, 2, 3, 1, 1, 1, NULL, true},
    {build_decoder, PLAN_DP, 8, 2, 3, 1, 4, 1, NULL, false},
    {build_decoder, PLAN_DP, 8, 1, 3, 1, 4, 2, "all", true},
    {build_decoder, PLAN_TP, 8, 2, 2, 1, 2, 4, NULL, true},
    {build_decoder, PLAN_TP, 8, 2, 2, 1, 2, 1, NULL, true},
    {build_decoder, PLAN_TP, 8, 4, 2, 1, 1, 4, "layer", true},
    {build_decoder, PLAN_SEQUENCE, 8, 2, 2, 1, 2, 4, NULL, false},
    {build_decoder, PLAN_SEQUENCE, 8, 2, 3, 1, 2, 4, "all", true},
    {build_decoder, PLAN_SEQUENCE, 8, 1, 2, 1, 1, 1, NULL, true},
    {build_decoder, PLAN_TP, 8, 2, 0, 1, 2, 4, NULL, true},
    {build_tied, PLAN_TP, 8, 2, 2, 1, 2, 4, NULL, true},
    {build_tied, PLAN_SEQUENCE, 6, 3, 2, 1, 1, 4, "layer", false},
    {build_nested, PLAN_NONE, 8, 2, 2, 3, 1, 1, NULL, false},
    {build_nested, PLAN_DP, 8, 2, 3, 2, 2, 1, NULL, true},
    {build_nested, PLAN_TP, 8, 2, 2, 3, 2, 2, NULL, true},
    {build_nested, PLAN_TP, 8, 2, 3, 2, 2, 2, "all", true},
    {build_nested, PLAN_TP, 8, 2, 2, 3, 2, 2, "layer", false},
    {build_nested, PLAN_TP, 8, 2, 2, 3, 2, 2, "step", false},
    {build_nested, PLAN_SEQUENCE, 8, 2, 2, 2, 2, 2, "all", false},
    {build_nested, PLAN_SEQUENCE, 8, 1, 2, 0, 2, 2, NULL, true},
    {build_two_loops, PLAN_TP, 8, 2, 2, 3, 2, 2, NULL, true},
    {build_two_loops, PLAN_SEQUENCE, 8, 2, 3, 2, 2, 2, "all", false},
    {build_two_loops, PLAN_DP, 8, 2, 1, 2, 4, 1, "step", true},
    {build_classes, PLAN_NONE, 8, 2, 5, 2, 1, 1, NULL, false},
    {build_classes, PLAN_TP, 8, 2, 4, 1, 2, 2, "all", true},
    {build_classes, PLAN_TP, 8, 2, 4, 3, 2, 2, "step", true},
    {build_classes, PLAN_SEQUENCE, 8, 2, 3, 5, 2, 2, "layer", true},
    {build_classes, PLAN_SEQUENCE, 8, 1, 1, 0, 2, 2, NULL, true},
    {build_classes, PLAN_DP, 8, 2, 2, 0, 4, 1, NULL, true},
    {NULL, PLAN_NONE, 0, 0, 0, 0, 0, 0, NULL, false},
};

/* ---- placing ------------------------------------------------------------------------------------------- */

static void set_plan(sample *x, const shape *s)
{
    if (s->plan == PLAN_NONE)
        return;
    sample_shard(x, "B", DP);
    if (s->plan == PLAN_DP)
        return;
    sample_shard(x, "F", TP);
    sample_shard(x, "V", TP);
    if (s->plan == PLAN_SEQUENCE)
        sample_pin(x, "residual", "B", "S");
}

static void give(sample *x, etch_given *given, const char *name, int64_t value)
{
    *given = (etch_given){
        .var = etch_var(x->sym, name), .name = name, .value = etch_int(x->sym, value), .from = "set"};
}

enum { GIVEN = 6 };

built *build(etch_arena *arena, const shape *s)
{
    built *b = ETCH_NEW(arena, built);
    sample *x = b->x = sample_new(arena);
    const char *const names[GIVEN] = {"batch", "micro", "layers", "steps", "dp", "tp"};
    const int64_t values[GIVEN] = {s->batch, s->micro, s->layers, s->steps, s->dp, s->tp};
    etch_given *given = ETCH_NEW_ARRAY(arena, GIVEN, etch_given);
    for (int i = 0; i < GIVEN; i++)
        give(x, &given[i], names[i], values[i]);
    etch_var_at_least(x->sym, etch_var(x->sym, "layers"), 0);
    etch_var_at_least(x->sym, etch_var(x->sym, "steps"), 0);
    x->b->size = etch_var(x->sym, "batch");
    x->train.micro = etch_var(x->sym, "micro");
    x->train.clip = s->clip;
    x->plan.mesh.at[DP].size = etch_var(x->sym, "dp");
    x->plan.mesh.at[TP].size = etch_var(x->sym, "tp");
    if (s->recompute && strcmp(s->recompute, "all") == 0) {
        x->train.recompute.all = true;
    } else if (s->recompute) {
        ETCH_PUSH(x->arena, &x->train.recompute.selectors, (etch_recomputed){.selector = s->recompute});
    }
    s->build(x, etch_var(x->sym, "layers"), etch_var(x->sym, "steps"));
    set_plan(x, s);
    b->placed = sample_place(x);
    b->options.values = (etch_values){
        .training = b->placed->training, .placed = b->placed, .given = given, .given_count = GIVEN};
    return b;
}

const char *diagnostics_of(const built *b)
{
    etch_buf text = {.arena = b->x->arena};
    etch_buf_puts(&text, "");
    etch_diags_render(b->x->diags, &text);
    return text.text;
}

const etch_job *lower_built(const built *b)
{
    const etch_job *job = NULL;
    etch_status status = etch_lower(b->x->arena, &b->options, &job);
    ck_assert_msg(status == ETCH_OK, "status %d: %s", (int)status, diagnostics_of(b));
    return job;
}

int64_t value_of(const built *b, etch_expr expr)
{
    etch_expr vars[GIVEN], values[GIVEN];
    for (uint32_t i = 0; i < GIVEN; i++) {
        vars[i] = b->options.values.given[i].var;
        values[i] = b->options.values.given[i].value;
    }
    return sample_value(etch_subst(b->x->sym, expr, GIVEN, vars, values));
}
