/* Which ranks share their bytes, and whether the job may become traces at all. */
#include "emit/emit_int.h"

#include <inttypes.h>
#include <string.h>

/* ---- rules --------------------------------------------------------------------------------------------- */

typedef struct checking {
    const etch_job *job;
    const etch_class_program *program;
    etch_diags *diags;
    uint32_t next_group_id;
    etch_group_form form;
} checking;

static etch_status rule_broken(const checking *c, uint32_t id, const char *what)
{
    etch_diag *diag = etch_error(c->diags, ETCH_E_TRACE_RULE, (etch_span){0, 0},
                                 "node %" PRIu32 " of a program %s", id, what);
    etch_help(diag, "this is a bug of etch: please report it with the spec");
    return ETCH_EINTERNAL;
}

static etch_status job_broken(const checking *c, const char *what)
{
    etch_diag *diag = etch_error(c->diags, ETCH_E_TRACE_RULE, (etch_span){0, 0}, "the job has %s", what);
    etch_help(diag, "this is a bug of etch: please report it with the spec");
    return ETCH_EINTERNAL;
}

/* Traces hold these values as signed 64-bit integers. */
static etch_status check_fits(const checking *c, const etch_node *node, const char *what, uint64_t value)
{
    if (value <= INT64_MAX)
        return ETCH_OK;
    etch_error(c->diags, ETCH_E_TRACE_VALUE, (etch_span){0, 0},
               "node '%s' has %" PRIu64 " %s: more than the 9223372036854775807 that a trace can hold",
               c->program->names + node->name, value, what);
    return ETCH_ELIMIT;
}

static etch_status check_compute(const checking *c, uint32_t id)
{
    const etch_node *node = &c->program->nodes[id];
    if (node->flop == 0)
        return rule_broken(c, id, "computes nothing");
    if (node->bytes == 0)
        return rule_broken(c, id, "moves nothing");
    return check_fits(c, node, "FLOP", node->flop);
}

static bool is_collective(uint8_t type)
{
    return type == ETCH_COMM_ALL_REDUCE || type == ETCH_COMM_ALL_GATHER || type == ETCH_COMM_ALL_TO_ALL ||
           type == ETCH_COMM_REDUCE_SCATTER;
}

static etch_status check_collective(const checking *c, uint32_t id)
{
    const etch_node *node = &c->program->nodes[id];
    if (!is_collective(node->collective))
        return rule_broken(c, id, "is of no known collective");
    if (node->family >= c->job->family_count)
        return rule_broken(c, id, "communicates in no group");
    if (node->bytes < ETCH_LEAST_PAYLOAD)
        return rule_broken(c, id, "communicates less than 64 bytes");
    return check_fits(c, node, "bytes to communicate", node->bytes);
}

static etch_status check_message(const checking *c, uint32_t id)
{
    const etch_node *node = &c->program->nodes[id];
    if (node->peer >= c->program->peer_count)
        return rule_broken(c, id, "has no peer");
    if (node->tag >= ETCH_TAG_END)
        return rule_broken(c, id, "has a tag that simulators use themselves");
    if (node->bytes < ETCH_LEAST_PAYLOAD)
        return rule_broken(c, id, "communicates less than 64 bytes");
    return check_fits(c, node, "bytes to communicate", node->bytes);
}

static etch_status check_move(const checking *c, uint32_t id)
{
    const etch_node *node = &c->program->nodes[id];
    return node->bytes == 0 ? rule_broken(c, id, "moves nothing") : ETCH_OK;
}

static etch_status check_node(const checking *c, uint32_t id)
{
    const etch_node *node = &c->program->nodes[id];
    for (uint32_t i = node->first_dep; i < node->first_dep + node->dep_count; i++) {
        const uint32_t *dep = &c->program->deps[i];
        if (*dep >= id || (i > node->first_dep && dep[0] <= dep[-1]))
            return rule_broken(c, id, "has dependencies out of order");
    }
    if (node->type == ETCH_NODE_COMP)
        return check_compute(c, id);
    if (node->type == ETCH_NODE_COLL)
        return check_collective(c, id);
    if (node->type == ETCH_NODE_SEND || node->type == ETCH_NODE_RECV)
        return check_message(c, id);
    if (etch_node_moves(node->type))
        return check_move(c, id);
    return rule_broken(c, id, "is of no known type");
}

static etch_status check_program(const checking *c)
{
    if (c->program->node_count == 0)
        return job_broken(c, "a program without nodes");
    if (c->program->peer_count > ETCH_MOST_PEERS)
        return job_broken(c, "a program with too many peers");
    for (uint32_t id = 0; id < c->program->node_count; id++) {
        etch_status status = check_node(c, id);
        if (status != ETCH_OK)
            return status;
    }
    return ETCH_OK;
}

static etch_status check_families(checking *c)
{
    c->next_group_id = 1;
    for (uint32_t i = 0; i < c->job->family_count; i++) {
        const etch_group_family *family = &c->job->families[i];
        if (family->size < 2)
            return job_broken(c, "a group of one rank");
        if (!family->stages && (uint64_t)family->size * family->count != c->job->rank_count)
            return job_broken(c, "groups that do not cover the ranks");
        if (family->dimensions)
            continue;
        if (family->first_id != c->next_group_id)
            return job_broken(c, "group ids that do not follow each other");
        c->next_group_id += family->count;
    }
    return ETCH_OK;
}

static etch_status check_classes(const checking *c)
{
    if (c->job->rank_count == 0)
        return job_broken(c, "no ranks");
    for (uint32_t rank = 0; rank < c->job->rank_count; rank++)
        if (c->job->class_of[rank] >= c->job->program_count)
            return job_broken(c, "a rank without a program");
    return ETCH_OK;
}

static void warn_of_groups(const checking *c)
{
    const etch_group_family *most = NULL;
    for (uint32_t i = 0; i < c->job->family_count; i++)
        if (!c->job->families[i].dimensions && (!most || c->job->families[i].count > most->count))
            most = &c->job->families[i];
    etch_diag *diag =
        etch_warning(c->diags, ETCH_E_TRACE_GROUPS, (etch_span){0, 0},
                     "there are %" PRIu32 " groups: ASTRA-sim's numbers of groups overflow above %d",
                     c->next_group_id - 1, ETCH_MOST_GROUP_ID);
    if (c->form == ETCH_GROUPS_FILE)
        etch_help(diag, "collectives along whole dimensions of the network need no group: --groups dims");
    else
        etch_note(diag, (etch_span){0, 0},
                  "%" PRIu32 " are over %s, and keep numbers: their ranks are of several stages, "
                  "or some of an all-to-all are",
                  most->count, most->label);
}

static void warn_of_strain(const checking *c)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < c->job->program_count; i++)
        if (c->job->programs[i].node_count > most)
            most = c->job->programs[i].node_count;
    if (most > ETCH_MOST_NODES)
        etch_warning(c->diags, ETCH_E_TRACE_NODES, (etch_span){0, 0},
                     "a rank has %" PRIu32 " nodes: Chakra's own feeder can crash above %d", most,
                     ETCH_MOST_NODES);
    if (c->next_group_id - 1 > ETCH_MOST_GROUP_ID)
        warn_of_groups(c);
}

etch_status etch_job_check(const etch_job *job, etch_group_form form, etch_diags *diags)
{
    checking c = {.job = job, .diags = diags, .form = form};
    etch_status status = check_classes(&c);
    if (status == ETCH_OK)
        status = check_families(&c);
    for (uint32_t i = 0; i < job->program_count && status == ETCH_OK; i++) {
        c.program = &job->programs[i];
        status = check_program(&c);
    }
    if (status == ETCH_OK)
        warn_of_strain(&c);
    return status;
}

/* ---- variants ------------------------------------------------------------------------------------------ */

#define NONE UINT32_MAX

/* A variant while ranks are still being added: `next` is the next one of its class, or NONE. */
typedef struct draft {
    const uint8_t *widths;
    uint32_t class, next, count;
} draft;

typedef struct finding {
    etch_arena *arena;
    const etch_job *job;
    uint32_t blanks;
    /* by class and blank */
    const bool *used;
    /* by class: its first draft, or NONE */
    uint32_t *first;
    /* drafts */
    uint32_t *of_rank;
    /* of the rank at hand */
    uint32_t *values;
    uint8_t *widths;
    ETCH_VEC(draft) drafts;
} finding;

static void find_used(const etch_job *job, const etch_class_program *program, bool *used)
{
    for (uint32_t id = 0; id < program->node_count; id++)
        if (program->nodes[id].type == ETCH_NODE_COLL && !job->families[program->nodes[id].family].dimensions)
            used[etch_blank_of_family(program->nodes[id].family)] = true;
    used[ETCH_BLANK_OWN] = program->peer_count > 0;
    for (uint32_t i = 0; i < program->peer_count; i++)
        used[ETCH_BLANK_PEERS + i] = true;
}

static const bool *blanks_used(etch_arena *arena, const etch_job *job)
{
    const size_t blanks = etch_blank_count(job);
    bool *used = ETCH_NEW_ARRAY(arena, job->program_count * blanks, bool);
    for (uint32_t class = 0; class < job->program_count; class ++)
        find_used(job, &job->programs[class], used + class * blanks);
    return used;
}

static void find_widths(finding *f, uint32_t rank)
{
    const bool *used = f->used + (size_t)f->job->class_of[rank] * f->blanks;
    etch_blanks_fill(f->job, rank, f->values);
    for (uint32_t i = 0; i < f->blanks; i++)
        f->widths[i] = used[i] ? etch_blank_width(i, f->values[i]) : 0;
}

static uint32_t find_draft(finding *f, uint32_t class)
{
    uint32_t *link = &f->first[class];
    for (; *link != NONE; link = &f->drafts.at[*link].next)
        if (memcmp(f->drafts.at[*link].widths, f->widths, f->blanks) == 0)
            return *link;
    uint8_t *widths = ETCH_NEW_ARRAY(f->arena, f->blanks, uint8_t);
    memcpy(widths, f->widths, f->blanks);
    *link = f->drafts.count; /* before the array moves */
    ETCH_PUSH(f->arena, &f->drafts, (draft){.widths = widths, .class = class, .next = NONE});
    return f->drafts.count - 1;
}

static void fill_variants(const finding *f, etch_variants *variants)
{
    const etch_job *job = f->job;
    variants->count = f->drafts.count;
    variants->at = ETCH_NEW_ARRAY(f->arena, f->drafts.count, etch_variant);
    for (uint32_t i = 0; i < f->drafts.count; i++) {
        const draft *d = &f->drafts.at[i];
        const etch_class_program *program = &job->programs[d->class];
        variants->at[i] = (etch_variant){.program = program,
                                         .widths = d->widths,
                                         .ranks = ETCH_NEW_ARRAY(f->arena, d->count, uint32_t),
                                         .size = etch_trace_measure(job, program, d->widths)};
    }
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        if (f->of_rank[rank] == NONE)
            continue;
        etch_variant *variant = &variants->at[f->of_rank[rank]];
        variants->written++;
        variant->ranks[variant->count++] = rank;
    }
}

void etch_variants_find(etch_arena *arena, const etch_job *job, const etch_intervals *ranks,
                        etch_variants *variants)
{
    finding f = {.arena = arena,
                 .job = job,
                 .blanks = etch_blank_count(job),
                 .used = blanks_used(arena, job),
                 .first = ETCH_NEW_ARRAY(arena, job->program_count, uint32_t),
                 .of_rank = ETCH_NEW_ARRAY(arena, job->rank_count, uint32_t),
                 .values = ETCH_NEW_ARRAY(arena, etch_blank_count(job), uint32_t),
                 .widths = ETCH_NEW_ARRAY(arena, etch_blank_count(job), uint8_t)};
    variants->class_ranks = ETCH_NEW_ARRAY(arena, job->program_count, uint32_t);
    for (uint32_t class = 0; class < job->program_count; class ++)
        f.first[class] = NONE;
    for (uint32_t rank = 0; rank < job->rank_count; rank++) {
        uint32_t class = job->class_of[rank];
        variants->class_ranks[class]++;
        f.of_rank[rank] = NONE;
        if (ranks && !etch_intervals_hold(ranks, rank))
            continue;
        find_widths(&f, rank);
        f.of_rank[rank] = find_draft(&f, class);
        f.drafts.at[f.of_rank[rank]].count++;
    }
    fill_variants(&f, variants);
}
