/* The text of a random model and plan is that model and that plan: what a failure prints reproduces it, and
 * what the language makes of a text is what the builder makes of the same calls. */
#include "effort.h"
#include "exec_env.h"
#include "exec_random.h"
#include "exec_spec.h"
#include "lang/lang.h"
#include "suite.h"
#include "verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODELS = 300, PLANS = 2 };

/* ---- what is compared ------------------------------------------------------------------------------- */

static void add_costs(etch_sym *sym, const etch_cost_list *costs, const etch_placed *placed, etch_buf *out)
{
    for (uint32_t i = 0; i < costs->count; i++) {
        const etch_cost *c = &costs->at[i];
        etch_buf_printf(out, "%d %s", (int)c->measure, etch_expr_text(sym, c->each));
        etch_buf_printf(out, " x %s", etch_expr_text(sym, c->times));
        etch_buf_printf(out, ", %s, %s", etch_phase_name(c->phase), c->row ? etch_row_name(c->row) : "-");
        etch_buf_printf(out, ", %s%s%s, %s", c->matmul ? "matmul " : "", c->trainable ? "trained " : "",
                        c->of_weights ? "of weights " : "", c->tensor ? c->tensor->name : "-");
        if (placed)
            etch_buf_printf(out, ", %s over %s", etch_collective_name(c->collective),
                            etch_axes_label(placed, c->axes));
        etch_buf_puts(out, "\n");
    }
}

static void add_saved(const etch_training *training, etch_buf *out)
{
    etch_saved_list saved = {0};
    etch_graph_saved(training, &saved);
    for (uint32_t i = 0; i < saved.count; i++) {
        const etch_saved *s = &saved.at[i];
        etch_buf_printf(out, "saved %s: %s", s->tensor->name,
                        etch_expr_text(training->graph->sym, s->elements));
        etch_buf_printf(out, " x %u x %s\n", s->width, etch_expr_text(training->graph->sym, s->times));
    }
}

static const char *told(const etch_training *training)
{
    etch_buf out = {.arena = training->graph->arena};
    etch_cost_list costs = {0};
    etch_graph_costs(training, &costs);
    etch_buf_puts(&out, "");
    add_costs(training->graph->sym, &costs, NULL, &out);
    add_saved(training, &out);
    return out.text;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The order of dims has no meaning: sorts them between each pair of brackets. */
static const char *with_sorted_dims(etch_arena *arena, const char *text)
{
    etch_buf out = {.arena = arena};
    for (const char *at = text; *at;) {
        const size_t before = strcspn(at, "[") + (strchr(at, '[') != NULL);
        const size_t inside = before && at[before - 1] == '[' ? strcspn(at + before, "]") : 0;
        ETCH_VEC(const char *) dims = {0};
        etch_buf_printf(&out, "%.*s", (int)before, at);
        for (const char *dim = at + before, *end = dim + inside; dim < end; dim++) {
            const size_t length = strcspn(dim, ",]");
            ETCH_PUSH(arena, &dims, etch_text(arena, "%.*s", (int)length, dim));
            dim += length;
        }
        if (dims.count)
            qsort(dims.at, dims.count, sizeof *dims.at, compare_texts);
        for (uint32_t i = 0; i < dims.count; i++)
            etch_buf_printf(&out, "%s%s", i ? "," : "", dims.at[i]);
        at += before + inside;
    }
    return out.text;
}

/* Their order is that in which dims were made: a language makes one when it is first used. */
static void add_requirements(const etch_placed *placed, etch_buf *out)
{
    etch_sym *sym = placed->training->graph->sym;
    const uint32_t count = placed->requirements.count;
    const char **lines = ETCH_NEW_ARRAY(placed->arena, count, const char *);
    for (uint32_t i = 0; i < count; i++) {
        const etch_requirement *r = &placed->requirements.at[i];
        lines[i] = etch_text(placed->arena, "%s: %s | %s\n", r->dim->name, etch_expr_text(sym, r->divisor),
                             etch_expr_text(sym, r->size));
    }
    if (count)
        qsort(lines, count, sizeof *lines, compare_texts);
    for (uint32_t i = 0; i < count; i++)
        etch_buf_puts(out, lines[i]);
}

static const char *told_of_plan(const etch_placed *placed)
{
    etch_buf out = {.arena = placed->arena};
    etch_cost_list costs = {0};
    etch_placed_costs(placed, NULL, &costs);
    etch_placed_dump(placed, &out);
    add_costs(placed->training->graph->sym, &costs, placed, &out);
    add_requirements(placed, &out);
    return out.text;
}

static const char *messages_of(etch_arena *arena, const etch_diags *diags)
{
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    etch_diags_render(diags, &out);
    return out.text;
}

/* ---- one model -------------------------------------------------------------------------------------- */

typedef struct read_back {
    etch_diags *diags;
    etch_training *training;
    etch_placed *placed;
} read_back;

static read_back read_text(etch_arena *arena, const char *text)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_status status;
    read_back r = {.diags = etch_diags_new(arena)};
    etch_spec *spec = etch_spec_load(arena, sym, r.diags,
                                     &(etch_spec_source){.path = "random.etch", .text = text}, &status);
    etch_model *model = spec ? etch_spec_elaborate(spec, NULL, NULL, NULL) : NULL;
    r.training = model ? etch_train_derive(model->graph, &model->train) : NULL;
    const etch_plan *plan = r.training ? etch_spec_plan(spec, NULL, true, (etch_span){0, 0}) : NULL;
    r.placed = plan ? verified(etch_place(r.training, plan, ETCH_GRANULARITY_KERNEL)) : NULL;
    return r;
}

/* Says the first line that differs. */
static void expect_same(const char *what, uint64_t seed, const char *spec, const char *built,
                        const char *read)
{
    if (strcmp(built, read) == 0)
        return;
    uint32_t line = 1;
    const char *start[2] = {built, read};
    for (size_t i = 0; built[i] == read[i]; i++)
        if (built[i] == '\n')
            start[0] = built + i + 1, start[1] = read + i + 1, line++;
    fprintf(stderr, "%s", spec);
    ck_abort_msg("seed %llu, %s, line %u: built '%.*s', read '%.*s'", (unsigned long long)seed, what, line,
                 (int)strcspn(start[0], "\n"), start[0], (int)strcspn(start[1], "\n"), start[1]);
}

typedef struct source {
    exec_model *(*model)(etch_arena *arena, exec_dice *dice, const char **recompute);
    const char *(*plan)(const exec_model *m, exec_dice *dice);
} source;

static const source sources[] = {{exec_random_model, exec_random_plan},
                                 {exec_random_rich_model, exec_random_rich_plan},
                                 {exec_random_padded_model, exec_random_padded_plan}};
enum { SOURCES = sizeof sources / sizeof *sources };

/* False: the plan does not pad, or is refused. */
static bool check_text(etch_arena *arena, uint64_t seed, uint32_t number, const source *from)
{
    exec_dice dice = {exec_mix(seed, 0)}, plans = {exec_mix(seed, 1 + number)};
    const char *recompute;
    exec_model *m = from->model(arena, &dice, &recompute);
    etch_plan *plan = exec_plan(arena, m->sym, from->plan(m, &plans));
    etch_training *training = exec_train(m, recompute);
    const char *spec = exec_spec_text(m, plan);
    const read_back r = read_text(arena, spec);
    if (!r.training)
        fprintf(stderr, "%s%s", spec, messages_of(arena, r.diags));
    ck_assert_msg(r.training, "seed %llu: the spec is refused", (unsigned long long)seed);
    expect_same("model", seed, spec, with_sorted_dims(arena, told(training)),
                with_sorted_dims(arena, told(r.training)));
    etch_placed *placed = verified(etch_place(training, plan, ETCH_GRANULARITY_KERNEL));
    if ((placed == NULL) != (r.placed == NULL))
        fprintf(stderr, "%s%s%s", spec, messages_of(arena, m->diags), messages_of(arena, r.diags));
    ck_assert_msg((placed == NULL) == (r.placed == NULL), "seed %llu: the plan is %s, as text it is %s",
                  (unsigned long long)seed, placed ? "placed" : "refused", r.placed ? "placed" : "refused");
    if (placed)
        expect_same("plan", seed, spec, with_sorted_dims(arena, told_of_plan(placed)),
                    with_sorted_dims(arena, told_of_plan(r.placed)));
    return placed && plan->pads.count;
}

static void random_specs(etch_arena *arena)
{
    const uint64_t first = etch_test_seed(1), count = etch_effort(MODELS);
    uint64_t padded = 0;
    for (uint64_t seed = first; seed < first + count; seed++)
        for (uint32_t k = 0; k < SOURCES * PLANS; k++) {
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            padded += check_text(own, seed, 1 + k / SOURCES, &sources[k % SOURCES]);
            etch_arena_free(own);
        }
    ck_assert_msg(2 * padded > count, "%llu plans pad", (unsigned long long)padded);
}

START_TEST(a_printed_spec_is_the_model)
{
    etch_with_arena(random_specs);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("specs");
    ETCH_ADD_TESTS(suite, a_printed_spec_is_the_model);
    return suite;
}
