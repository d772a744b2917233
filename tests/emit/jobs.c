#include "jobs.h"

#include <string.h>

uint64_t job_random(uint64_t *state, uint64_t limit)
{
    /* xorshift64*: a multiplier of the published kind, any odd seed */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * UINT64_C(2685821657736338717) >> 11) % limit;
}

/* Values of all encoded lengths are equally frequent. */
static uint64_t random_value(uint64_t *state, uint64_t least)
{
    uint64_t value = (UINT64_C(1) << job_random(state, 63)) - 1 + job_random(state, 3);
    return value < least ? least : value > INT64_MAX ? INT64_MAX : value;
}

/* A collective that all classes issue. */
typedef struct issue {
    uint64_t bytes;
    uint16_t family;
    uint8_t collective;
} issue;

typedef struct making {
    etch_arena *arena;
    const job_recipe *recipe;
    etch_job *job;
    const issue *issues;
    uint64_t state;
} making;

/* A program while nodes are added. */
typedef struct draft {
    ETCH_VEC(etch_node) nodes;
    ETCH_VEC(uint32_t) deps;
    etch_buf names;
    int64_t last_collective;
} draft;

static uint32_t random_name(making *m, draft *d)
{
    static const char *const names[] = {"", "mlp.up", "COMP", "schicht_\xc3\xa4", "attention.scores"};
    uint32_t offset = (uint32_t)d->names.length;
    if (job_random(&m->state, 50) == 0) { /* around the length where its own length takes two bytes */
        for (uint64_t i = 120 + job_random(&m->state, 16); i > 0; i--)
            etch_buf_add(&d->names, "n", 1);
    } else {
        etch_buf_printf(&d->names, "%s%u", names[job_random(&m->state, 5)], (unsigned)d->nodes.count);
        if (job_random(&m->state, 20) == 0) /* no name at all */
            offset = (uint32_t)d->names.length;
    }
    etch_buf_add(&d->names, "\0", 1);
    return offset;
}

/* Every collective depends on the one before it. The rest is random: mostly few parents, now and then
 * many. */
static void random_deps(making *m, draft *d, etch_node *node)
{
    uint32_t id = d->nodes.count;
    uint64_t wanted = job_random(&m->state, 30) == 0 ? 200 : job_random(&m->state, 4);
    uint64_t stride = wanted > 0 ? id / wanted + 1 : 1;
    node->first_dep = d->deps.count;
    for (uint64_t parent = job_random(&m->state, stride); wanted > 0 && parent < id;
         parent += 1 + job_random(&m->state, 2 * stride)) {
        bool passes =
            node->type == ETCH_NODE_COLL && d->last_collective >= 0 && (int64_t)parent >= d->last_collective;
        if (passes)
            break;
        ETCH_PUSH(m->arena, &d->deps, (uint32_t)parent);
    }
    if (node->type == ETCH_NODE_COLL && d->last_collective >= 0)
        ETCH_PUSH(m->arena, &d->deps, (uint32_t)d->last_collective);
    node->dep_count = d->deps.count - node->first_dep;
}

static void add_computation(making *m, draft *d)
{
    etch_node node = {.type = ETCH_NODE_COMP};
    node.flop = random_value(&m->state, 1);
    node.bytes = random_value(&m->state, 1);
    node.name = random_name(m, d);
    random_deps(m, d, &node);
    if (node.dep_count == 0) /* what a rank begins with takes some time */
        node.bytes |= UINT64_C(1) << 15;
    ETCH_PUSH(m->arena, &d->nodes, node);
}

static void add_collective(making *m, draft *d, const issue *what)
{
    etch_node node = {
        .type = ETCH_NODE_COLL, .bytes = what->bytes, .family = what->family, .collective = what->collective};
    node.name = random_name(m, d);
    random_deps(m, d, &node);
    d->last_collective = d->nodes.count;
    ETCH_PUSH(m->arena, &d->nodes, node);
}

/* Texts around the length where their own length takes two bytes, too. */
static const char *random_text(making *m)
{
    static const char *const texts[] = {"forward", "rms_norm", "llama.block.attention", "schicht_\xc3\xa4"};
    if (job_random(&m->state, 10) != 0)
        return texts[job_random(&m->state, 4)];
    const size_t length = 100 + job_random(&m->state, 60);
    char *text = etch_alloc(m->arena, length + 1);
    memset(text, 't', length);
    text[length] = '\0';
    return text;
}

static const etch_annotated *random_annotations(making *m, uint32_t count)
{
    etch_annotated *annotated = ETCH_NEW_ARRAY(m->arena, count, etch_annotated);
    for (uint32_t id = 0; id < count; id++) {
        annotated[id].given = (unsigned)job_random(&m->state, 1u << ETCH_ANNOTATION_COUNT);
        for (unsigned i = 0; i < ETCH_ANNOTATION_COUNT; i++) {
            etch_annotation_value *value = &annotated[id].value[i];
            if (etch_annotation_is_text((etch_annotation)i))
                value->text = random_text(m);
            else
                value->number = random_value(&m->state, 0);
        }
    }
    return annotated;
}

static etch_class_program make_program(making *m)
{
    draft d = {.names = {.arena = m->arena}, .last_collective = -1};
    uint32_t between = m->recipe->computations / (m->recipe->collectives + 1);
    add_computation(m, &d);
    for (uint32_t i = 0; i <= m->recipe->collectives; i++) {
        for (uint64_t k = job_random(&m->state, 2 * (uint64_t)between + 1); k > 0; k--)
            add_computation(m, &d);
        if (i < m->recipe->collectives)
            add_collective(m, &d, &m->issues[i]);
    }
    return (etch_class_program){.nodes = d.nodes.at,
                                .node_count = d.nodes.count,
                                .deps = d.deps.at,
                                .names = d.names.text,
                                .annotated =
                                    m->recipe->annotated ? random_annotations(m, d.nodes.count) : NULL};
}

/* ---- the job around the programs ----------------------------------------------------------------------- */

static void make_mesh(making *m)
{
    static const char *const names[JOB_MAX_AXES] = {"pod", "dp", "cp", "tp"};
    etch_mesh_axis *mesh = ETCH_NEW_ARRAY(m->arena, JOB_MAX_AXES, etch_mesh_axis);
    m->job->mesh = mesh;
    m->job->rank_count = 1;
    for (uint32_t i = 0; i < JOB_MAX_AXES && m->recipe->mesh[i] > 0; i++) {
        mesh[i] = (etch_mesh_axis){.name = names[i], .size = m->recipe->mesh[i]};
        m->job->rank_count *= mesh[i].size;
        m->job->mesh_count++;
    }
}

static const char *family_label(making *m, uint64_t axes)
{
    etch_buf label = {.arena = m->arena};
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->job->mesh_count; i++) {
        if (!(axes >> i & 1))
            continue;
        if (count++ > 0)
            etch_buf_puts(&label, ",");
        etch_buf_puts(&label, m->job->mesh[i].name);
    }
    return count > 1 ? etch_text(m->arena, "(%s)", label.text) : label.text;
}

static void make_families(making *m)
{
    etch_group_family *families = ETCH_NEW_ARRAY(m->arena, JOB_MAX_FAMILIES, etch_group_family);
    uint32_t next_id = 1;
    m->job->families = families;
    for (uint32_t i = 0; i < JOB_MAX_FAMILIES && m->recipe->families[i] > 0; i++) {
        etch_group_family *family = &families[i];
        *family = (etch_group_family){.first_id = next_id, .size = 1, .axes = m->recipe->families[i]};
        for (uint32_t axis = 0; axis < m->job->mesh_count; axis++)
            if (family->axes >> axis & 1)
                family->size *= m->job->mesh[axis].size;
        family->count = m->job->rank_count / family->size;
        family->label = family_label(m, family->axes);
        next_id += family->count;
        m->job->family_count++;
    }
}

/* Every family is used; the rest is random. */
static void make_issues(making *m)
{
    static const uint8_t collectives[] = {ETCH_COMM_ALL_REDUCE, ETCH_COMM_ALL_GATHER, ETCH_COMM_ALL_TO_ALL,
                                          ETCH_COMM_REDUCE_SCATTER};
    issue *issues = ETCH_NEW_ARRAY(m->arena, m->recipe->collectives, issue);
    for (uint32_t i = 0; i < m->recipe->collectives; i++)
        issues[i] = (issue){
            .bytes = random_value(&m->state, 64),
            .family = (uint16_t)(i < m->job->family_count ? i : job_random(&m->state, m->job->family_count)),
            .collective = collectives[job_random(&m->state, 4)]};
    m->issues = issues;
}

static void add_comm(making *m, const etch_node *node, etch_comm_total *totals, uint32_t *count)
{
    const char *label = m->job->families[node->family].label;
    uint32_t i = 0;
    while (i < *count && (totals[i].collective != node->collective || totals[i].axes != label))
        i++;
    if (i == *count)
        totals[(*count)++] = (etch_comm_total){.collective = node->collective, .axes = label};
    totals[i].bytes += node->bytes;
    totals[i].count++;
}

/* The least values count as paddings, so that these are seen too. */
static etch_stage_total add_up(making *m, const etch_class_program *program)
{
    etch_stage_total total = {.nodes = program->node_count};
    etch_comm_total *comm = ETCH_NEW_ARRAY(m->arena, 4 * JOB_MAX_FAMILIES, etch_comm_total);
    for (uint32_t i = 0; i < program->node_count; i++) {
        const etch_node *node = &program->nodes[i];
        if (node->type == ETCH_NODE_COLL) {
            add_comm(m, node, comm, &total.comm_count);
            continue;
        }
        *(node->flop == 1 ? &total.padded_flop : &total.flop) += node->flop;
        *(node->bytes == 1 ? &total.padded_bytes : &total.bytes) += node->bytes;
    }
    total.comm = comm;
    return total;
}

static void make_classes(making *m)
{
    uint32_t count = m->recipe->classes;
    etch_class_program *programs = ETCH_NEW_ARRAY(m->arena, count, etch_class_program);
    etch_stage_total *stages = ETCH_NEW_ARRAY(m->arena, count, etch_stage_total);
    uint32_t *class_of = ETCH_NEW_ARRAY(m->arena, m->job->rank_count, uint32_t);
    for (uint32_t i = 0; i < count; i++) {
        programs[i] = make_program(m);
        stages[i] = add_up(m, &programs[i]);
    }
    for (uint32_t rank = 0; rank < m->job->rank_count; rank++) {
        class_of[rank] = rank < count ? rank : (uint32_t)job_random(&m->state, count);
        stages[class_of[rank]].ranks++;
    }
    m->job->programs = programs;
    m->job->program_count = count;
    m->job->stages = stages;
    m->job->stage_count = count;
    m->job->work_share_count = 1;
    m->job->class_of = class_of;
}

const etch_job *job_make(etch_arena *arena, const job_recipe *recipe)
{
    static const etch_binding bindings[] = {{"layers", "2", "set"},
                                            {"hidden", "18446744073709551616", "config"}};
    making m = {.arena = arena, .recipe = recipe, .job = ETCH_NEW(arena, etch_job), .state = recipe->seed};
    m.job->model = "tiny";
    m.job->plan = "flat";
    m.job->config = recipe->seed % 2 ? "odd" : NULL;
    m.job->bindings = bindings;
    m.job->binding_count = 2;
    make_mesh(&m);
    make_families(&m);
    make_issues(&m);
    make_classes(&m);
    return m.job;
}

etch_job *job_copy(etch_arena *arena, const etch_job *job, etch_node **nodes)
{
    etch_job *copy = ETCH_NEW(arena, etch_job);
    etch_class_program *programs = ETCH_NEW_ARRAY(arena, job->program_count, etch_class_program);
    size_t size = job->programs[0].node_count * sizeof **nodes;
    *copy = *job;
    *nodes = etch_alloc(arena, size);
    memcpy(*nodes, job->programs[0].nodes, size);
    memcpy(programs, job->programs, job->program_count * sizeof *programs);
    programs[0].nodes = *nodes;
    copy->programs = programs;
    return copy;
}
