/* Plans: meshes, shards, pins, scopes, and what is refused. */
#include "specs.h"
#include "suite.h"

#include <string.h>

static void add_shards(const etch_plan *plan, const etch_shard *shards, uint32_t count, etch_buf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        etch_buf_printf(out, " %s@(", shards[i].dim);
        for (uint32_t k = 0; k < shards[i].axis_count; k++)
            etch_buf_printf(out, "%s%s", k ? "," : "", plan->mesh.at[shards[i].axes[k]].name);
        etch_buf_puts(out, ")");
    }
}

static void add_pins(const etch_plan *plan, const etch_pin *pins, uint32_t count, etch_buf *out)
{
    for (uint32_t i = 0; i < count; i++) {
        etch_buf_printf(out, "\npin %s", pins[i].selector);
        add_shards(plan, pins[i].shards.at, pins[i].shards.count, out);
        etch_buf_puts(out, pins[i].rest ? " .." : "");
    }
}

/* "stage embed layer @pp: interleaved 2 [1 7]" */
static void add_stage(const spec_scene *s, const etch_plan *plan, etch_buf *out)
{
    const etch_stage_line *line = plan->stage;
    etch_buf_puts(out, "\nstage");
    for (uint32_t i = 0; i < line->selector_count; i++)
        etch_buf_printf(out, " %s", line->selectors[i]);
    etch_buf_puts(out, " @");
    for (uint32_t i = 0; i < line->axis_count; i++)
        etch_buf_printf(out, "%s%s", i ? "," : "", plan->mesh.at[line->axes[i]].name);
    etch_buf_printf(out, ": %s %s", etch_schedule_name(line->schedule), etch_expr_text(s->sym, line->chunks));
    for (uint32_t i = 0; i < line->count_count; i++)
        etch_buf_printf(out, "%s%s", i ? " " : " [", etch_expr_text(s->sym, line->counts[i]));
    etch_buf_puts(out, line->count_count ? "]" : "");
}

/* The plan as text: one line for the mesh, for shards, each pin, scope, pending line, for ZeRO, for
 * stages. */
static void add_zero(const etch_zero *zero, etch_buf *out)
{
    static const char *const keeps[] = {"unit", "microbatch", "step"};
    etch_buf_printf(out, "\nzero %u %u, %s", zero->level, zero->axes, zero->whole ? "whole" : "in parts");
    etch_buf_puts(out, zero->by_weight ? ", by weight" : "");
    if (zero->level < 3)
        return;
    etch_buf_puts(out, zero->root ? ", root" : "");
    etch_buf_printf(out, ", keep %s, %u ahead", keeps[zero->keep], (unsigned)zero->ahead);
    if (zero->backward_axes)
        etch_buf_printf(out, ", again %u", zero->backward_axes);
    for (uint32_t i = 0; i < zero->group_count; i++)
        etch_buf_printf(out, ", unit %s", zero->weight_groups[i]);
}

static const char *describe(const spec_scene *s, const etch_plan *plan)
{
    etch_buf out = {.arena = s->arena};
    etch_buf_printf(&out, "%s:", plan->name);
    for (uint32_t i = 0; i < plan->mesh.count; i++)
        etch_buf_printf(&out, " %s=%s", plan->mesh.at[i].name, etch_expr_text(s->sym, plan->mesh.at[i].size));
    for (uint32_t i = 0; i < plan->products.count; i++) {
        const etch_product *product = &plan->products.at[i];
        etch_shard as_shard = {.dim = product->name, .axis_count = product->axis_count};
        memcpy(as_shard.axes, product->axes, sizeof product->axes);
        etch_buf_puts(&out, "\naxis");
        add_shards(plan, &as_shard, 1, &out);
    }
    if (plan->shards.count > 0)
        etch_buf_puts(&out, "\nshard");
    add_shards(plan, plan->shards.at, plan->shards.count, &out);
    add_pins(plan, plan->pins.at, plan->pins.count, &out);
    for (uint32_t i = 0; i < plan->overrides.count; i++) {
        const etch_override *scope = &plan->overrides.at[i];
        etch_buf_puts(&out, "\nfor");
        if (scope->outer > 0)
            etch_buf_printf(&out, " (in %u)", scope->outer);
        for (uint32_t k = 0; k < scope->selector_count; k++)
            etch_buf_printf(&out, " %s", scope->selectors[k]);
        etch_buf_puts(&out, ":");
        add_shards(plan, scope->shards.at, scope->shards.count, &out);
        add_pins(plan, scope->pins.at, scope->pins.count, &out);
        if (scope->zero.level > 0)
            add_zero(&scope->zero, &out);
    }
    for (uint32_t i = 0; i < plan->pending.count; i++)
        etch_buf_printf(&out, "\npending %s %u", plan->pending.at[i].text, plan->pending.at[i].axes);
    if (plan->zero.level > 0)
        add_zero(&plan->zero, &out);
    if (plan->stage)
        add_stage(s, plan, &out);
    return out.text;
}

/* `body` is the plan "p" of a spec with params, dims, modules and tags. `plan` NULL: it is refused. */
typedef struct plan_case {
    const char *body, *plan, *messages;
} plan_case;

static const char *const around =
    "param heads, kv, batch\n"
    "dim B = batch, S = 8, K = kv, E = 4\n"
    "module experts(x[B]) -> y[B] { dim L = 2\n y = x tag inner }\n"
    "module core(x[B]) -> y[B] { y = x }\n"
    "model m(x[B]) -> y[B] { repeat 3 as layer { x = core(x) tag residual, embed }\n y = x }\n";

static void run(etch_arena *arena, const plan_case *c)
{
    spec_scene s = specs_load(arena, etch_text(arena, "parallel p {\n%s\n}\n%s", c->body, around));
    specs_expect(c->body, specs_messages(&s), "");
    const etch_plan *plan = etch_spec_plan(s.spec, "p", true, (etch_span){0, 0});
    specs_expect(c->body, specs_messages(&s), c->messages);
    ck_assert_msg((plan != NULL) == (c->plan != NULL), "%s", c->body);
    if (plan) {
        specs_expect(c->body, describe(&s, plan), c->plan);
        ck_assert_ptr_eq(
            plan, etch_spec_plan(s.spec, NULL, false, (etch_span){0, 0})); /* the only one, made once */
    }
    specs_end(&s);
}

static void run_all(etch_arena *arena, const plan_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        run(arena, &cases[i]);
}
#define RUN_ALL(arena, cases) run_all((arena), (cases), sizeof(cases) / sizeof *(cases))

static void good(etch_arena *arena)
{
    static const plan_case cases[] = {
        {"", "p:", ""},
        {"mesh [dp, tp]\nshard B @ dp, K @ (dp,tp), S @ ()", "p: dp=dp tp=tp\nshard B@(dp) K@(dp,tp) S@()",
         ""},
        {"shard B @ dp\nmesh [dp]", "p: dp=dp\nshard B@(dp)", ""}, /* in any order */
        {"mesh [dp, edp = ddp/ep, ep]\naxis ddp = (edp, ep)\nshard B @ ddp, E @ (dp, ddp)",
         "p: dp=dp edp=ddp/ep ep=ep\naxis ddp@(edp,ep)\nshard B@(edp,ep) E@(dp,edp,ep)", ""},
        {"mesh [a, b, c]\naxis all = (ab, c), ab = (a, b)\nshard B @ all",
         "p: a=a b=b c=c\naxis all@(a,b,c)\naxis ab@(a,b)\nshard B@(a,b,c)", ""},
        /* sizes speak of params, dims and one another */
        {"mesh [a = 2*b, b = 3, c = kv, d = E, heads]", "p: a=6 b=3 c=kv d=4 heads=heads", ""},
        {"mesh [tk = min(tp, kv), g = tp/min(tp, kv)]\naxis tp = (tk, g)\nshard K @ tk",
         "p: tk=min(kv, tp) g=tp/min(kv, tp)\naxis tp@(tk,g)\nshard K@(tk)", ""},
        {"mesh [dp, tp]\npin residual [B@dp, S@(dp,tp), K]\npin core.y [.., B@tp]",
         "p: dp=dp tp=tp\npin residual B@(dp) S@(dp,tp) K@()\npin core.y B@(tp) ..", ""},
        {"mesh [dp, tp]\nshard B @ dp\nfor (experts, core) { shard E @ tp, L @ dp\n pin inner [S@tp]\n shard "
         "B @ () }",
         "p: dp=dp tp=tp\nshard B@(dp)\nfor experts core: E@(tp) L@(dp) B@()\npin inner S@(tp)", ""},
        {"mesh [pp, dp, tp]\nzero 2 @ (dp,tp)\nstage (embed, layer) @ pp, schedule = "
         "gpipe\nfor core { zero 3 @ dp }",
         "p: pp=pp dp=dp tp=tp\nfor core:\nzero 3 2, in parts, keep unit, 1 ahead\nzero 2 6, in parts\nstage "
         "embed "
         "layer @pp: gpipe 1",
         ""},
        {"mesh [dp]\nzero 2 @ dp, reduce = step", "p: dp=dp\nzero 2 1, whole", ""},
        {"mesh [dp]\nzero 1 @ dp, reduce = step", "p: dp=dp\nzero 1 1, whole", ""},
        {"mesh [dp]\nzero 3 @ dp", "p: dp=dp\nzero 3 1, in parts, keep unit, 1 ahead", ""},
        {"mesh [a, b]\nzero 3 @ (a,b), group = layer, keep = false, again = b, prefetch = 2, reduce = "
         "microbatch",
         "p: a=a b=b\nzero 3 3, in parts, keep unit, 2 ahead, again 2, unit layer", ""},
        {"mesh [a, b]\naxis c = (a, b)\nzero 3 @ c, again = (b, a)",
         "p: a=a b=b\naxis c@(a,b)\nzero 3 3, in parts, keep unit, 1 ahead, again 3", ""},
        {"mesh [a]\nzero 3 @ a, keep = true, prefetch = 0, reduce = step",
         "p: a=a\nzero 3 1, whole, keep microbatch, 0 ahead", ""},
        {"mesh [a]\nzero 3 @ a, keep = microbatch", "p: a=a\nzero 3 1, in parts, keep microbatch, 1 ahead",
         ""},
        {"mesh [a]\nzero 3 @ a, keep = step", "p: a=a\nzero 3 1, in parts, keep step, 1 ahead", ""},
        {"mesh [pp]\nstage layer @ pp", "p: pp=pp\nstage layer @pp: one_f_one_b 1", ""},
        {"mesh [a, dp, b]\naxis pp = (a, b)\nstage (embed, core.y, m) @ pp, counts = [1, kv, 3*a], schedule "
         "= "
         "interleaved(virtual = kv + 1)",
         "p: a=a dp=dp b=b\naxis pp@(a,b)\nstage embed core.y m @a,b: interleaved kv + 1 [1 kv 3*a]", ""},
        {"mesh [dp]\nshard S' @ dp", "p: dp=dp\nshard S'@(dp)", ""},
        {"mesh [dp, cp, tp]\naxis data = (dp, cp)\nzero 1 @ data",
         "p: dp=dp cp=cp tp=tp\naxis data@(dp,cp)\nzero 1 3, whole", ""},
        {"mesh [dp]\nfor core { zero 1 @ dp }", "p: dp=dp\nfor core:\nzero 1 1, whole", ""},
        {"mesh [a]\nzero 3 @ a, root = true, group = weight",
         "p: a=a\nzero 3 1, in parts, by weight, root, keep unit, 1 ahead", ""},
        {"mesh [a]\nzero 1 @ a, group = weight\nfor layer { zero 3 @ (), keep = step, root = false }",
         "p: a=a\nfor layer:\nzero 3 0, in parts, keep step, 1 ahead\nzero 1 1, whole, by weight", ""},
        {"mesh [dp]\nfor core { stage layer @ dp }", "p: dp=dp\nfor core:\npending stage layer @ dp 1", ""},
        {"mesh [a]\nfor (residual, layer, m.core, m.core.x) { shard B @ a\nfor experts { for inner { shard L "
         "@ a } }\n"
         "for core { pin inner [B@a] } }",
         "p: a=a\nfor residual layer m.core m.core.x: B@(a)\nfor (in 1) experts:\nfor (in 2) inner: L@(a)\n"
         "for (in 1) core:\npin inner B@(a)",
         ""},
    };
    RUN_ALL(arena, cases);
}

START_TEST(a_plan_says_where_dims_go)
{
    etch_with_arena(good);
}
END_TEST

static void late(etch_arena *arena)
{
    static const plan_case cases[] = {
        {"mesh [dp]\nshard Bb @ dp, Kbbb @ dp", "p: dp=dp\nshard Bb@(dp) Kbbb@(dp)",
         "warning E0426 a.etch:4:7 no dim is called 'Bb': this has no effect\n"
         "  help did you mean 'B'?\n"
         "warning E0426 a.etch:4:16 no dim is called 'Kbbb': this has no effect\n"},
        {"mesh [dp]\npin resdual [B@dp]\npin cor.y [B@dp]", "p: dp=dp\npin resdual B@(dp)\npin cor.y B@(dp)",
         "warning E0427 a.etch:4:5 no tensor is tagged 'resdual': this has no effect\n"
         "  help did you mean 'residual'?\n"
         "warning E0427 a.etch:5:5 no module is called 'cor': this has no effect\n"
         "  help did you mean 'core'?\n"},
        {"mesh [dp]\nfor expert { shard E @ dp }", "p: dp=dp\nfor expert: E@(dp)",
         "warning E0427 a.etch:4:5 no loop, tag or module is called 'expert': this has no effect\n"
         "  help did you mean 'experts'?\n"},
        {"mesh [dp]\nfor (m.cor, m.core.x, cor.x, m.core.xx) { shard E @ dp }",
         "p: dp=dp\nfor m.cor m.core.x cor.x m.core.xx: E@(dp)",
         "warning E0427 a.etch:4:6 module 'm' has no tensor 'cor': this has no effect\n"
         "warning E0427 a.etch:4:23 no module is called 'cor': this has no effect\n"
         "  help did you mean 'core'?\n"
         "warning E0427 a.etch:4:30 module 'core' has no tensor 'xx': this has no effect\n"},
    };
    RUN_ALL(arena, cases);
}

START_TEST(what_the_model_lacks_is_a_warning)
{
    etch_with_arena(late);
}
END_TEST

#define LATER " is part of the language but is not given meaning yet\n"
#define OWN_MESH                                                                                           \
    "  help cut the axes of the plan's mesh and place dims anew in the scope: mesh [dp, c, t], axis tp = " \
    "(c,t); for vision { shard B @ (dp,c), K @ t }\n"
#define SCHEDULES                                                                       \
    "  help schedules are gpipe, one_f_one_b, interleaved(virtual = v), zb_h1, zb_h2, " \
    "breadth_first(virtual = v), zb_v, dualpipe, dualpipev, list(\"F0 ..\", ..)\n"
#define ORDERS "  help for example list(\"F0 F1 B0 B1\", \"F0 B0 F1 B1\")\n"
#define ACTIONS                                                                                         \
    "  help F3 is microbatch 3 forward, B3 backward, I3 and W3 are the halves of B3; F3.1 is in chunk " \
    "1 of the stage\n"
#define SLOTS                                                                                             \
    "  help a slot is one action, or the forward one of a microbatch and after & one that takes another " \
    "microbatch back: F3&B1\n"
#define OFFLOAD "  help write offload optimizer @ host, or master or moments, which are parts of it\n"
#define CHUNKS "  help for example interleaved(virtual = 2)\n"

static void wrong(etch_arena *arena)
{
    static const plan_case cases[] = {
        {"mesh [dp, tp]\nshard B @ pd", NULL,
         "E0423 a.etch:4:11 plan 'p' has no mesh axis 'pd'\n"
         "  note its mesh is [dp, tp]\n"
         "  help did you mean 'dp'?\n"},
        {"shard B @ dp", NULL,
         "E0423 a.etch:3:11 plan 'p' has no mesh axis 'dp'\n"
         "  note its mesh is []\n"},
        {"mesh [dp, tp, dp]", NULL,
         "E0422 a.etch:3:15 the mesh has two axes called 'dp'\n"
         "  note a.etch:3:7 this is the first\n"},
        {"mesh [dp]\nmesh [tp]", NULL,
         "E0422 a.etch:4:1 a plan has one mesh\n"
         "  note a.etch:3:1 it is here\n"},
        {"mesh [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, q, r]", NULL,
         "E0422 a.etch:3:55 a mesh has at most 16 axes\n"},
        {"mesh [kv = 8]", NULL,
         "E0422 a.etch:3:7 mesh axis 'kv' has a size of its own, but a param has its name\n"
         "  note a.etch:5:14 the param is declared here\n"},
        {"mesh [a = b, b = 2*c, c = a]", NULL, "E0428 a.etch:3:7 the size of mesh axis 'a' needs itself\n"},
        {"mesh [a]\naxis b = (a, c), c = b", NULL, "E0428 a.etch:4:22 'b' is a product of itself\n"},
        {"mesh [a, b]\naxis a = (a, b)", NULL,
         "E0422 a.etch:4:6 'a' is a name of mesh axes already\n"
         "  note a.etch:3:7 it is declared here\n"},
        {"mesh [a, b]\naxis c = (a, b), c = a", NULL,
         "E0422 a.etch:4:18 'c' is a name of mesh axes already\n"
         "  note a.etch:4:6 it is declared here\n"},
        {"mesh [edp = dp/ep, ep]\naxis dp = edp", NULL,
         "E0429 a.etch:4:6 the axes of 'dp' are dp/ep ranks together, but the mesh calls another number "
         "'dp'\n"},
        {"mesh [a, b]\nshard B @ (a, b, a)", NULL,
         "E0424 a.etch:4:18 mesh axis 'a' stands twice in this list\n"},
        {"mesh [a, b]\naxis c = (a, b)\nshard B @ (b, c)", NULL,
         "E0424 a.etch:5:15 mesh axis 'b' stands twice in this list\n"},
        {"mesh [a, b]\nshard B @ a\nshard B @ b", NULL,
         "E0425 a.etch:5:7 dim 'B' is sharded twice\n"
         "  note a.etch:4:7 it is sharded here already\n"
         "  help several axes of one dim are one list: B @ (a, b)\n"},
        {"mesh [a, b]\npin residual [B@a, B@b]", NULL,
         "E0425 a.etch:4:20 dim 'B' is sharded twice\n"
         "  note a.etch:4:15 it is sharded here already\n"
         "  help several axes of one dim are one list: B @ (a, b)\n"},
        {"mesh [a]\nzero 4 @ a", NULL,
         "E0430 a.etch:4:6 there is no ZeRO level 4\n"
         "  help 1 divides the states of the optimizer, 2 the gradients as well, 3 the weights as well\n"},
        {"mesh [a, b]\nzero 1 @ a\nzero 1 @ b", NULL,
         "E0431 a.etch:5:1 a plan has one zero line\n"
         "  note a.etch:4:1 it is here\n"
         "  help several axes are one list: zero 1 @ (a, b)\n"},
        {"mesh [a]\nzero 1 @ b", NULL,
         "E0423 a.etch:4:10 plan 'p' has no mesh axis 'b'\n  note its mesh is [a]\n"},
        {"mesh [a]\nzero 1 @ a, group = layer, groups = 2", NULL,
         "E0430 a.etch:4:21 'group' of a zero line is weight, each by itself: zero 3 also gathers by the "
         "iterations of loops\n"
         "E0430 a.etch:4:28 a zero line has no option 'groups'\n  help did you mean 'group'?\n"
         "  help it has again, group, keep, prefetch, reduce, root\n"},
        {"mesh [a]\nzero 2 @ a, keep = step, keep = step", NULL,
         "E0430 a.etch:4:13 'keep' speaks of weights that are gathered, and zero 2 divides none\n"
         "  help zero 3 divides the weights, too\n"
         "E0430 a.etch:4:26 'keep' is given twice\n  note a.etch:4:13 it is given here already\n"},
        {"mesh [a]\nzero 1 @ a, reduce = microbatch", NULL,
         "E0430 a.etch:4:22 'reduce' of a zero line is step: zero 1 adds up whole gradients\n"},
        {"mesh [a, b]\nzero 3 @ a, reduce = end, keep = 2, prefetch = kv, again = 2, group = 3", NULL,
         "E0430 a.etch:4:22 'reduce' of a zero line is microbatch or step: when gradients are reduced\n"
         "E0430 a.etch:4:34 'keep' of a zero line is false, microbatch (or true) or step: how long gathered "
         "weights last\n"
         "E0430 a.etch:4:48 'prefetch' of a zero line is a number: how many groups ahead weights are "
         "gathered\n"
         "E0430 a.etch:4:60 'again' of a zero line is axes, over which backward gathers: gpus, (a, b)\n"
         "E0430 a.etch:4:71 'group' of a zero line is a loop, whose iterations gather what they read: layer, "
         "(enc, dec); or weight: each by itself\n"},
        {"mesh [a]\nzero 2 @ a, root = true, group = weight, unit = layer\nfor core { zero 3 @ a, root = 1, "
         "prefetch = 2\nzero 1 @ a }",
         NULL,
         "E0430 a.etch:4:13 'root' speaks of weights that are gathered, and zero 2 divides none\n"
         "  help zero 3 divides the weights, too\n"
         "E0430 a.etch:4:42 'unit' speaks of weights that are gathered, and zero 2 divides none\n"
         "  help zero 3 divides the weights, too\n"
         "E0430 a.etch:5:31 'root' of a zero line is true or false: are the weights of no iteration gathered "
         "once, until backward\n"
         "E0430 a.etch:5:34 weights of all scopes are gathered in one order: 'prefetch' is said once\n"
         "  help write it on the zero line of the plan\n"
         "E0431 a.etch:6:1 a scope has one zero line\n"
         "  note a.etch:5:12 it is here\n"
         "  help several axes are one list: zero 1 @ (a, b)\n"},
        {"mesh [a]\nzero 3 @ a, unit = layer, group = layer", NULL,
         "remark E0440 a.etch:4:13 'unit' of a zero line is called 'group' now; the old word is understood "
         "until etch "
         "0.2\n"
         "E0430 a.etch:4:27 'group' and 'unit', its old name, are one option\n"},
        {"mesh [a, b]\nzero 3 @ a, again = b, group = core", NULL,
         "E0430 a.etch:4:21 'again' gathers over some of the axes that divide the weights\n"
         "  note a.etch:4:1 these are here\n"
         "E0430 a.etch:4:32 'core' is no loop\n"},
        {"mesh [a]\nzero 3 @ a, again = a, keep = true", NULL,
         "E0430 a.etch:4:1 'again' says what backward gathers, and with this 'keep' it gathers nothing\n"},
        {"mesh [a]\nstage layer @ b", NULL,
         "E0423 a.etch:4:15 plan 'p' has no mesh axis 'b'\n  note its mesh is [a]\n"},
        {"mesh [a, b]\nstage layer @ a\nstage embed @ b", NULL,
         "E0430 a.etch:5:1 a plan has one stage line\n"
         "  note a.etch:4:1 it is here\n"
         "  help one line lists all units: stage (embed, layer, head) @ pp\n"},
        {"mesh [a]\nstage layer @ a, schedule = one_f_one_bb, schedule = gpipe, virtual = 2, shedule = gpipe",
         NULL,
         "E0432 a.etch:4:29 there is no schedule 'one_f_one_bb'\n"
         "  help did you mean 'one_f_one_b'?\n" SCHEDULES "E0430 a.etch:4:43 'schedule' is given twice\n"
         "  note a.etch:4:18 it is given here already\n"
         "E0430 a.etch:4:61 a stage line has no option 'virtual'\n"
         "  help it has counts, schedule; what a schedule takes stands behind it, "
         "schedule = interleaved(virtual = 2)\n"
         "E0430 a.etch:4:74 a stage line has no option 'shedule'\n"
         "  help did you mean 'schedule'?\n"
         "  help it has counts, schedule; what a schedule takes stands behind it, "
         "schedule = interleaved(virtual = 2)\n"},
        {"mesh [a]\nstage layer @ a, schedule = list", NULL,
         "E0432 a.etch:4:29 schedule 'list' needs the order of each stage, as strings\n" ORDERS},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0 B0\", 2)", NULL,
         "E0432 a.etch:4:29 schedule 'list' needs the order of each stage, as strings\n" ORDERS},
        {"mesh [a]\nstage layer @ a, schedule = list(order = \"F0 B0\")", NULL,
         "E0432 a.etch:4:29 schedule 'list' needs the order of each stage, as strings\n" ORDERS},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0 X0\")", NULL,
         "E0443 a.etch:4:38 'X0' is no action of a stage\n" ACTIONS},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0  F1+B0 B1\")", NULL,
         "E0443 a.etch:4:39 'F1+B0' is no action of a stage\n" ACTIONS},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0 F1& B0 B1\")", NULL,
         "E0443 a.etch:4:41 '' is no action of a stage\n" ACTIONS},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0  B0&F1 B1\")", NULL,
         "E0443 a.etch:4:39 these two actions cannot share a slot\n" SLOTS},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0&B0\")", NULL,
         "E0443 a.etch:4:35 the actions of a slot are of one microbatch\n" SLOTS},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0 F1&I0&W0 B1\")", NULL,
         "E0443 a.etch:4:38 a slot has two actions at most\n" SLOTS},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0 F1&B0 B1\", \"F0 F1 B0 B1\")", NULL,
         "E0443 a.etch:4:41 the stages wait for each other for ever\n"
         "  note a.etch:4:41 stage 0 waits here for B0 of stage 1\n"
         "  note a.etch:4:53 stage 1 waits here for F1 of stage 0\n"},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0. B0\")", NULL,
         "E0443 a.etch:4:35 'F0.' is no action of a stage\n" ACTIONS},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F1234567890 B0\")", NULL,
         "E0443 a.etch:4:35 'F1234567890' is no action of a stage\n" ACTIONS},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0 B0 F0\")", NULL,
         "E0443 a.etch:4:41 stage 0 does F0 twice\n  note a.etch:4:35 it is done here already\n"},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0 I0 B0\")", NULL,
         "E0443 a.etch:4:41 stage 0 does B0 twice\n  note a.etch:4:38 it is done here already\n"},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0 B0\", \"B0 F0\")", NULL,
         "E0443 a.etch:4:44 stage 1 has not done F0 before B0\n"},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0 F1 B0 B1\", \"F0 B0\")", NULL,
         "E0443 a.etch:4:49 stage 1 does not do F1\n"
         "  note a.etch:4:29 the order has microbatches 0 to 1 and chunks 0 to 0\n"},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0.0 F0.1 I0.1 I0.0 W0.1\")", NULL,
         "E0443 a.etch:4:34 stage 0 does not do W0.0\n"
         "  note a.etch:4:29 the order has microbatches 0 to 0 and chunks 0 to 1\n"},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0 B0\", chunks = mirored)", NULL,
         "E0432 a.etch:4:29 schedule 'list' needs the order of each stage, as strings\n" ORDERS},
        {"mesh [a]\nstage layer @ a, schedule = list(\"\", \"\")", NULL,
         "E0443 a.etch:4:34 stage 0 does not do F0\n"
         "  note a.etch:4:29 the order has microbatches 0 to 0 and chunks 0 to 0\n"},
        {"mesh [a]\nstage layer @ a, schedule = list(\"F0 B0 F1 B1\", \"F0 F1 B0 B1\")", NULL,
         "E0443 a.etch:4:38 the stages wait for each other for ever\n"
         "  note a.etch:4:38 stage 0 waits here for B0 of stage 1\n"
         "  note a.etch:4:53 stage 1 waits here for F1 of stage 0\n"},
        {"mesh [a]\nstage layer @ a, schedule = 3, counts = 4", NULL,
         "E0432 a.etch:4:29 a schedule is given by its name\n" SCHEDULES
         "E0430 a.etch:4:41 counts are a list: the units of each stage\n"
         "  help for example counts = [7, 8, 8, 7]\n"},
        {"mesh [a]\nstage layer @ a, schedule = interleaved", NULL,
         "E0432 a.etch:4:29 schedule 'interleaved' needs the number of chunks that a stage holds\n" CHUNKS},
        {"mesh [a]\nstage layer @ a, schedule = interleaved(2)", NULL,
         "E0432 a.etch:4:29 schedule 'interleaved' needs the number of chunks that a stage holds\n" CHUNKS},
        {"mesh [a]\nstage layer @ a, schedule = interleaved(virtual = 2, chunks = 2)", NULL,
         "E0432 a.etch:4:29 schedule 'interleaved' needs the number of chunks that a stage holds\n" CHUNKS},
        {"mesh [a]\nstage layer @ a, schedule = interleaved(virtual = hads)", NULL,
         "E0210 a.etch:4:51 unknown name 'hads'\n  help did you mean 'heads'?\n"},
        {"mesh [a]\nstage layer @ a, schedule = gpipe(virtual = 2)", NULL,
         "E0432 a.etch:4:29 schedule 'gpipe' takes no options\n"},
        {"mesh [a]\noffload = (optimizer)\nofload = 1", NULL,
         "E0430 a.etch:5:1 a plan has no option 'ofload'\n  help did you mean 'offload'?\n"
         "  help it has attend, balance, bucket, keep, offload, order, ranks, recompute, reduce; sizes of "
         "axes stand "
         "in the mesh, mesh [dp = 8]\n"},
        {"mesh [a]\noffload = (master, weights, mastr, 3)", NULL,
         "E0420 a.etch:4:20 offloading 'weights'" LATER OFFLOAD
         "E0430 a.etch:4:29 offload lists what the optimizer keeps in the memory of the host\n"
         "  help did you mean 'master'?\n" OFFLOAD
         "E0430 a.etch:4:36 offload lists what the optimizer keeps in the memory of the host\n" OFFLOAD},
        {"mesh [a]\n# nothing\npad K = 128\nfor core { dtype act = f8 }\nfor core { keep = none "
         "}\naccumulate = (B, 4)",
         NULL,
         "E0420 a.etch:6:12 'dtype' in a scope" LATER "E0420 a.etch:7:12 'keep' in a scope" LATER
         "E0430 a.etch:8:1 a plan has no option 'accumulate'\n"
         "  help a train block says it: train { model = gpt, accumulate = (B, micro) }\n"},
        {"mesh [a]\nschedule = zb_h1\nprefetch = 1", NULL,
         "E0430 a.etch:4:1 a plan has no option 'schedule'\n"
         "  help the stage line of a plan says it: stage (embed, layer, head) @ pp, schedule = zb_h1\n"
         "E0430 a.etch:5:1 a plan has no option 'prefetch'\n"
         "  help the zero line of a plan says it: zero 3 @ dp, prefetch = 2\n"},
        {"mesh [a]\ndtype act = f32, master = none\ndtype gemm = f8, moments = i8, master = f32", NULL,
         "E0244 a.etch:5:7 the dtype of 'gemm'" LATER
         "E0216 a.etch:5:28 i8 is no dtype of real numbers, which moments are\n"
         "E0211 a.etch:5:32 the dtype of 'master' is set twice\n  note a.etch:4:18 it is set here already\n"},
        {"mesh [a]\ndtype dispatch = f8(128), combine = f8(block = 0), act = f8(block = 128)\n"
         "dtype weights = f8(block = 1.5)",
         NULL,
         "E0216 a.etch:4:18 a dtype takes the number of elements that share a scale, from 1 to 1048576\n"
         "  help write f8(block = 128)\n"
         "E0216 a.etch:4:37 a dtype takes the number of elements that share a scale, from 1 to 1048576\n"
         "  help write f8(block = 128)\n"
         "E0216 a.etch:4:58 only what goes to experts and back has scales: dispatch and combine\n"
         "E0216 a.etch:5:17 only what goes to experts and back has scales: dispatch and combine\n"},
        {"mesh [a]\nbalance = 2\nbucket = 0\nbalance = true", NULL,
         "E0430 a.etch:4:11 balance is true, early and late queries together, or false, contiguous parts of "
         "them\nE0430 a.etch:5:10 a bucket is layer, step, ddp, or at least 1 byte\n"
         "  help write bucket = 25*2^20 for 25 MiB\n"
         "E0430 a.etch:6:1 'balance' is given twice\n  note a.etch:4:1 it is given here already\n"},
        {"mesh [a]\nattend = rng\nfor core { attend = ring }\nattend = 2", NULL,
         "E0430 a.etch:4:10 ranks that share a sequence attend = gather, to all keys and values at once, or "
         "attend = ring, to one block after the other\n  help did you mean 'ring'?\n"
         "  help heads that are divided in their place are a scope: for core { shard S @ (), K @ cp }\n"
         "E0420 a.etch:5:12 'attend' in a scope" LATER
         "E0430 a.etch:6:1 'attend' is given twice\n  note a.etch:4:1 it is given here already\n"},
        {"mesh [a]\nrecompute = 3", NULL,
         "E0220 a.etch:4:13 recompute is a loop, a module, a tag, a list of them, full, needed or none\n"
         "  help write recompute = layer, (attention.core, mlp.h), layer(first = 8), full, needed(layer)\n"},
        {"mesh [a]\nrecompute = fit(8, 9)\nfor core { recompute = fit(8) }", NULL,
         "E0220 a.etch:4:13 fit says how many bytes a rank may hold\n"
         "  help write recompute = fit(76*10^9), or (core, fit(76*10^9))\n"
         "E0430 a.etch:5:24 what fits is counted in layers of the whole model: a scope has none of its own\n"
         "  help write recompute = fit(..) outside of the scope\n"},
        {"mesh [a]\nrecompute = (fit(8), fit(9))", NULL,
         "E0220 a.etch:4:22 fit stands once\n"
         "  help write recompute = fit(76*10^9), or (core, fit(76*10^9))\n"},
        {"mesh [a]\nrecompute = layer\nrecompute = none", NULL,
         "E0430 a.etch:5:1 'recompute' is given twice\n  note a.etch:4:1 it is given here already\n"},
        {"mesh [a]\nfor core { mesh [b]\nshard B @ b }\nstage layer @ b", NULL,
         "E0420 a.etch:4:12 a mesh of its own for a scope" LATER OWN_MESH},
        {"mesh [a]\nfor core { for experts { mesh [b] } }", NULL,
         "E0420 a.etch:4:26 a mesh of its own for a scope" LATER OWN_MESH},
        {"mesh [a]\nfor core { reduce = end\nranks = 4\norder = a\nrecompute = none }", NULL,
         "E0430 a.etch:4:12 gradients are reduced together, those of several modules in one collective: a "
         "scope cannot "
         "say when\n  help write it outside of the scope, for the whole plan\n"
         "E0430 a.etch:5:1 'ranks' is of all ranks: a scope has none of its own\n"
         "  help write it outside of the scope, for the whole plan\n"
         "E0430 a.etch:6:1 'order' is of all ranks: a scope has none of its own\n"
         "  help write it outside of the scope, for the whole plan\n"
         "E0430 a.etch:7:1 a scope cannot keep what is run again: what is around it is run again as a whole\n"
         "  help name outside of the scope what is to be run again, without this part\n"},
        {"mesh [a]\nfor core { recompute = full\nrecompute = full }", NULL,
         "E0430 a.etch:5:1 'recompute' is given twice\n  note a.etch:4:12 it is given here already\n"},
        {"mesh [a]\nrecompute = layer\nfor core { recompute = needed }", NULL,
         "E0430 a.etch:5:12 what nobody reads is left out of all that is run again, or of nothing\n"
         "  note a.etch:4:1 here it is said otherwise\n  help write needed(..) in both lines, or in none\n"},
    };
    RUN_ALL(arena, cases);
}

START_TEST(a_wrong_line_is_reported_at_its_place)
{
    etch_with_arena(wrong);
}
END_TEST

/* ---- which plan ---------------------------------------------------------------------------------------- */

typedef struct choice_case {
    const char *text, *name;
    bool needed;
    const char *plan, *messages;
} choice_case;

static void choices(etch_arena *arena)
{
    static const choice_case cases[] = {
        {"", NULL, false, NULL, ""},
        {"", NULL, true, NULL,
         "E0421 this needs a plan, and the spec has none\n"
         "  note plans: none\n"
         "  help write one: parallel NAME { mesh [dp]; shard B @ dp }\n"},
        {"parallel a { }\n", NULL, true, "a", ""},
        {"parallel a { }\nparallel b { }\n", NULL, false, NULL, ""},
        {"parallel a { }\nparallel b { }\n", NULL, true, NULL,
         "E0421 this needs a plan, and the spec has several\n"
         "  note plans: a, b\n"
         "  help choose one with --plan, or write `use plan NAME` in the spec\n"},
        {"use plan b\nparallel a { }\nparallel b { }\n", NULL, true, "b", ""},
        {"use plan b\nparallel a { }\nparallel b { }\n", "a", true, "a", ""},
        {"parallel megatron { }\n", "megatrom", true, NULL,
         "E0421 there is no plan 'megatrom'\n"
         "  note plans: megatron\n"
         "  help did you mean 'megatron'?\n"},
        {"import \"b.etch\"\nparallel own { }\n--- b.etch\nparallel other { }\n", NULL, true, "own", ""},
        {"import \"b.etch\" as b\n--- b.etch\nparallel other { }\n", "b.other", true, "other", ""},
        /* a plan with what has no meaning yet is in nobody's way until it is needed */
        {"parallel a { mesh [a]; dtype gemm = f8 }\n", NULL, false, NULL, ""},
        {"parallel a { mesh [a]; dtype gemm = f8 }\n", NULL, true, NULL,
         "E0244 a.etch:2:30 the dtype of 'gemm'" LATER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const choice_case *c = &cases[i];
        spec_scene s = specs_load(arena, c->text);
        const etch_plan *plan = etch_spec_plan(s.spec, c->name, c->needed, (etch_span){0, 0});
        specs_expect(c->text, specs_messages(&s), c->messages);
        ck_assert_msg((plan != NULL) == (c->plan != NULL), "%s", c->text);
        if (plan)
            specs_expect(c->text, plan->name, c->plan);
        specs_end(&s);
    }
}

START_TEST(a_plan_is_named_or_used_or_the_only_one)
{
    etch_with_arena(choices);
}
END_TEST

/* ---- lines that have no meaning yet -------------------------------------------------------------------- */

typedef struct ready_case {
    const char *scope, *set;
    bool defaults, bound, ready;
    const char *messages;
} ready_case;

static void pending(etch_arena *arena)
{
    static const ready_case cases[] = {
        {"for core { stage layer @ dp }", "pp=1,dp=1", false, true, true, ""},
        {"for core { stage layer @ dp }", "tp=8", true, true, true, ""},
        {"for core { stage  layer @ (dp,tp) }", "pp=2,dp=1", true, true, true, ""},
        {"for core { stage  layer @ (dp,tp) }", "dp=4", false, false, false,
         "E0420 a.etch:5:12 'stage layer @ (dp,tp)'" LATER
         "  note a.etch:4:1 the stages of the plan are these\n"
         "  help stages cut the whole model: leave this line out\n"},
        {"for core { stage  layer @ (dp,tp) }", "dp=1,tp=1", false, true, true, ""},
        {"for core { stage  layer @ (dp,tp) }", "pp=1", false, true, false,
         "E0420 a.etch:5:12 'stage layer @ (dp,tp)'" LATER
         "  note a.etch:4:1 the stages of the plan are these\n"
         "  help stages cut the whole model: leave this line out\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ready_case *c = &cases[i];
        spec_scene s = specs_load(
            arena, etch_text(arena, "parallel p {\n  mesh [pp, dp, tp]\nstage layer @ pp\n%s\n}\n%s",
                             c->scope, around));
        const etch_plan *plan = etch_spec_plan(s.spec, "p", true, (etch_span){0, 0});
        ck_assert_ptr_nonnull(plan);
        etch_settings settings;
        ck_assert_msg(etch_spec_bind(s.spec, NULL, NULL, &c->set, 1, c->defaults, plan, &settings) ==
                          c->bound,
                      "%s", c->set);
        if (c->bound)
            ck_assert_msg(etch_spec_pending_ready(s.spec, plan, &settings) == c->ready, "%s", c->set);
        specs_expect(c->set, specs_messages(&s), c->messages);
        specs_end(&s);
    }
}

START_TEST(a_stage_in_a_scope_is_refused_where_it_would_have_an_effect)
{
    etch_with_arena(pending);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("plans");
    ETCH_ADD_TESTS(suite, a_plan_says_where_dims_go, what_the_model_lacks_is_a_warning,
                   a_wrong_line_is_reported_at_its_place, a_plan_is_named_or_used_or_the_only_one,
                   a_stage_in_a_scope_is_refused_where_it_would_have_an_effect);
    return suite;
}
