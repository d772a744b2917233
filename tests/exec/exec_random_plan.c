/* Random plans, and what is recomputed. */
#include "exec_random.h"

#include "exec_env.h"

#include "graph/ir/row.h"

#include <string.h>

typedef struct planner {
    const exec_model *m;
    exec_dice *dice;
    uint32_t axes;
    bool reversed; /* b is outside a on every dim */
    bool rich;     /* of a rich model, or one that is served */
    bool padded;   /* all dims that are divided are */
    etch_buf text;
} planner;

static void add_axes(planner *p, uint32_t axes)
{
    bool both = (axes & 3) == 3;
    const char *first = p->reversed ? "b,a" : "a,b";
    etch_buf_printf(&p->text, "@%s%s",
                    both       ? first
                    : axes & 1 ? "a"
                    : axes & 2 ? "b"
                               : "",
                    axes & 4 ? both || axes & 3 ? ",c" : "c" : "");
}

/* Gives every axis to at most one of some dims. */
static void add_shards(planner *p, etch_dim *const *dims, uint32_t count)
{
    uint32_t taken = 0, all = (1u << p->axes) - 1;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axes =
            exec_roll(p->dice, 3) ? (1u << exec_roll(p->dice, p->axes)) : exec_roll(p->dice, all + 1);
        axes &= ~taken;
        if (!axes || axes == 7 || exec_roll(p->dice, 2))
            continue;
        taken |= axes;
        etch_buf_printf(&p->text, " %s", dims[i]->name);
        add_axes(p, axes);
    }
}

/* Heads of keys on one axis, the queries of each on another, and at times more. */
static void add_grouped_map(planner *p)
{
    static const char *const others[] = {"B", "S", "F", "V", "H"};
    const uint32_t left = exec_roll(p->dice, 3);
    etch_buf_puts(&p->text, " | K@a G@b");
    for (uint32_t k = 0; k < left; k++) {
        const uint32_t axes = 1u << exec_roll(p->dice, p->axes);
        const char *dim = others[exec_roll(p->dice, sizeof others / sizeof *others)];
        if (strstr(p->text.text, etch_text(p->m->arena, " %s@", dim)))
            continue;
        etch_buf_printf(&p->text, " %s", dim);
        add_axes(p, p->axes == 3 && exec_roll(p->dice, 2) ? 4 : axes);
    }
}

/* The model's map: a dim or two for every axis. Dims that meet in one tensor are rare in one map. */
static void add_map(planner *p)
{
    static const char *const groups[] = {"B", "K", "S", "F", "V", "H", "T", "D", "H'", "E", "C", "Q"};
    enum { GROUPS = sizeof groups / sizeof *groups };
    uint32_t axes_of[GROUPS] = {0};
    for (uint32_t a = 0; a < p->axes; a++)
        for (uint32_t k = 0; k < 1 + exec_roll(p->dice, 2); k++)
            axes_of[exec_roll(p->dice, GROUPS)] |= 1u << a;
    etch_buf_puts(&p->text, " |");
    for (uint32_t i = 0; i < GROUPS; i++)
        if (axes_of[i] && axes_of[i] != 7) {
            etch_buf_printf(&p->text, " %s", groups[i]);
            add_axes(p, axes_of[i]);
        }
}

/* Pins only dims that all tensors with the tag have; what it leaves out is whole, or as the map says. */
static void add_pin(planner *p, const char *tag)
{
    etch_dim *common[8];
    uint32_t count = 0, tagged = 0;
    for (uint32_t i = 0; i < p->m->graph->tensors.count; i++) {
        const etch_tensor *tensor = p->m->graph->tensors.at[i];
        bool has = false;
        for (uint32_t k = 0; k < tensor->tag_count; k++)
            has = has || strcmp(tensor->tags[k], tag) == 0;
        if (!has)
            continue;
        uint32_t left = 0;
        for (uint32_t d = 0; d < (tagged ? count : tensor->rank); d++) {
            etch_dim *dim = tagged ? common[d] : tensor->dims[d];
            if (etch_has_dim(tensor, dim))
                common[left++] = dim;
        }
        count = left;
        tagged++;
    }
    if (!tagged)
        return;
    etch_buf_printf(&p->text, " pin %s", tag);
    add_shards(p, common, count);
    if (exec_mix(p->dice->state, tagged) % 3 == 0)
        etch_buf_puts(&p->text, " ..");
}

/* Of any level, with its options. */
static void add_zero(planner *p, const char *axes)
{
    static const char *const reductions[] = {"", " whole"}, *const copies[] = {"", "", " kept", " always"};
    const uint32_t level = 1 + exec_roll(p->dice, 3);
    if (level == 1) {
        etch_buf_printf(&p->text, " zero %s", axes);
        return;
    }
    etch_buf_printf(&p->text, " zero %u %s%s", level, axes, reductions[exec_roll(p->dice, 2)]);
    if (level == 3 && exec_roll(p->dice, 4) == 0)
        etch_buf_printf(&p->text, " again=%c", axes[strlen(axes) - 1]);
    else if (level == 3)
        etch_buf_puts(&p->text, copies[exec_roll(p->dice, 4)]);
    if (level == 3 && exec_roll(p->dice, 3) == 0)
        etch_buf_puts(&p->text, " root");
    if (level == 3 && exec_roll(p->dice, 2) == 0)
        etch_buf_puts(&p->text, " now");
    if (exec_roll(p->dice, 4) == 0)
        etch_buf_puts(&p->text, " weight");
}

static void add_override(planner *p)
{
    static const char *const parts[] = {"m0", "m1", "loop0",    "loop1", "t0",
                                        "t1", "t2", "loop0>m0", "m0>t1", "loop1>t2"};
    const uint32_t part =
        exec_roll(p->dice, 2) ? exec_roll(p->dice, 2) : exec_roll(p->dice, sizeof parts / sizeof *parts);
    etch_buf_printf(&p->text, " | for %s", parts[part]);
    uint32_t first = exec_roll(p->dice, EXEC_INNER_DIMS);
    etch_dim *some[] = {exec_model_dim(p->m, exec_inner_dims[first]),
                        exec_model_dim(p->m, exec_inner_dims[(first + 3) % EXEC_INNER_DIMS])};
    add_shards(p, some, 2);
    etch_dim *slots[] = {exec_model_dim(p->m, exec_expert_dims[0]),
                         exec_model_dim(p->m, exec_expert_dims[1])};
    if (exec_roll(p->dice, 2))
        add_shards(p, slots, 2);
    if (exec_roll(p->dice, 2))
        etch_buf_printf(&p->text, " %s@", exec_inner_dims[(first + 1) % EXEC_INNER_DIMS]);
    const uint32_t more = exec_roll(p->dice, 6);
    if (more < 2)
        add_pin(p, etch_text(p->m->arena, "t%u", exec_roll(p->dice, 4)));
    else if (more == 2)
        add_zero(p, "a");
}

/* What no mesh divides. Sequences have two chunks for each rank, where work is balanced. */
static void add_pads(planner *p, uint32_t ranks)
{
    static const char *const dims[] = {"B", "S", "K", "V"};
    bool first = true;
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        if (i == 1 && p->m->graph->serves) /* nothing is appended to a cache */
            continue;
        const uint32_t multiple = i == 1 ? 2 * ranks : i == 3 ? 3 * ranks : ranks;
        const uint32_t sides = exec_integer(exec_model_dim(p->m, dims[i])->size) % 4 ? 8 : 0;
        if (sides ? exec_roll(p->dice, sides) == 0 : exec_roll(p->dice, 12) != 0)
            continue;
        etch_buf_printf(&p->text, "%s %s=%u", first ? " | pad" : "", dims[i], multiple);
        first = false;
    }
}

/* Is it divided anywhere? What is renamed from it, or to it, is as well. */
static bool is_divided(const planner *p, const char *dim)
{
    const char *other = strcmp(dim, "S") == 0 ? "T" : strcmp(dim, "T") == 0 ? "S" : dim;
    return strstr(p->text.text, etch_text(p->m->arena, " %s@", dim)) ||
           strstr(p->text.text, etch_text(p->m->arena, " %s@", other));
}

/* All dims that are divided, and some others. */
static void add_all_pads(planner *p, uint32_t ranks)
{
    static const char *const dims[] = {"B", "S", "T", "K", "G", "H", "H'", "F", "D", "V"};
    const char *before = " | pad";
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        const bool chunks = i == 1 || i == 2;
        if (!is_divided(p, dims[i]) && exec_roll(p->dice, 8))
            continue;
        etch_buf_printf(&p->text, "%s %s=%u", before, dims[i], chunks ? 2 * ranks : ranks);
        before = "";
    }
}

static const char *plan_of(planner *p)
{
    exec_dice *const dice = p->dice;
    const exec_model *const m = p->m;
    static const char *const meshes[] = {"a=2", "a=4", "a=2 b=2", "a=2 b=2", "a=2 b=2", "a=2 b=2 c=2"};
    static const uint32_t counts[] = {1, 1, 2, 2, 2, 3}, ranks[] = {2, 4, 4, 4, 4, 8};
    uint32_t mesh = exec_roll(dice, 6);
    p->axes = counts[mesh];
    p->reversed = exec_roll(dice, 4) == 0;
    p->text.arena = m->arena;
    etch_buf_puts(&p->text, meshes[mesh]);
    if (p->rich && p->axes > 1 && exec_roll(dice, 2))
        add_grouped_map(p);
    else
        add_map(p);
    for (uint32_t i = 0; i < 4; i++)
        if (exec_roll(dice, 2)) {
            etch_buf_puts(&p->text, " |");
            add_pin(p, etch_text(m->arena, "t%u", i));
        }
    while (exec_roll(dice, 3) == 0)
        add_override(p);
    static const char *const zero[] = {"a", "b", "a,b", "a,c"};
    const uint32_t chosen = exec_roll(dice, 8), most = p->axes == 1 ? 1 : p->axes == 2 ? 3 : 4;
    if (chosen < most)
        etch_buf_puts(&p->text, " |");
    if (chosen < most)
        add_zero(p, zero[chosen]);
    if (exec_roll(dice, 6) == 0)
        etch_buf_puts(&p->text, " | ddp");
    if (exec_roll(dice, 6) == 0)
        etch_buf_puts(&p->text, " | contiguous");
    if (exec_roll(dice, 6) == 0)
        etch_buf_puts(&p->text, " | each");
    if (exec_roll(dice, 4) == 0)
        etch_buf_puts(&p->text, " | rings");
    if (exec_roll(dice, 3) == 0)
        etch_buf_puts(&p->text, " | keep");
    if (p->padded)
        add_all_pads(p, ranks[mesh]);
    else if (p->rich)
        add_pads(p, ranks[mesh]);
    return p->text.text;
}

const char *exec_random_plan(const exec_model *m, exec_dice *dice)
{
    planner p = {.m = m, .dice = dice};
    return plan_of(&p);
}

const char *exec_random_rich_plan(const exec_model *m, exec_dice *dice)
{
    planner p = {.m = m, .dice = dice, .rich = true};
    return plan_of(&p);
}

const char *exec_random_padded_plan(const exec_model *m, exec_dice *dice)
{
    planner p = {.m = m, .dice = dice, .rich = true, .padded = true};
    return plan_of(&p);
}

/* Is one of the values of the top level tagged so? */
static bool is_top_tag(const exec_model *m, const char *tag)
{
    const etch_region *forward = m->graph->forward;
    for (uint32_t i = 0; i < forward->items.count; i++) {
        const etch_op *op = forward->items.at[i].op;
        if (op && op->scope == m->graph->scopes.at[0] && etch_has_tag(op->outs[0], tag))
            return true;
    }
    return false;
}

/* What the stage line lists: most of the loops of the top level, and some tags. */
static const char *random_chain(const exec_model *m, exec_dice *dice)
{
    const etch_region *forward = m->graph->forward;
    etch_buf text = {.arena = m->arena};
    const char *before = "";
    etch_buf_puts(&text, "");
    for (uint32_t i = 0; i < forward->items.count; i++) {
        const etch_loop *loop = forward->items.at[i].loop;
        if (!loop || exec_roll(dice, 8) == 0)
            continue;
        etch_buf_printf(&text, "%s%s", before, loop->name);
        before = ",";
    }
    for (uint32_t i = 0; i < 4; i++) {
        const char *tag = etch_text(m->arena, "t%u", i);
        if (exec_roll(dice, *before ? 4 : 2) || !is_top_tag(m, tag))
            continue;
        etch_buf_printf(&text, "%s%s", before, tag);
        before = ",";
    }
    return *before ? text.text : "t0";
}

static const char *some_schedule(exec_dice *dice)
{
    static const char *const schedules[] = {"gpipe",
                                            "gpipe",
                                            "one_f_one_b",
                                            "one_f_one_b",
                                            "interleaved virtual=1",
                                            "interleaved virtual=2",
                                            "interleaved virtual=2",
                                            "zb_v"};
    return schedules[exec_roll(dice, sizeof schedules / sizeof *schedules)];
}

typedef const char *(*planning)(const exec_model *m, exec_dice *dice);

static const char *staged(const exec_model *m, exec_dice *dice, planning within)
{
    const char *schedule = some_schedule(dice);
    const uint32_t stages = 2 + (exec_roll(dice, 6) == 0);
    const char *chain = random_chain(m, dice);
    return etch_text(m->arena, "p=%u %s | stage %s@p %s", stages, within(m, dice), chain, schedule);
}

static const char *scheduled(const exec_model *m, exec_dice *dice, planning within)
{
    const uint32_t stages = 2 + (exec_roll(dice, 6) == 0);
    const char *schedule = exec_random_schedule(m, dice, stages), *chain = random_chain(m, dice);
    return etch_text(m->arena, "p=%u %s | stage %s@p %s", stages, within(m, dice), chain, schedule);
}

const char *exec_random_staged_plan(const exec_model *m, exec_dice *dice)
{
    return staged(m, dice, exec_random_plan);
}

const char *exec_random_rich_staged_plan(const exec_model *m, exec_dice *dice)
{
    return staged(m, dice, exec_random_rich_plan);
}

const char *exec_random_padded_staged_plan(const exec_model *m, exec_dice *dice)
{
    return staged(m, dice, exec_random_padded_plan);
}

const char *exec_random_scheduled_plan(const exec_model *m, exec_dice *dice)
{
    return scheduled(m, dice, exec_random_plan);
}

const char *exec_random_rich_scheduled_plan(const exec_model *m, exec_dice *dice)
{
    return scheduled(m, dice, exec_random_rich_plan);
}

const char *exec_random_padded_scheduled_plan(const exec_model *m, exec_dice *dice)
{
    return scheduled(m, dice, exec_random_padded_plan);
}

const char *exec_random_recompute(const exec_model *m, uint32_t loops, exec_dice *dice)
{
    const etch_graph *graph = m->graph;
    ETCH_VEC(const char *) names = {0};
    for (uint32_t i = 0; i < loops; i++)
        ETCH_PUSH(m->arena, &names, etch_text(m->arena, "loop%u", i));
    for (uint32_t i = 1; i < graph->scopes.count; i++)
        ETCH_PUSH(m->arena, &names, graph->scopes.at[i]->module);
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        if (graph->tensors.at[i]->producer && graph->tensors.at[i]->tag_count)
            ETCH_PUSH(m->arena, &names, graph->tensors.at[i]->tags[0]);
    static const char *const what[] = {NULL, NULL, "all", "needed"};
    uint32_t choice = exec_roll(dice, 8), count = 1 + exec_roll(dice, 3);
    if (choice < 4 || names.count == 0)
        return what[choice % 4];
    etch_buf text = {.arena = m->arena};
    etch_buf_puts(&text, choice < 6 ? "" : "needed(");
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(&text, ",%s", names.at[exec_roll(dice, names.count)]);
    return text.text;
}

bool exec_random_recompute_part(const exec_model *m, exec_dice *dice)
{
    bool found = false;
    for (uint32_t i = 0; i < m->graph->forward->items.count; i++) {
        const etch_loop *loop = m->graph->forward->items.at[i].loop;
        for (uint32_t k = 0; loop && loop->bodies.count > 1 && k < loop->bodies.count; k++)
            found |= loop->bodies.at[k]->recomputed = exec_roll(dice, 2) == 0;
    }
    return found;
}
