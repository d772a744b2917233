#include "exec_model.h"

#include "exec_env.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const etch_span nowhere = {0, 0};

/* ---- words ------------------------------------------------------------------------------------------ */

/* The next word of a text, NULL at its end. */
static const char *next_word(etch_arena *arena, const char **text)
{
    const char *start = *text + strspn(*text, " ");
    size_t length = strcspn(start, " ");
    *text = start + length;
    return length ? etch_copy_text(arena, start, length) : NULL;
}

/* Cuts a word at the first `mark`; returns what is behind it. */
static const char *cut_at(etch_arena *arena, const char **word, char mark)
{
    const char *at = strchr(*word, mark);
    ck_assert_msg(at != NULL, "%s has no %c", *word, mark);
    *word = etch_copy_text(arena, *word, (size_t)(at - *word));
    return at + 1;
}

/* ---- graphs ----------------------------------------------------------------------------------------- */

exec_model *exec_model_new(etch_arena *arena, const char *dims, uint32_t micro)
{
    exec_model *m = ETCH_NEW(arena, exec_model);
    m->arena = arena;
    m->sym = etch_sym_new(arena);
    m->diags = etch_diags_new(arena);
    const etch_dtypes dtypes = {.act = ETCH_BF16, .weights = ETCH_BF16, .grads = ETCH_F32, .optim = ETCH_F32};
    m->graph = etch_graph_new(arena, m->sym, m->diags, dtypes, "model", nowhere);
    for (const char *word; (word = next_word(arena, &dims)) != NULL;) {
        const char *size = cut_at(arena, &word, '=');
        etch_graph_dim(m->graph, word, etch_int(m->sym, atoi(size)), false, nowhere);
    }
    m->train = (etch_train){.batch = exec_model_dim(m, "B"),
                            .micro = etch_int(m->sym, micro),
                            .optimizer = {.row = etch_row_named(etch_table_builtin(), "adamw"),
                                          .rest = etch_row_named(etch_table_builtin(), "adamw"),
                                          .steps = etch_int(m->sym, 3),
                                          .master = true}};
    return m;
}

etch_dim *exec_model_dim(const exec_model *m, const char *name)
{
    for (uint32_t i = m->graph->dims.count; i-- > 0;)
        if (strcmp(m->graph->dims.at[i]->name, name) == 0 && !m->graph->dims.at[i]->window_of)
            return m->graph->dims.at[i];
    ck_abort_msg("no dim %s", name);
    return NULL;
}

typedef struct dim_list {
    etch_dim *at[8];
    uint32_t count;
} dim_list;

static dim_list read_dims(exec_model *m, const char *text)
{
    dim_list list = {.count = 0};
    for (const char *word; (word = next_word(m->arena, &text)) != NULL;)
        list.at[list.count++] = exec_model_dim(m, word);
    return list;
}

static etch_dim_view kept_dims(exec_model *m, const char *text)
{
    dim_list list = read_dims(m, text);
    etch_dim **dims = ETCH_NEW_ARRAY(m->arena, list.count, etch_dim *);
    for (uint32_t i = 0; i < list.count; i++)
        dims[i] = list.at[i];
    return (etch_dim_view){dims, list.count};
}

static void fail_on_errors(const exec_model *m)
{
    if (etch_error_count(m->diags) == 0)
        return;
    etch_buf text = {.arena = m->arena};
    etch_diags_render(m->diags, &text);
    ck_abort_msg("%s", text.text);
}

static etch_tensor *named(const exec_model *m, etch_tensor *tensor, const char *name)
{
    fail_on_errors(m);
    etch_graph_label(tensor, name, tensor->tags, tensor->tag_count, nowhere);
    return tensor;
}

/* Inputs are the model's, wherever they are read. */
static etch_tensor *input(exec_model *m, const char *name, const char *dims, etch_dtype dtype)
{
    etch_graph *graph = m->graph;
    etch_region *region = graph->region;
    etch_scope *scope = graph->scope;
    dim_list list = read_dims(m, dims);
    graph->region = graph->forward;
    graph->scope = graph->scopes.at[0];
    etch_tensor *made = etch_graph_input(graph, name, ETCH_DIMS(list), dtype, nowhere);
    graph->region = region;
    graph->scope = scope;
    return made;
}

etch_tensor *exec_input(exec_model *m, const char *name, const char *dims)
{
    return input(m, name, dims, ETCH_BF16);
}

etch_tensor *exec_ids(exec_model *m, const char *name, const char *dims)
{
    return input(m, name, dims, ETCH_I32);
}

etch_tensor *exec_weight(exec_model *m, const char *name, const char *dims)
{
    dim_list list = read_dims(m, dims);
    const bool partial = m->partial & 1;
    m->partial >>= 1;
    if (!partial)
        return etch_graph_weight(m->graph, name, ETCH_DIMS(list), ETCH_BF16, false, nowhere);
    list.at[list.count] = exec_model_dim(m, "Z");
    etch_tensor *parts = etch_graph_weight(m->graph, name, (etch_dim_view){list.at, list.count + 1},
                                           ETCH_BF16, false, nowhere);
    return named(m, etch_graph_reduce(m->graph, parts, ETCH_DIMS(list), nowhere), name);
}

etch_tensor *exec_product(exec_model *m, const char *name, etch_tensor *a, etch_tensor *b, const char *dims)
{
    dim_list keep = read_dims(m, dims);
    return named(m, etch_graph_product(m->graph, a, b, ETCH_DIMS(keep), nowhere), name);
}

etch_tensor *exec_quotient(exec_model *m, const char *name, etch_tensor *a, etch_tensor *b, const char *dims)
{
    dim_list keep = read_dims(m, dims);
    return named(m, etch_graph_quotient(m->graph, a, b, ETCH_DIMS(keep), nowhere), name);
}

etch_tensor *exec_sum(exec_model *m, const char *name, etch_tensor *a, etch_tensor *b)
{
    return named(m, etch_graph_sum(m->graph, (etch_tensor *[]){a, b}, 2, 2, nowhere), name);
}

etch_tensor *exec_sum_of(exec_model *m, const char *name, etch_tensor *const *terms, uint32_t count,
                         uint32_t added)
{
    return named(m, etch_graph_sum(m->graph, terms, count, added, nowhere), name);
}

etch_tensor *exec_difference(exec_model *m, const char *name, etch_tensor *a, etch_tensor *b)
{
    return named(m, etch_graph_sum(m->graph, (etch_tensor *[]){a, b}, 2, 1, nowhere), name);
}

etch_tensor *exec_reduce(exec_model *m, const char *name, etch_tensor *a, const char *dims)
{
    dim_list keep = read_dims(m, dims);
    return named(m, etch_graph_reduce(m->graph, a, ETCH_DIMS(keep), nowhere), name);
}

etch_tensor *exec_copies(exec_model *m, const char *name, etch_tensor *a, const char *dims)
{
    const dim_list to = read_dims(m, dims);
    return named(m, etch_graph_copies(m->graph, a, (etch_dim_view){to.at, to.count}, nowhere), name);
}

etch_tensor *exec_constant(exec_model *m, const char *name, const char *dims, int num, int den)
{
    const etch_expr number = den ? etch_ratio(m->sym, num, den) : NULL;
    return named(m, etch_graph_constant(m->graph, kept_dims(m, dims), number, nowhere), name);
}

etch_tensor *exec_rename(exec_model *m, const char *name, etch_tensor *a, const char *from, const char *to)
{
    dim_list before = read_dims(m, from), after = read_dims(m, to);
    return named(m, etch_graph_rename(m->graph, a, before.at, after.at, before.count, nowhere), name);
}

static etch_tensor *call_row(exec_model *m, const char *name, const char *row, etch_tensor *const *ins,
                             uint32_t count, const etch_attrs *attrs, const char *want)
{
    dim_list declared = read_dims(m, want ? want : "");
    etch_tensor *result = etch_graph_call(m->graph, etch_row_named(m->graph->table, row), ins, count, attrs,
                                          want ? ETCH_DIMS(declared) : (etch_dim_view){0}, nowhere);
    return named(m, result, name);
}

etch_tensor *exec_scatter(exec_model *m, const char *name, etch_tensor *a, etch_tensor *ids, const char *over,
                          const char *dims)
{
    const etch_attrs attrs = {.over = kept_dims(m, over)};
    return call_row(m, name, "scatter", (etch_tensor *[]){a, ids}, 2, &attrs, dims);
}

etch_tensor *exec_call_row(exec_model *m, const char *name, const char *row, const char *over, etch_tensor *a,
                           etch_tensor *b, etch_tensor *c)
{
    etch_attrs attrs = {0};
    etch_tensor *ins[] = {a, b, c};
    attrs.over = kept_dims(m, over);
    return call_row(m, name, row, ins, c ? 3 : b ? 2 : 1, &attrs, NULL);
}

etch_tensor *exec_call_number(exec_model *m, const char *name, const char *row, int num, int den,
                              etch_tensor *a)
{
    const etch_attrs attrs = {.number = etch_ratio(m->sym, num, den)};
    return call_row(m, name, row, &a, 1, &attrs, NULL);
}

etch_tensor *exec_batch_norm(exec_model *m, const char *name, const char *keep, etch_tensor *x,
                             etch_tensor *g, etch_tensor *b)
{
    etch_attrs attrs = {0};
    etch_tensor *ins[] = {x, g, b};
    attrs.kept = kept_dims(m, keep);
    return call_row(m, name, "batch_norm", ins, b ? 3 : g ? 2 : 1, &attrs, NULL);
}

etch_tensor *exec_cast(exec_model *m, const char *name, etch_tensor *a, etch_dtype dtype)
{
    const etch_attrs attrs = {.dtype = (uint32_t)dtype + 1};
    return call_row(m, name, "cast", &a, 1, &attrs, NULL);
}

static etch_tensor *call_with_map(exec_model *m, const char *name, const char *row, etch_tensor *a,
                                  const char *over, const char *to)
{
    etch_attrs attrs = {0};
    attrs.over = kept_dims(m, over);
    attrs.to = kept_dims(m, to);
    return call_row(m, name, row, &a, 1, &attrs, NULL);
}

etch_tensor *exec_slice(exec_model *m, const char *name, etch_tensor *a, const char *over, const char *to)
{
    return call_with_map(m, name, "slice", a, over, to);
}

etch_tensor *exec_pad(exec_model *m, const char *name, etch_tensor *a, const char *over, const char *to)
{
    return call_with_map(m, name, "pad", a, over, to);
}

etch_tensor *exec_regroup(exec_model *m, const char *name, etch_tensor *a, const char *from, const char *to)
{
    dim_list before = read_dims(m, from), after = read_dims(m, to);
    const etch_regroup group = {{before.at, before.count}, {after.at, after.count}};
    return named(m, etch_graph_regroup(m->graph, a, &group, 1, nowhere), name);
}

etch_tensor *exec_concat(exec_model *m, const char *name, const char *over, const char *dims, etch_tensor *a,
                         etch_tensor *b, etch_tensor *c)
{
    etch_attrs attrs = {0};
    etch_tensor *ins[] = {a, b, c};
    attrs.over = kept_dims(m, over);
    return call_row(m, name, "concat", ins, c ? 3 : 2, &attrs, dims);
}

void exec_split(exec_model *m, etch_tensor *a, const char *over, const char *const *dims, etch_tensor **out)
{
    etch_attrs attrs = {0};
    etch_dim_view want[16];
    uint32_t count = 0;
    attrs.over = kept_dims(m, over);
    for (; dims[count]; count++)
        want[count] = kept_dims(m, dims[count]);
    etch_graph_call_several(m->graph, etch_row_named(m->graph->table, "split"), a, &attrs, want, out, count,
                            nowhere);
    for (uint32_t i = 0; i < count; i++)
        named(m, out[i], etch_text(m->arena, "part%u", i));
}

etch_tensor *exec_window(exec_model *m, const char *row, const char *dims, const char *over, etch_tensor *x,
                         etch_tensor *w, const char *kernel, int size, int stride, bool causal)
{
    etch_attrs attrs = {.causal = causal, .stride = etch_int(m->sym, stride)};
    etch_tensor *ins[] = {x, w};
    attrs.over = kept_dims(m, over);
    attrs.kernel = kept_dims(m, kernel);
    attrs.size = w ? NULL : etch_int(m->sym, size);
    return call_row(m, row, row, ins, w ? 2 : 1, &attrs, dims);
}

etch_tensor *exec_scan(exec_model *m, const char *name, etch_tensor *const ins[5], const char *over,
                       const char *state, int chunk)
{
    etch_attrs attrs = {.chunk = etch_int(m->sym, chunk)};
    attrs.over = kept_dims(m, over);
    attrs.state = kept_dims(m, state);
    return call_row(m, name, "ssd", ins, 5, &attrs, NULL);
}

static etch_expr number_or_none(const exec_model *m, int number)
{
    return number ? etch_int(m->sym, number) : NULL;
}

etch_tensor *exec_cache(exec_model *m, const char *name, etch_tensor *a, const char *over, const char *to,
                        int window)
{
    etch_attrs attrs = {.window = number_or_none(m, window)};
    etch_buf want = {.arena = m->arena};
    attrs.over = kept_dims(m, over);
    for (uint32_t i = 0; i < a->rank; i++)
        etch_buf_printf(&want, "%s ", a->dims[i] == attrs.over.at[0] ? to : a->dims[i]->name);
    return call_row(m, name, "cache", &a, 1, &attrs, want.text);
}

etch_tensor *exec_attend(exec_model *m, const char *name, etch_tensor *q, etch_tensor *k, etch_tensor *v,
                         const char *over, const char *dot, bool causal)
{
    return exec_attend_with(m, name, q, k, v, over, dot, (exec_options){.causal = causal});
}

etch_tensor *exec_attend_with(exec_model *m, const char *name, etch_tensor *q, etch_tensor *k, etch_tensor *v,
                              const char *over, const char *dot, exec_options options)
{
    etch_attrs attrs = {.causal = options.causal,
                        .window = number_or_none(m, options.window),
                        .cap = number_or_none(m, options.cap),
                        .pairs = number_or_none(m, options.pairs)};
    etch_tensor *ins[5] = {q, k, v};
    uint32_t count = 3;
    if (options.sink)
        ins[count++] = options.sink;
    else
        attrs.absent |= 1u << 3;
    if (options.bias)
        ins[count++] = options.bias;
    else
        attrs.absent |= 1u << 4;
    attrs.over = kept_dims(m, over);
    attrs.dot = kept_dims(m, dot);
    return call_row(m, name, "sdpa", ins, count, &attrs, NULL);
}

etch_tensor *exec_masked_softmax(exec_model *m, const char *name, etch_tensor *scores, const char *over,
                                 int window)
{
    etch_attrs attrs = {.causal = true, .window = number_or_none(m, window)};
    attrs.over = kept_dims(m, over);
    return call_row(m, name, "softmax", &scores, 1, &attrs, NULL);
}

etch_tensor *exec_topk(exec_model *m, const char *name, etch_tensor *scores, const char *over,
                       const char *choices)
{
    etch_attrs attrs = {0};
    etch_buf want = {.arena = m->arena};
    attrs.over = kept_dims(m, over);
    for (uint32_t i = 0; i < scores->rank; i++)
        etch_buf_printf(&want, "%s ", scores->dims[i] == attrs.over.at[0] ? choices : scores->dims[i]->name);
    return call_row(m, name, "topk", &scores, 1, &attrs, want.text);
}

etch_tensor *exec_dispatch(exec_model *m, const char *name, etch_tensor *x, etch_tensor *idx,
                           const char *over, const char *slots)
{
    etch_attrs attrs = {0};
    etch_tensor *ins[] = {x, idx};
    attrs.over = kept_dims(m, over);
    attrs.slots = kept_dims(m, slots);
    return call_row(m, name, "dispatch", ins, 2, &attrs, NULL);
}

etch_tensor *exec_collect(exec_model *m, const char *name, etch_tensor *y, etch_tensor *idx,
                          const char *experts, const char *slots)
{
    etch_attrs attrs = {0};
    etch_tensor *ins[] = {y, idx};
    attrs.over = kept_dims(m, etch_text(m->arena, "%s %s", experts, slots));
    return call_row(m, name, "collect", ins, 2, &attrs, NULL);
}

void exec_tag(exec_model *m, etch_tensor *tensor, const char *tag)
{
    const char **tags = ETCH_NEW_ARRAY(m->arena, tensor->tag_count + 1, const char *);
    for (uint32_t i = 0; i < tensor->tag_count; i++)
        tags[i] = tensor->tags[i];
    tags[tensor->tag_count] = tag;
    etch_graph_label(tensor, tensor->name, tags, tensor->tag_count + 1, nowhere);
}

void exec_head_loss(exec_model *m, etch_tensor *value, etch_tensor *head)
{
    etch_tensor *labels = exec_ids(m, "labels", "B S");
    etch_tensor *logits = exec_product(m, "logits", value, head, "B S V");
    exec_tag(m, exec_call_row(m, "l", "cross_entropy", "V", logits, labels, NULL), "loss");
}

void exec_sum_loss(exec_model *m, etch_tensor *value, const char *dims)
{
    exec_tag(m, exec_product(m, "l", value, exec_input(m, "weights_of_loss", dims), ""), "loss");
}

etch_tensor *exec_enter(exec_model *m, const char *module, etch_tensor *argument)
{
    etch_graph_enter(m->graph, module, nowhere);
    return etch_graph_pass(m->graph, ETCH_ENTER, argument, argument->name, nowhere);
}

etch_tensor *exec_leave(exec_model *m, const char *name, etch_tensor *result)
{
    etch_tensor *passed = etch_graph_pass(m->graph, ETCH_LEAVE, result, name, nowhere);
    etch_graph_leave(m->graph);
    return passed;
}

etch_tensor *exec_repeat(exec_model *m, const char *name, uint32_t count, etch_tensor *value)
{
    etch_graph_begin(m->graph, name, etch_int(m->sym, count), nowhere);
    return etch_graph_carry(m->graph, value, nowhere);
}

etch_tensor *exec_or(exec_model *m, etch_tensor *value)
{
    etch_tensor *in = NULL;
    etch_graph_next_body(m->graph, &value, &in, 1);
    return in;
}

void exec_classes(exec_model *m, const char *digits)
{
    etch_pattern *pattern = ETCH_NEW(m->arena, etch_pattern);
    etch_loop *loop = m->graph->region->loop;
    pattern->period = (uint32_t)strlen(digits);
    ck_assert_uint_eq(exec_integer(loop->count), pattern->period);
    etch_segment all = {.first = etch_int(m->sym, 0),
                        .end = loop->count,
                        .class_of = ETCH_NEW_ARRAY(m->arena, pattern->period, uint32_t)};
    for (uint32_t i = 0; i < pattern->period; i++)
        all.class_of[i] = (uint32_t)(digits[i] - '0');
    ETCH_PUSH(m->arena, &pattern->segments, all);
    etch_graph_classes(m->graph, loop, pattern);
}

etch_tensor *exec_end(exec_model *m, etch_tensor *value)
{
    etch_tensor *result = NULL;
    etch_graph_end(m->graph, &value, &result, 1);
    fail_on_errors(m);
    return result;
}

etch_training *exec_serve(exec_model *m, etch_tensor *wanted)
{
    etch_training *training = ETCH_NEW(m->arena, etch_training);
    etch_graph_keep(m->graph, &wanted, 1);
    training->graph = m->graph;
    training->train.micro = etch_int(m->sym, 1);
    fail_on_errors(m);
    return training;
}

static void set_recompute(exec_model *m, const char *text)
{
    static const char needed[] = "needed";
    etch_recompute *recompute = &m->train.recompute;
    *recompute = (etch_recompute){0};
    recompute->needed = text && strncmp(text, needed, sizeof needed - 1) == 0;
    const char *at = !text ? "" : recompute->needed ? text + sizeof needed - 1 : text;
    recompute->all = text && (strcmp(text, "all") == 0 || strcmp(text, needed) == 0);
    while (!recompute->all && *at) {
        at += strspn(at, "(,)");
        size_t length = strcspn(at, "(,)");
        if (length > 0)
            ETCH_PUSH(m->arena, &recompute->selectors,
                      (etch_recomputed){.selector = etch_text(m->arena, "%.*s", (int)length, at)});
        at += length;
    }
}

etch_training *exec_try_train(exec_model *m, const char *recompute)
{
    set_recompute(m, recompute);
    return etch_train_derive(m->graph, &m->train);
}

etch_training *exec_train(exec_model *m, const char *recompute)
{
    if (m->graph->serves)
        return exec_serve(m, m->served);
    etch_training *training = exec_try_train(m, recompute);
    fail_on_errors(m);
    ck_assert_ptr_nonnull(training);
    return training;
}

/* ---- plans ------------------------------------------------------------------------------------------ */

static uint32_t axis_called(const etch_plan *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->mesh.count; i++)
        if (strcmp(plan->mesh.at[i].name, name) == 0)
            return i;
    ck_abort_msg("no axis %s", name);
    return 0;
}

/* "a,b": how many. */
static uint32_t read_list(etch_arena *arena, const etch_plan *plan, const char *axes, uint32_t *into)
{
    uint32_t count = 0;
    while (*axes) {
        size_t length = strcspn(axes, ",");
        into[count++] = axis_called(plan, etch_copy_text(arena, axes, length));
        axes += length + (axes[length] == ',');
    }
    return count;
}

/* "K@tp", "K@a,b", "K@". */
static etch_shard read_shard(etch_arena *arena, const etch_plan *plan, const char *word)
{
    etch_shard shard = {.dim = word};
    const char *axes = cut_at(arena, &shard.dim, '@');
    shard.axis_count = read_list(arena, plan, axes, shard.axes);
    return shard;
}

static uint32_t read_bits(etch_arena *arena, const etch_plan *plan, const char *list)
{
    uint32_t axes[ETCH_MAX_AXES], bits = 0;
    const uint32_t count = read_list(arena, plan, list, axes);
    for (uint32_t i = 0; i < count; i++)
        bits |= 1u << axes[i];
    return bits;
}

/* "a,b", "2 a", "3 a,b kept", "3 a,b always", "3 a,b again=b", "3 a whole", "3 a root weight now". */
static void read_zero(etch_arena *arena, const etch_plan *plan, etch_zero *zero, const char *line)
{
    const char *word = next_word(arena, &line);
    *zero = (etch_zero){.level = 1, .whole = true, .ahead = 1};
    if (strcmp(word, "2") == 0 || strcmp(word, "3") == 0) {
        zero->level = (uint32_t)atoi(word);
        zero->whole = false;
        word = next_word(arena, &line);
    }
    zero->axes = read_bits(arena, plan, word);
    while ((word = next_word(arena, &line)) != NULL) {
        if (strcmp(word, "whole") == 0)
            zero->whole = true;
        else if (strcmp(word, "kept") == 0)
            zero->keep = ETCH_KEEP_MICROBATCH;
        else if (strcmp(word, "always") == 0)
            zero->keep = ETCH_KEEP_STEP;
        else if (strcmp(word, "root") == 0)
            zero->root = true;
        else if (strcmp(word, "weight") == 0)
            zero->by_weight = true;
        else if (strcmp(word, "now") == 0)
            zero->ahead = 0;
        else if (strncmp(word, "again=", strlen("again=")) == 0)
            zero->backward_axes = read_bits(arena, plan, word + strlen("again="));
        else
            ck_abort_msg("no option %s of zero", word);
    }
}

/* "a,b": the words, and how many. */
static const char *const *read_names(etch_arena *arena, const char *list, uint32_t *count)
{
    ETCH_VEC(const char *) names = {0};
    while (*list) {
        size_t length = strcspn(list, ",");
        ETCH_PUSH(arena, &names, etch_copy_text(arena, list, length));
        list += length + (list[length] == ',');
    }
    *count = names.count;
    return names.at;
}

/* "F0,F1.1,B0": the actions of a stage; "&B0" is in the slot of the one before it. */
static const etch_action *read_actions(etch_arena *arena, const char *list, etch_action_order *order,
                                       uint64_t *count)
{
    static const char letters[] = "FBIW";
    uint32_t words_count;
    const char *const *words = read_names(arena, list, &words_count);
    etch_action *actions = ETCH_NEW_ARRAY(arena, words_count, etch_action);
    for (uint32_t i = 0; i < words_count; i++) {
        const char *chunk = strchr(words[i], '.'), *word = words[i] + (words[i][0] == '&');
        actions[i] = (etch_action){.kind = (etch_action_kind)(strchr(letters, word[0]) - letters),
                                   .chunk = chunk ? (uint32_t)atoi(chunk + 1) : 0,
                                   .microbatch = (uint64_t)atoi(word + 1),
                                   .overlaps = word > words[i]};
        order->overlaps = order->overlaps || actions[i].overlaps;
        order->has_halves = order->has_halves || actions[i].kind > ETCH_ACTION_BACKWARD;
        if (actions[i].chunk >= order->chunks)
            order->chunks = actions[i].chunk + 1;
        if (actions[i].microbatch >= order->microbatches)
            order->microbatches = actions[i].microbatch + 1;
    }
    *count = words_count;
    return actions;
}

/* "F0,F1,B0,B1;F0,B0,F1,B1": an order of each stage. */
static const etch_schedule *read_order(etch_arena *arena, const char *list, etch_chunk_map map)
{
    enum { MOST = 8 };
    etch_action_order *order = ETCH_NEW(arena, etch_action_order);
    const etch_action **actions = ETCH_NEW_ARRAY(arena, MOST, const etch_action *);
    uint64_t *counts = ETCH_NEW_ARRAY(arena, MOST, uint64_t);
    etch_order_fault fault;
    *order = (etch_action_order){.map = map, .actions = actions, .counts = counts};
    for (size_t length; *list; list += length + (list[length] == ';')) {
        const uint32_t stage = order->stages++;
        length = strcspn(list, ";");
        ck_assert_uint_lt(stage, MOST);
        actions[stage] = read_actions(arena, etch_copy_text(arena, list, length), order, &counts[stage]);
    }
    ck_assert_msg(etch_order_check(arena, order, &fault), "the order is refused");
    return etch_order_schedule(arena, order);
}

/* "layer,head@pp", and in any order: "gpipe", "interleaved", "virtual=2", "counts=1,2,1",
 * "list=F0,B0;F0,B0"; "mirrored=.." of chunks that come back. */
static void read_stage(etch_arena *arena, etch_sym *sym, etch_plan *plan, const char *line)
{
    etch_stage_line *stage = ETCH_NEW(arena, etch_stage_line);
    const char *word = next_word(arena, &line), *axes = cut_at(arena, &word, '@');
    stage->selectors = read_names(arena, word, &stage->selector_count);
    stage->selector_spans = ETCH_NEW_ARRAY(arena, stage->selector_count, etch_span);
    stage->axis_count = read_list(arena, plan, axes, stage->axes);
    stage->schedule = etch_schedule_default();
    stage->chunks = etch_int(sym, 1);
    while ((word = next_word(arena, &line)) != NULL) {
        if (strncmp(word, "virtual=", strlen("virtual=")) == 0) {
            stage->chunks = etch_int(sym, atoi(word + strlen("virtual=")));
        } else if (strncmp(word, "counts=", strlen("counts=")) == 0) {
            const char *const *numbers = read_names(arena, word + strlen("counts="), &stage->count_count);
            etch_expr *counts = ETCH_NEW_ARRAY(arena, stage->count_count, etch_expr);
            for (uint32_t i = 0; i < stage->count_count; i++)
                counts[i] = etch_int(sym, atoi(numbers[i]));
            stage->counts = counts;
        } else if (strncmp(word, "list=", strlen("list=")) == 0 ||
                   strncmp(word, "mirrored=", strlen("mirrored=")) == 0) {
            stage->schedule =
                read_order(arena, strchr(word, '=') + 1, *word == 'l' ? ETCH_MAP_LOOPED : ETCH_MAP_MIRRORED);
            stage->chunks = etch_int(sym, etch_schedule_order(stage->schedule)->chunks);
        } else {
            stage->schedule = etch_schedule_named(word);
            ck_assert_msg(stage->schedule != NULL, "no schedule %s", word);
            stage->chunks = etch_int(sym, etch_schedule_chunks(stage->schedule));
        }
    }
    plan->stage = stage;
}

static etch_pin read_pin(etch_arena *arena, const etch_plan *plan, const char *line)
{
    etch_pin pin = {.selector = next_word(arena, &line)};
    for (const char *word; (word = next_word(arena, &line)) != NULL;)
        if (strcmp(word, "..") == 0)
            pin.rest = true;
        else
            ETCH_PUSH(arena, &pin.shards, read_shard(arena, plan, word));
    return pin;
}

/* "a,b": a scope of both. */
static etch_override scope_of(etch_arena *arena, const char *list)
{
    etch_override scope = {0};
    scope.selectors = read_names(arena, list, &scope.selector_count);
    return scope;
}

static void read_override(etch_arena *arena, etch_plan *plan, const char *line)
{
    const char *inner = next_word(arena, &line), *outer = inner;
    etch_override scope = {0};
    inner = strchr(outer, '>') ? cut_at(arena, &outer, '>') : "";
    scope = scope_of(arena, outer);
    if (*inner) {
        ETCH_PUSH(arena, &plan->overrides, scope);
        scope = scope_of(arena, inner);
        scope.outer = plan->overrides.count;
    }
    for (const char *word; (word = next_word(arena, &line)) != NULL;) {
        if (strcmp(word, "pin") == 0) {
            ETCH_PUSH(arena, &scope.pins, read_pin(arena, plan, line));
            break;
        }
        if (strcmp(word, "zero") == 0) {
            read_zero(arena, plan, &scope.zero, line);
            break;
        }
        ETCH_PUSH(arena, &scope.shards, read_shard(arena, plan, word));
    }
    ETCH_PUSH(arena, &plan->overrides, scope);
}

static void read_pads(etch_arena *arena, etch_sym *sym, etch_plan *plan, const char *line)
{
    for (const char *word; (word = next_word(arena, &line)) != NULL;) {
        const char *multiple = cut_at(arena, &word, '=');
        ETCH_PUSH(arena, &plan->pads, (etch_pad){.dim = word, .multiple = etch_int(sym, atoi(multiple))});
    }
}

static void read_line(etch_arena *arena, etch_sym *sym, etch_plan *plan, const char *line)
{
    for (const char *word; (word = next_word(arena, &line)) != NULL;) {
        if (strcmp(word, "pin") == 0) {
            ETCH_PUSH(arena, &plan->pins, read_pin(arena, plan, line));
            return;
        }
        if (strcmp(word, "for") == 0) {
            read_override(arena, plan, line);
            return;
        }
        if (strcmp(word, "pad") == 0) {
            read_pads(arena, sym, plan, line);
            return;
        }
        if (strcmp(word, "zero") == 0) {
            read_zero(arena, plan, &plan->zero, line);
            return;
        }
        if (strcmp(word, "stage") == 0) {
            read_stage(arena, sym, plan, line);
            return;
        }
        if (strcmp(word, "each") == 0) {
            plan->reduce_each = true;
            return;
        }
        if (strcmp(word, "ddp") == 0) {
            plan->bucketing = ETCH_BUCKET_BY_TENSOR;
            return;
        }
        if (strcmp(word, "contiguous") == 0) {
            plan->contiguous = true;
            return;
        }
        if (strcmp(word, "rings") == 0) {
            plan->rings = true;
            return;
        }
        if (strcmp(word, "keep") == 0) {
            plan->keep_gathers = true;
            return;
        }
        ETCH_PUSH(arena, &plan->shards, read_shard(arena, plan, word));
    }
}

static void read_axes(etch_arena *arena, etch_sym *sym, etch_plan *plan, const char *line)
{
    for (const char *word; (word = next_word(arena, &line)) != NULL;) {
        const char *size = cut_at(arena, &word, '=');
        ETCH_PUSH(arena, &plan->mesh, (etch_axis){.name = word, .size = etch_int(sym, atoi(size))});
    }
}

etch_plan *exec_plan(etch_arena *arena, etch_sym *sym, const char *text)
{
    etch_plan *plan = ETCH_NEW(arena, etch_plan);
    plan->name = "plan";
    for (bool first = true; *text; first = false) {
        size_t length = strcspn(text, "|");
        const char *line = etch_copy_text(arena, text, length);
        if (first)
            read_axes(arena, sym, plan, line);
        else
            read_line(arena, sym, plan, line);
        text += length + (text[length] == '|');
    }
    return plan;
}
