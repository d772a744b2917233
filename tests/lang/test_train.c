/* Train blocks: which one is meant, and what it says. */
#include "specs.h"
#include "suite.h"

#include <string.h>

static const etch_dim dim_b = {.name = "B"};

static etch_dim *find_dim(void *data, etch_ast_name name)
{
    spec_scene *s = data;
    if (strcmp(name.text, "B") == 0) {
        etch_dim *dim = ETCH_NEW(s->arena, etch_dim);
        *dim = dim_b;
        return dim;
    }
    etch_unknown_name(s->spec, s->spec->main, "dim", name, NULL, 0);
    return NULL;
}

static const char *describe(const spec_scene *s, const etch_train *train)
{
    etch_buf out = {.arena = s->arena};
    etch_buf_printf(&out, "%s/%s", train->batch ? train->batch->name : "-",
                    etch_expr_text(s->sym, train->micro));
    if (train->optimizer.row)
        etch_buf_printf(&out, " %s%s", etch_row_name(train->optimizer.row),
                        train->optimizer.master ? "+master" : "");
    if (train->recompute.all)
        etch_buf_puts(&out, " recompute all");
    for (uint32_t i = 0; i < train->recompute.selectors.count; i++)
        etch_buf_printf(&out, " recompute %s", train->recompute.selectors.at[i].selector);
    for (uint32_t i = 0; i < train->freeze_count; i++)
        etch_buf_printf(&out, " freeze %s", train->freeze[i]);
    etch_buf_puts(&out, train->recompute.needed ? " needed" : "");
    etch_buf_puts(&out, train->clip ? " clip" : "");
    return out.text;
}

/* The options of a train block, what it is then, and what is reported. */
typedef struct train_case {
    const char *options, *train, *messages;
} train_case;

#define LATER " is part of the language but is not given meaning yet\n"

static void options(etch_arena *arena)
{
    static const train_case cases[] = {
        {"", "-/1", ""},
        {"optimizer = adamw", "-/1 adamw", ""},
        {"optimizer = adamw(master = true)", "-/1 adamw+master", ""},
        {"optimizer = adamw(master = false), accumulate = (B, micro)", "B/micro adamw", ""},
        {"accumulate = (B, 2*micro)\nrecompute = layer", "B/2*micro recompute layer", ""},
        {"recompute = (layer, inner)", "-/1 recompute layer recompute inner", ""},
        {"recompute = full, clip = 1.0", "-/1 recompute all clip", ""},
        {"recompute = none, clip = none", "-/1", ""},
        {"recompute = needed", "-/1 recompute all needed", ""},
        {"recompute = (attention.core, layer)", "-/1 recompute attention.core recompute layer", ""},
        {"recompute = needed(core, mlp.h)", "-/1 recompute core recompute mlp.h needed", ""},
        {"optimiser = adamw", NULL,
         "E0220 a.etch:5:9 a train block has no option 'optimiser'\n"
         "  help did you mean 'optimizer'?\n"
         "  help it has model, optimizer, accumulate, recompute, clip, ema, freeze, and binds params\n"},
        {"optimizer = sgd", "-/1 sgd", ""},
        {"optimizer = sgd(master = true)", "-/1 sgd+master", ""},
        {"optimizer = sgd(momentum = 0.9)", "-/1 sgd_momentum", ""},
        {"optimizer = sgd(master = true, momentum = 9/10)", "-/1 sgd_momentum+master", ""},
        {"optimizer = sgd(momentum = 0)", "-/1 sgd", ""},
        {"optimizer = sgd(momentum = true)", "-/1 sgd_momentum", ""},
        {"optimizer = sgd(momentum = false)", "-/1 sgd", ""},
        {"optimizer = sgd(momentum = 1)", NULL,
         "E0220 a.etch:5:36 momentum is true, false, or at least 0 and below 1\n"},
        {"optimizer = sgd(momentun = 0.9)", NULL,
         "E0220 a.etch:5:25 sgd has no argument 'momentun'\n"
         "  help did you mean 'momentum'?\n"
         "  help its arguments are master, main_grads, momentum\n"},
        {"optimizer = sgd_momentum", NULL,
         "E0220 a.etch:5:21 there is no optimizer 'sgd_momentum'\n"
         "  help optimizers are adamw, sgd, lamb, muon\n"},
        {"optimizer = adamw(momentum = 0.9)", NULL,
         "E0220 a.etch:5:27 adamw has no argument 'momentum'\n"
         "  help its arguments are master, main_grads, bits\n"},
        {"optimizer = adamw(decay = 0.1)", NULL, "E0244 a.etch:5:27 'decay' of an optimizer" LATER},
        {"optimizer = adam", NULL,
         "E0244 a.etch:5:21 the optimizer 'adam'" LATER "  help optimizers are adamw, sgd, lamb, muon\n"},
        {"optimizer = adamww", NULL,
         "E0220 a.etch:5:21 there is no optimizer 'adamww'\n"
         "  help did you mean 'adamw'?\n"
         "  help optimizers are adamw, sgd, lamb, muon\n"},
        {"optimizer = adamw(mester = true)", NULL,
         "E0220 a.etch:5:27 adamw has no argument 'mester'\n"
         "  help did you mean 'master'?\n"
         "  help its arguments are master, main_grads, bits\n"},
        {"optimizer = adamw(master = 1)", NULL, "E0220 a.etch:5:36 master is true or false\n"},
        {"optimizer = adamw(true)", NULL,
         "E0220 a.etch:5:27 arguments of an optimizer have names: adamw(master = true)\n"},
        {"optimizer = lamb", "-/1 lamb", ""},
        {"optimizer = lamb(master = true)", "-/1 lamb+master", ""},
        {"optimizer = lamb(bits = 8)", NULL,
         "E0220 a.etch:5:26 lamb has no argument 'bits'\n"
         "  help its arguments are master, main_grads\n"},
        {"optimizer = lamb_norms", NULL,
         "E0220 a.etch:5:21 there is no optimizer 'lamb_norms'\n"
         "  help optimizers are adamw, sgd, lamb, muon\n"},
        {"optimizer = muon", "-/1 muon", ""},
        {"optimizer = muon(momentum = 0.95, steps = 5, rest = adamw(bits = 8), master = true)",
         "-/1 muon+master", ""},
        {"optimizer = muon(rest = sgd(momentum = 0.9))", "-/1 muon", ""},
        {"optimizer = muon(rest = muon)", NULL,
         "E0220 a.etch:5:33 muon is of matrices alone: the rest needs another optimizer\n"},
        {"optimizer = muon(rest = adamw(master = true))", NULL,
         "E0220 a.etch:5:39 'master' is of all weights, and stands outside of rest\n"},
        {"optimizer = muon(rest = 3)", NULL,
         "E0220 a.etch:5:33 an optimizer is written like optimizer = adamw(master = true)\n"},
        {"optimizer = muon(rest = adamww)", NULL,
         "E0220 a.etch:5:33 there is no optimizer 'adamww'\n"
         "  help did you mean 'adamw'?\n"
         "  help optimizers are adamw, sgd, lamb, muon\n"},
        {"optimizer = muon(momentum = 0)", NULL, "E0220 a.etch:5:37 momentum is above 0 and below 1\n"},
        {"optimizer = muon(steps = 0)", NULL,
         "E0220 a.etch:5:34 steps is a whole number, at least 1: muon(steps = 5)\n"},
        {"optimizer = muon(steps = 5/2)", NULL,
         "E0220 a.etch:5:34 steps is a whole number, at least 1: muon(steps = 5)\n"},
        {"optimizer = muon(bits = 8)", NULL,
         "E0220 a.etch:5:26 muon has no argument 'bits'\n"
         "  help its arguments are master, main_grads, momentum, steps, rest\n"},
        {"optimizer = adamw(steps = 5)", NULL,
         "E0220 a.etch:5:27 adamw has no argument 'steps'\n"
         "  help its arguments are master, main_grads, bits\n"},
        {"optimizer = 3", NULL,
         "E0220 a.etch:5:21 an optimizer is written like optimizer = adamw(master = true)\n"},
        {"accumulate = micro", NULL,
         "E0220 a.etch:5:22 accumulate is a dim and the number of microbatches: accumulate = (B, micro)\n"},
        {"accumulate = (C, micor)", NULL,
         "E0210 a.etch:5:23 unknown dim 'C'\n"
         "E0210 a.etch:5:26 unknown name 'micor'\n"
         "  help did you mean 'micro'?\n"},
        {"recompute = 3", NULL,
         "E0220 a.etch:5:21 recompute is a loop, a module, a tag, a list of them, full, needed or none\n"
         "  help write recompute = layer, (attention.core, mlp.h), layer(first = 8), full, needed(layer)\n"},
        {"recompute = (layer, full)", NULL,
         "E0220 a.etch:5:29 recompute is a loop, a module, a tag, a list of them, full, needed or none\n"
         "  help write recompute = layer, (attention.core, mlp.h), layer(first = 8), full, needed(layer)\n"},
        {"recompute = fit(8)", NULL,
         "E0220 a.etch:5:21 what fits depends on the plan: write recompute = fit(..) there\n"},
        {"recompute = needed()", NULL,
         "E0220 a.etch:5:21 recompute is a loop, a module, a tag, a list of them, full, needed or none\n"
         "  help write recompute = layer, (attention.core, mlp.h), layer(first = 8), full, needed(layer)\n"},
        {"recompute = needed(of = layer)", NULL,
         "E0220 a.etch:5:28 recompute is a loop, a module, a tag, a list of them, full, needed or none\n"
         "  help write recompute = layer, (attention.core, mlp.h), layer(first = 8), full, needed(layer)\n"},
        {"clip = 0", NULL, "E0220 a.etch:5:16 the norm that gradients are clipped to is above 0\n"},
        {"clip = 1, clip = 2", NULL,
         "E0220 a.etch:5:19 'clip' is given twice\n"
         "  note a.etch:5:9 it is given here already\n"},
        {"freeze = layer, recompute = none", "-/1 freeze layer", ""},
        {"freeze = (norm, block.wq)", "-/1 freeze norm freeze block.wq", ""},
        {"freeze = none", "-/1", ""},
        {"freeze = 1", NULL,
         "E0220 a.etch:5:18 freeze is a module, loop, tag or module.tensor, a list of them, or none\n"},
        {"adapt = lora(x)", NULL, "E0244 a.etch:5:9 'adapt' in a train block" LATER},
        {"schedule = zb_h1", NULL,
         "E0220 a.etch:5:9 a train block has no option 'schedule'\n"
         "  help the stage line of a plan says it: stage (embed, layer, head) @ pp, schedule = zb_h1\n"},
        {"micro = 4, accumulate = (B, 2*micro)", "B/2*micro", ""}, /* what it binds is in the settings */
        {"nicro = 4", NULL,
         "E0220 a.etch:5:9 a train block has no option 'nicro'\n"
         "  help it has model, optimizer, accumulate, recompute, clip, ema, freeze, and binds params\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const train_case *c = &cases[i];
        spec_scene s = specs_load(
            arena, etch_text(arena, "param micro\ndim B = 4\nmodel m(x[B]) -> y[B] { y = x }\ntrain { %s }\n",
                             c->options));
        specs_expect(c->options, specs_messages(&s), "");
        etch_train train;
        const etch_symbol *symbol = etch_run_symbol(s.spec, NULL, (etch_span){0, 0});
        ck_assert_ptr_nonnull(symbol);
        ck_assert_str_eq(etch_run_model(s.spec, symbol)->name, "m");
        const bool fine = etch_train_fill(s.spec, symbol, find_dim, &s, &train);
        specs_expect(c->options, specs_messages(&s), c->messages);
        ck_assert_msg(fine == (c->train != NULL), "%s", c->options);
        if (fine)
            specs_expect(c->options, describe(&s, &train), c->train);
        specs_end(&s);
    }
}

START_TEST(options_of_a_train_block)
{
    etch_with_arena(options);
}
END_TEST

/* A spec, the run that is asked for, and "block -> model". */
typedef struct choice_case {
    const char *text, *run, *chosen, *messages;
} choice_case;

#define M "model m(x[]) -> y { y = x }\n"
#define N "model n(x[]) -> y { y = x }\n"

static void choices(etch_arena *arena)
{
    static const choice_case cases[] = {
        {M, NULL, "none", ""},
        {M "train { }\n", NULL, "train -> m", ""},
        {M "train { }\n", "train", "train -> m", ""},
        {M N "train a { model = n }\ntrain b { model = m }\n", "b", "b -> m", ""},
        {M N "train a { model = n }\ntrain bee { model = m }\n", "bea", "none",
         "E0221 there is no run 'bea'\n"
         "  note train and infer blocks: a, bee\n"
         "  help did you mean 'bee'?\n"},
        {M "train a { }\ntrain b { }\n", NULL, "none",
         "E0221 the spec has several train blocks: a, b\n"
         "  note a.etch:3:1 'a' is here\n"
         "  note a.etch:4:1 'b' is here\n"
         "  help say which one is meant: --run NAME, or run = NAME in a quantity\n"},
        {M N "train a { }\n", NULL, "none",
         "E0246 a.etch:4:1 this train block does not say which model it trains\n"
         "  help name it: model = NAME\n"},
        {M "train { model = mm }\nparam mmm\n", NULL, "none",
         "E0210 a.etch:3:17 unknown model 'mm'\n"
         "  help did you mean 'm'?\n"},
        {M "train { model = k }\nparam k\n", NULL, "none", "E0246 a.etch:3:17 'k' is a param, not a model\n"},
        {M "infer decode { model = m }\n", "decode", "decode -> m", ""},
        {M "infer decode { model = m }\n", NULL, "decode -> m", ""},
        {M N "infer decode { }\n", "decode", "none",
         "E0246 a.etch:4:1 this infer block does not say which model it runs\n"
         "  help name it: model = NAME\n"},
        /* training comes first; what is served is asked for by name */
        {M "infer a { }\ntrain b { }\ninfer c { }\n", NULL, "b -> m", ""},
        {M "infer a { }\ntrain b { }\ninfer c { }\n", "c", "c -> m", ""},
        {M "infer a { }\ninfer c { }\n", NULL, "none",
         "E0221 the spec has several infer blocks: a, c\n"
         "  note a.etch:3:1 'a' is here\n"
         "  note a.etch:4:1 'c' is here\n"
         "  help say which one is meant: --run NAME, or run = NAME in a quantity\n"},
        /* runs of its own come before those of imports */
        {"import \"b.etch\"\ninfer d { model = m }\n--- b.etch\n" M "train { model = m }\n", NULL, "d -> m",
         ""},
        {"import \"b.etch\"\ninfer d { model = m }\n--- b.etch\n" M "train { model = m }\n", "train",
         "train -> m", ""},
        /* a spec that only adds configs and plans trains as its import does */
        {"import \"b.etch\"\n--- b.etch\n" M "train { model = m }\n", NULL, "train -> m", ""},
        {"import \"b.etch\"\n--- b.etch\n" M "train { model = m }\n", "train", "train -> m", ""},
        {"import \"b.etch\" (m)\nimport \"c.etch\" (q)\n--- b.etch\n" M "train { model = m }\n--- c.etch\n" N
         "param q\ntrain { model = n }\n",
         NULL, "train -> m", ""},
        /* a model of its own is not trained by others */
        {"import \"b.etch\"\n" N "--- b.etch\n" M "train { model = m }\n", NULL, "none", ""},
        {"import \"b.etch\"\ntrain { model = m }\n--- b.etch\n" M "train { model = m }\n", NULL, "train -> m",
         ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const choice_case *c = &cases[i];
        spec_scene s = specs_load(arena, c->text);
        specs_expect(c->text, specs_messages(&s), "");
        const etch_symbol *train = etch_run_symbol(s.spec, c->run, (etch_span){0, 0});
        const etch_symbol *model = train ? etch_run_model(s.spec, train) : NULL;
        specs_expect(c->text, specs_messages(&s), c->messages);
        specs_expect(c->text, model ? etch_text(arena, "%s -> %s", train->name, model->name) : "none",
                     c->chosen);
        specs_end(&s);
    }
}

START_TEST(which_block_trains_which_model)
{
    etch_with_arena(choices);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("train");
    ETCH_ADD_TESTS(suite, options_of_a_train_block, which_block_trains_which_model);
    return suite;
}
