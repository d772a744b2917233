#include "sample.h"

#include "verify.h"

#include <check.h>
#include <string.h>

static const etch_span nowhere = {0, 0};

sample *sample_new(etch_arena *arena)
{
    sample *x = ETCH_NEW(arena, sample);
    x->arena = arena;
    x->sym = etch_sym_new(arena);
    x->diags = etch_diags_new(arena);
    etch_dtypes dtypes = {.act = ETCH_BF16, .weights = ETCH_BF16, .grads = ETCH_F32, .optim = ETCH_F32};
    x->graph = etch_graph_new(arena, x->sym, x->diags, dtypes, "sample", nowhere);
    x->b = etch_graph_dim(x->graph, "B", etch_int(x->sym, 8), false, nowhere);
    x->s = etch_graph_dim(x->graph, "S", etch_int(x->sym, 16), false, nowhere);
    x->h = etch_graph_dim(x->graph, "H", etch_int(x->sym, 32), false, nowhere);
    x->f = etch_graph_dim(x->graph, "F", etch_int(x->sym, 64), false, nowhere);
    x->v = etch_graph_dim(x->graph, "V", etch_int(x->sym, 128), false, nowhere);
    x->train.batch = x->b;
    x->train.micro = etch_int(x->sym, 2);
    x->train.optimizer.master = true;
    x->train.optimizer.row = etch_row_named(etch_table_builtin(), "adamw");
    x->plan.name = "plan";
    ETCH_PUSH(arena, &x->plan.mesh, (etch_axis){.name = "dp", .size = etch_int(x->sym, 2)});
    ETCH_PUSH(arena, &x->plan.mesh, (etch_axis){.name = "tp", .size = etch_int(x->sym, 4)});
    return x;
}

/* ---- the builder's calls ------------------------------------------------------------------------------- */

static etch_dim *dim_called(const sample *x, char letter)
{
    etch_dim *const dims[] = {x->b, x->s, x->h, x->f, x->v};
    const char *letters = "bshfv", *at = strchr(letters, letter);
    ck_assert_ptr_nonnull(at);
    return dims[at - letters];
}

static uint32_t dims_called(const sample *x, const char *letters, etch_dim **out)
{
    uint32_t rank = 0;
    for (; *letters; letters++)
        out[rank++] = dim_called(x, *letters);
    return rank;
}

static etch_tensor *named(etch_tensor *tensor, const char *name)
{
    ck_assert_ptr_nonnull(tensor);
    etch_graph_label(tensor, name, NULL, 0, nowhere);
    return tensor;
}

etch_tensor *sample_input(sample *x, const char *name, const char *dims, etch_dtype dtype)
{
    etch_dim *list[8];
    uint32_t rank = dims_called(x, dims, list);
    return etch_graph_input(x->graph, name, (etch_dim_view){list, rank}, dtype, nowhere);
}

etch_tensor *sample_weight(sample *x, const char *name, const char *dims)
{
    etch_dim *list[8];
    uint32_t rank = dims_called(x, dims, list);
    return etch_graph_weight(x->graph, name, (etch_dim_view){list, rank}, ETCH_BF16, false, nowhere);
}

etch_tensor *sample_product(sample *x, const char *name, etch_tensor *a, etch_tensor *b, const char *dims)
{
    etch_dim *list[8];
    uint32_t rank = dims_called(x, dims, list);
    return named(etch_graph_product(x->graph, a, b, (etch_dim_view){list, rank}, nowhere), name);
}

etch_tensor *sample_sum(sample *x, const char *name, etch_tensor *a, etch_tensor *b)
{
    return named(etch_graph_sum(x->graph, (etch_tensor *[]){a, b}, 2, 2, nowhere), name);
}

etch_tensor *sample_call(sample *x, const char *name, const char *row, etch_tensor *a, etch_tensor *b,
                         char over, etch_expr number)
{
    etch_tensor *ins[] = {a, b};
    etch_attrs attrs = {.number = number};
    etch_dim_list along = {0};
    if (over)
        ETCH_PUSH(x->arena, &along, dim_called(x, over));
    attrs.over = ETCH_DIMS(along);
    return named(etch_graph_call(x->graph, etch_row_called(x->graph->table, row), ins, b ? 2 : 1, &attrs,
                                 (etch_dim_view){0}, nowhere),
                 name);
}

void sample_tag(sample *x, etch_tensor *tensor, const char *tag)
{
    const char **tags = ETCH_NEW(x->arena, const char *);
    tags[0] = tag;
    etch_graph_label(tensor, tensor->name, tags, 1, nowhere);
}

void sample_loss(sample *x, etch_tensor *value)
{
    etch_tensor *head = sample_weight(x, "head", "hv");
    etch_tensor *labels = sample_input(x, "labels", "bs", ETCH_I32);
    etch_tensor *logits = sample_product(x, "logits", value, head, "bsv");
    sample_tag(x, sample_call(x, "l", "cross_entropy", logits, labels, 'v', NULL), "loss");
}

etch_tensor *sample_mlp(sample *x, etch_tensor *value)
{
    etch_tensor *g = sample_weight(x, "g", "h");
    etch_tensor *w1 = sample_weight(x, "w1", "hf"), *w3 = sample_weight(x, "w3", "hf");
    etch_tensor *w2 = sample_weight(x, "w2", "fh");
    etch_tensor *h = sample_call(x, "h", "rms_norm", value, g, 'h', NULL);
    etch_tensor *gate = sample_product(x, "gate", h, w1, "bsf");
    etch_tensor *up = sample_product(x, "up", h, w3, "bsf");
    etch_tensor *s = sample_call(x, "s", "silu", gate, NULL, 0, NULL);
    etch_tensor *a = sample_product(x, "a", s, up, "bsf");
    return sample_product(x, "y", a, w2, "bsh");
}

sample *sample_residual(etch_arena *arena)
{
    sample *x = sample_new(arena);
    etch_tensor *in = sample_input(x, "x", "bsh", ETCH_BF16);
    etch_tensor *z = sample_sum(x, "z", in, sample_mlp(x, in));
    sample_tag(x, z, "residual");
    etch_tensor *g2 = sample_weight(x, "g2", "h");
    sample_loss(x, sample_call(x, "n", "rms_norm", z, g2, 'h', NULL));
    sample_shard(x, "B", DP);
    return x;
}

/* ---- plans --------------------------------------------------------------------------------------------- */

void sample_shard(sample *x, const char *dim, uint32_t axis)
{
    etch_shard shard = {.dim = dim, .axes = {axis}, .axis_count = 1};
    ETCH_PUSH(x->arena, &x->plan.shards, shard);
}

void sample_pin(sample *x, const char *tag, const char *dim_dp, const char *dim_tp)
{
    etch_pin pin = {.selector = tag};
    etch_shard dp = {.dim = dim_dp, .axes = {DP}, .axis_count = 1},
               tp = {.dim = dim_tp, .axes = {TP}, .axis_count = 1};
    if (dim_dp)
        ETCH_PUSH(x->arena, &pin.shards, dp);
    if (dim_tp)
        ETCH_PUSH(x->arena, &pin.shards, tp);
    ETCH_PUSH(x->arena, &x->plan.pins, pin);
}

static void assert_no_errors(const sample *x)
{
    etch_buf text = {.arena = x->arena};
    etch_diags_render(x->diags, &text);
    ck_assert_msg(etch_error_count(x->diags) == 0, "%s", text.text);
}

etch_placed *sample_place(sample *x)
{
    etch_training *training = etch_train_derive(x->graph, &x->train);
    assert_no_errors(x);
    ck_assert_ptr_nonnull(training);
    etch_placed *placed = verified(etch_place(training, &x->plan, x->granularity));
    assert_no_errors(x);
    ck_assert_ptr_nonnull(placed);
    return placed;
}

/* ---- kernels as text ----------------------------------------------------------------------------------- */

static void print_values(etch_buf *out, etch_value *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(out, " %s", values[i]->tensor->name);
}

static void print_kernel(const etch_placed *placed, const etch_kernel *kernel, etch_buf *out)
{
    etch_sym *sym = placed->training->graph->sym;
    for (uint32_t i = 0; i < kernel->steps.count; i++)
        etch_buf_printf(out, "%s%s", i ? "+" : "", etch_row_name(kernel->steps.at[i]->row));
    if (kernel->anchor->collective != ETCH_NO_COLLECTIVE) {
        etch_buf_printf(out, " over %s:", etch_axes_label(placed, kernel->anchor->axes));
        print_values(out, kernel->reads.at, kernel->reads.count);
        etch_buf_printf(out, ", %s bytes\n", etch_expr_text(sym, kernel->bytes));
        return;
    }
    etch_buf_puts(out, ":");
    print_values(out, kernel->reads.at, kernel->reads.count);
    etch_buf_puts(out, " ->");
    print_values(out, kernel->writes.at, kernel->writes.count);
    for (uint32_t i = 0; i < kernel->steps.count; i++)
        for (uint32_t k = 0; k < kernel->steps.at[i]->out_count; k++)
            if (kernel->steps.at[i]->accumulate_into[k])
                etch_buf_printf(out, ", adds %s", kernel->steps.at[i]->accumulate_into[k]->name);
    etch_buf_printf(out, ", %s FLOP, %s bytes\n", etch_expr_text(sym, kernel->flop),
                    etch_expr_text(sym, kernel->bytes));
}

static void print_region(const etch_placed *placed, const etch_placed_region *region, int depth,
                         etch_buf *out)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (loop) {
            etch_buf_printf(out, "%*s%s:\n", 4 * depth, "", loop->loop->name);
            for (uint32_t k = 0; k < loop->bodies.count; k++)
                print_region(placed, loop->bodies.at[k], depth + 1, out);
        } else if (next < region->kernels.count && region->kernels.at[next]->item == i) {
            etch_buf_printf(out, "%*s", 4 * depth, "");
            print_kernel(placed, region->kernels.at[next++], out);
        }
    }
    ck_assert_uint_eq(next, region->kernels.count);
}

const char *sample_kernels(const etch_placed *placed, const etch_placed_region *region)
{
    etch_buf out = {.arena = placed->arena};
    etch_buf_puts(&out, "");
    print_region(placed, region, 0, &out);
    return out.text;
}

/* ---- costs --------------------------------------------------------------------------------------------- */

int64_t sample_value(etch_expr constant)
{
    int64_t value = 0;
    ck_assert(etch_to_i64(constant, &value));
    return value;
}

int64_t sample_total(sample *x, const etch_cost_list *items, etch_measure measure, etch_phase phase)
{
    etch_expr sum = etch_int(x->sym, 0);
    for (uint32_t i = 0; i < items->count; i++) {
        const etch_cost *item = &items->at[i];
        if (item->measure == measure && (phase == ETCH_PHASE_COUNT || item->phase == phase))
            sum = etch_add(x->sym, sum, etch_mul(x->sym, item->each, item->times));
    }
    return sample_value(sum);
}
