/* The step program of every shipped model under every plan that it has, its own and those that it imports, by
 * every granularity, and in chains of several stages: what must hold of any of them. */
#include "suite.h"
#include "verify.h"

#include "lang/lang.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STAGES = 5, MOST_FILES = 64 };

/* What has been verified; each file adds to it. A plan counts once for each run and config. */
typedef struct tally {
    uint32_t specs, libraries, plans, programs, chains;
} tally;

static const char *models_folder(etch_arena *arena)
{
    return etch_text(arena, "%s/models", getenv("ETCH_SOURCE_DIR"));
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static uint32_t list_files(etch_arena *arena, const char **names)
{
    DIR *folder = opendir(models_folder(arena));
    uint32_t count = 0;
    ck_assert_ptr_nonnull(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 5, ".etch") != 0)
            continue;
        ck_assert_uint_lt(count, MOST_FILES);
        names[count++] = etch_copy_text(arena, entry->d_name, length);
    }
    closedir(folder);
    qsort(names, count, sizeof *names, compare_names);
    return count;
}

/* ---- one plan ------------------------------------------------------------------------------------------ */

typedef struct scene {
    etch_arena *arena;
    etch_sym *sym;
    etch_diags *diags;
    etch_spec *spec;
    const char *name; /* of the file, for messages */
} scene;

static const char *messages_of(const scene *s)
{
    etch_buf out = {.arena = s->arena};
    etch_buf_puts(&out, "");
    etch_diags_render(s->diags, &out);
    return out.text;
}

static scene load(etch_arena *arena, const char *name)
{
    scene s = {.arena = arena, .sym = etch_sym_new(arena), .diags = etch_diags_new(arena), .name = name};
    const etch_spec_source source = {.path = etch_text(arena, "%s/%s", models_folder(arena), name)};
    etch_status status;
    s.spec = etch_spec_load(arena, s.sym, s.diags, &source, &status);
    ck_assert_msg(s.spec, "%s: %s", name, messages_of(&s));
    return s;
}

/* As `etch` trains it, or serves it. */
static etch_training *training_of(const scene *s, const etch_model *model, const etch_plan *plan)
{
    etch_train train = model->train;
    if (plan->recompute.span.end)
        train.recompute = plan->recompute, train.recompute_plan = plan;
    if (model->trains)
        return etch_train_derive(model->graph, &train);
    etch_training *training = ETCH_NEW(s->arena, etch_training);
    training->graph = model->graph;
    training->train = model->train;
    if (!model->serves)
        training->train.micro = etch_int(s->sym, 1);
    return training;
}

/* Every setting as a number. */
static verify_binding binding_of(const scene *s, const etch_settings *settings)
{
    etch_expr *vars = ETCH_NEW_ARRAY(s->arena, settings->count, etch_expr);
    etch_expr *values = ETCH_NEW_ARRAY(s->arena, settings->count, etch_expr);
    for (uint32_t i = 0; i < settings->count; i++) {
        vars[i] = settings->at[i].var;
        values[i] = etch_settings_apply(s->sym, settings, settings->at[i].value);
    }
    return (verify_binding){settings->count, vars, values};
}

static void verify_plan(tally *t, const scene *s, const char *run, const char *plan_name, const char *config)
{
    const etch_plan *plan = etch_spec_plan(s->spec, plan_name, true, (etch_span){0, 0});
    etch_settings settings;
    ck_assert_msg(plan && etch_spec_bind(s->spec, run, config, NULL, 0, true, plan, &settings), "%s, %s: %s",
                  s->name, plan_name, messages_of(s));
    const etch_model *model = etch_spec_elaborate(s->spec, run, &settings, plan);
    const etch_training *training = model ? training_of(s, model, plan) : NULL;
    const verify_binding bound = binding_of(s, &settings);
    for (int granularity = 0; granularity < ETCH_GRANULARITY_COUNT; granularity++) {
        const etch_placed *placed =
            training ? etch_place(training, plan, (etch_granularity)granularity) : NULL;
        ck_assert_msg(placed, "%s, %s: %s", s->name, plan_name, messages_of(s));
        const char *wrong = verify_program(placed);
        if (!wrong)
            wrong = verify_messages(placed);
        if (!wrong && placed->stages)
            wrong = verify_chains(placed, &bound, MOST_STAGES, &t->chains);
        ck_assert_msg(!wrong, "%s, %s, by %s: %s", s->name, plan_name,
                      etch_granularity_name((etch_granularity)granularity), wrong);
        t->programs++;
    }
    t->plans++;
}

/* ---- one file ------------------------------------------------------------------------------------------ */

/* Each run of the file under each plan that it names, with each config; a run without a name is the one that
 * it takes. */
static void verify_file(tally *t, etch_arena *arena, const char *name)
{
    const char *const *models, *const *runs, *const *plans, *const *configs;
    const scene listed = load(arena, name);
    const uint32_t plan_count = etch_spec_list(listed.spec, ETCH_LIST_PLANS, &plans);
    const uint32_t run_count = etch_spec_list(listed.spec, ETCH_LIST_RUNS, &runs);
    const uint32_t config_count = etch_spec_list(listed.spec, ETCH_LIST_CONFIGS, &configs);
    if (etch_spec_list(listed.spec, ETCH_LIST_MODELS, &models) == 0) {
        t->libraries++;
        return;
    }
    for (uint32_t r = 0; r < run_count || r == 0; r++)
        for (uint32_t i = 0; i < plan_count; i++)
            for (uint32_t c = 0; c < config_count || c == 0; c++) {
                etch_arena *own = etch_arena_new(etch_arena_mem(arena));
                const scene s = load(own, name);
                verify_plan(t, &s, run_count ? runs[r] : NULL, plans[i], config_count ? configs[c] : NULL);
                etch_arena_free(own);
            }
    t->specs++;
}

static void all_models(etch_arena *arena)
{
    const char *names[MOST_FILES];
    const uint32_t count = list_files(arena, names);
    tally t = {0};
    for (uint32_t i = 0; i < count; i++)
        verify_file(&t, arena, names[i]);
    /* A new model or plan raises them. */
    ck_assert_uint_eq(t.libraries, 5);
    ck_assert_uint_eq(t.specs, 42);
    ck_assert_uint_eq(t.plans, 1301);
    ck_assert_uint_eq(t.programs, t.plans * ETCH_GRANULARITY_COUNT);
    ck_assert_uint_eq(t.chains, 6360);
}

START_TEST(every_model_under_every_plan)
{
    etch_with_memory((size_t)1 << 30, all_models);
}
END_TEST

/* ---- units ------------------------------------------------------------------------------------------- */

#define LAYERS                                                     \
    "etch 1\n"                                                     \
    "param b = 4, s = 4, h = 4, f = 8, v = 8, layers = 3\n"        \
    "dim B = b, S = s, O = 1, H = h, H1 = h, F = f, V = v\n"       \
    "train { model = m, optimizer = adamw }\n"                     \
    "model m(x[B,S,H], labels[B]: i32, next[B,S]: i32) -> l[] {\n" \
    "  weight head[H1,V], emb[V,H], up[H,F], down[F,H]\n"          \
    "  repeat layers as layer {\n"                                 \
    "    weight g[H]\n"                                            \
    "    x = x + tanh(x * g)\n"                                    \
    "  }\n"
#define END "}\nparallel p { mesh [pp, tp]; shard V @ tp, F @ tp; stage (layer, head) @ pp }\n"

/* What is partial where one unit has made it is no message: backward of what is in front of a unit, and
 * forward of what a unit begins with. */
static const char *const in_two[] = {
    LAYERS "  y[B,O,H] = slice(x, over = S, to = O)\n"
           "  z[B,V] = y[(O,H)->H1] * head  tag head\n"
           "  l[] = cross_entropy(z, labels, over = V)  tag loss\n" END,
    LAYERS "  y = x[H->H1]\n"
           "  z[B,S,V] = y * head  tag head\n"
           "  l[] = cross_entropy(z, next, over = V)  tag loss\n" END,
    LAYERS "  y = 2*x\n"
           "  z[B,S,V] = identity(y) * emb  tag head\n"
           "  l[] = cross_entropy(z, next, over = V)  tag loss\n" END,
    LAYERS "  a[B,S,F] = x * up\n"
           "  y[B,S,H] = a * down\n"
           "  z = 2*y  tag head\n"
           "  l[] = mean(z, over = (B,S,H))  tag loss\n" END,
    LAYERS "  a[B,S,F] = x * up\n"
           "  y[B,S,H] = a * down\n"
           "  n = 3*y\n"
           "  z[B,S,H1] = n[H->H1] + 2*x[H->H1]  tag head\n"
           "  l[] = mean(z, over = (B,S,H1))  tag loss\n" END,
};

static void units(etch_arena *arena)
{
    tally t = {0};
    for (size_t i = 0; i < sizeof in_two / sizeof *in_two; i++) {
        scene s = {.arena = arena,
                   .sym = etch_sym_new(arena),
                   .diags = etch_diags_new(arena),
                   .name = etch_text(arena, "text %u", (unsigned)i)};
        etch_status status;
        s.spec = etch_spec_load(arena, s.sym, s.diags,
                                &(etch_spec_source){.path = "units.etch", .text = in_two[i]}, &status);
        ck_assert_msg(s.spec, "%s: %s", s.name, messages_of(&s));
        verify_plan(&t, &s, NULL, "p", NULL);
    }
    ck_assert_uint_gt(t.chains, 0);
}

START_TEST(no_partial_sum_goes_from_unit_to_unit)
{
    etch_with_arena(units);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("lang.verify");
    ETCH_ADD_TESTS(suite, every_model_under_every_plan, no_partial_sum_goes_from_unit_to_unit);
    return suite;
}
