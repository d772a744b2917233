/* Lowering: the spec's values and facts given to lower, its job given to emit, and a summary of what came
 * of it. */
#include "session/core/core.h"

#include <string.h>

typedef struct lowering {
    etch_session *session;
    const etch_output_options *options;
    etch_output_report *report;
} lowering;

/* ---- from the spec to a job ------------------------------------------------------------------------- */

etch_status etch_compiled_lower(etch_session *session, etch_compiled *p, const etch_style *style,
                                const etch_job **job)
{
    if (p->model->graph->steps) {
        if (!etch_compiled_allow(session, p))
            return ETCH_EINPUT;
        etch_diag *diag =
            etch_error(session->diags, ETCH_E_LATER, p->model->run_span,
                       "traces of several steps, one behind the other, are not given meaning yet");
        etch_help(diag, "lower a run of one step");
        return ETCH_EINPUT;
    }
    etch_kernels_count(p->placed);
    etch_lower_options options = {.values = etch_compiled_values(session, p, p->placed),
                                  .config = etch_spec_config(session->spec, session->options.config),
                                  .run = p->model->run};
    if (style) {
        options.naming = style->naming;
        options.annotations = style->annotations;
        options.workloads = style->workloads;
        options.brief = style->brief;
    }
    return etch_lower(session->arena, &options, job);
}

/* One hash over the texts of all files, the spec first, and of what is set in its plans. */
static void hash_spec(etch_session *session, char text[ETCH_SHA256_TEXT])
{
    const etch_source **files;
    const uint32_t count = etch_spec_files(session->spec, &files);
    const char *sets = etch_plans_set_text(session->spec);
    etch_piece *pieces = ETCH_NEW_ARRAY(session->arena, count + 1, etch_piece);
    for (uint32_t i = 0; i < count; i++)
        pieces[i] = (etch_piece){files[i]->text, files[i]->length};
    if (sets)
        pieces[count] = (etch_piece){sets, strlen(sets)};
    etch_sha256(pieces, count + (sets != NULL), text);
}

/* ---- the summary ------------------------------------------------------------------------------------ */

static const char *total_text(etch_session *session, etch_total total)
{
    char digits[40];
    char *at = digits + sizeof digits - 1;
    *at = '\0';
    do {
        *--at = (char)('0' + (int)(total % 10));
        total /= 10;
    } while (total > 0);
    return etch_copy_text(session->arena, at, strlen(at));
}

static const char *human(etch_session *session, const char *number, etch_unit unit)
{
    return etch_human_text(session, etch_number(session->sym, number, strlen(number)), unit);
}

static etch_output_stage summarize_stage(etch_session *session, const etch_stage_total *total)
{
    etch_output_stage stage = {.ranks = total->ranks,
                               .nodes = total->nodes,
                               .stage = total->stage,
                               .part = total->work_share,
                               .comm_count = total->comm_count};
    stage.flop = total_text(session, total->flop);
    stage.flop_human = human(session, stage.flop, ETCH_UNIT_FLOP);
    stage.bytes = total_text(session, total->bytes);
    stage.bytes_human = human(session, stage.bytes, ETCH_UNIT_BYTES);
    etch_output_comm *comm = ETCH_NEW_ARRAY(session->arena, total->comm_count, etch_output_comm);
    for (uint32_t i = 0; i < total->comm_count; i++) {
        const etch_comm_total *c = &total->comm[i];
        const char *bytes = total_text(session, c->bytes);
        const bool message = c->type == ETCH_NODE_SEND || c->type == ETCH_NODE_RECV;
        comm[i] = (etch_output_comm){.collective = c->is_ring ? ETCH_PERMUTE
                                                   : message  ? ETCH_SEND
                                                              : etch_collective_of_code(c->collective),
                                     .receives = c->type == ETCH_NODE_RECV,
                                     .axes = etch_copy_text(session->arena, c->axes, strlen(c->axes)),
                                     .bytes = bytes,
                                     .bytes_human = human(session, bytes, ETCH_UNIT_BYTES),
                                     .nodes = c->count};
    }
    stage.comm = comm;
    stage.loads = total->loads.count;
    stage.loaded = total_text(session, total->loads.bytes);
    stage.loaded_human = human(session, stage.loaded, ETCH_UNIT_BYTES);
    stage.stores = total->stores.count;
    stage.stored = total_text(session, total->stores.bytes);
    stage.stored_human = human(session, stage.stored, ETCH_UNIT_BYTES);
    return stage;
}

/* All that is known before anything is written: once it is, memory may not run out any more. */
static etch_output_report *summarize(const lowering *l, const etch_job *job)
{
    etch_session *session = l->session;
    const char *folder = l->options->folder ? l->options->folder : l->options->archive;
    etch_output_report *report = ETCH_NEW(session->arena, etch_output_report);
    etch_output_stage *stages = ETCH_NEW_ARRAY(session->arena, job->program_count, etch_output_stage);
    for (uint32_t i = 0; i < job->program_count; i++)
        stages[i] = summarize_stage(session, &job->stages[i]);
    *report =
        (etch_output_report){.model = job->model,
                             .plan = job->plan,
                             .config = job->config,
                             .run = job->run,
                             .folder = folder ? etch_copy_text(session->arena, folder, strlen(folder)) : NULL,
                             .written = !l->options->dry_run,
                             .ranks = job->rank_count,
                             .classes = job->program_count,
                             .stages = stages,
                             .stage_count = job->program_count,
                             .part_count = job->work_share_count};
    return report;
}

static void add_result(etch_output_report *report, const etch_emit_result *result)
{
    report->ranks_written = result->ranks;
    report->groups = result->groups;
    report->nodes = result->nodes;
    report->files = result->files;
    report->bytes = result->bytes;
    report->links = result->links;
    report->groups_along = result->groups_along;
    report->unpacked_bytes = result->unpacked_bytes;
}

_Static_assert((int)ETCH_GROUPS_FILE == (int)ETCH_OUTPUT_GROUPS_FILE &&
                   (int)ETCH_GROUPS_DIMENSIONS == (int)ETCH_OUTPUT_GROUPS_DIMS,
               "forms of groups are those of emission");

/* ---- the entry points ---------------------------------------------------------------------------------- */

static etch_status refuse_ranks(etch_session *session, const char *text)
{
    etch_diag *diag = etch_error(session->diags, ETCH_E_OUTPUT_RANKS, (etch_span){0, 0},
                                 "'%.80s' is no list of ranks", text);
    etch_help(diag, "list ranks and ranges of them, as in 0,2,8-15");
    return ETCH_EINPUT;
}

const char *etch_annotation_at(size_t i)
{
    return i < ETCH_ANNOTATION_COUNT ? etch_annotation_name((etch_annotation)i) : NULL;
}

/* The attribute called `wanted`, or ETCH_ANNOTATION_COUNT after an error that says which there are. */
static size_t find_annotation(etch_session *session, const char *wanted)
{
    size_t i = 0;
    ETCH_VEC(const char *) names = {0};
    for (; etch_annotation_at(i) && strcmp(etch_annotation_at(i), wanted) != 0; i++)
        ETCH_PUSH(session->arena, &names, etch_annotation_at(i));
    if (etch_annotation_at(i))
        return i;
    etch_diag *diag = etch_error(session->diags, ETCH_E_OUTPUT_STYLE, (etch_span){0, 0},
                                 "there is no attribute '%.80s'", wanted);
    const char *near = etch_nearest(wanted, names.at, names.count);
    etch_buf list = {.arena = session->arena};
    for (uint32_t k = 0; k < names.count; k++)
        etch_buf_printf(&list, "%s%s", k ? ", " : "", names.at[k]);
    if (near)
        etch_help(diag, "did you mean '%s'?", near);
    else
        etch_help(diag, "there are %s", list.text);
    return i;
}

/* Reads what nodes are called and what is said of them. False after a reported error. */
static bool read_style(etch_session *session, const etch_output_options *options, etch_style *style)
{
    *style = (etch_style){.naming = options->names};
    if (!etch_naming_name(options->names)) {
        etch_error(session->diags, ETCH_E_OUTPUT_STYLE, (etch_span){0, 0}, "there is no way %d to name nodes",
                   (int)options->names);
        return false;
    }
    for (const char *at = options->attrs; at;) {
        const size_t length = strcspn(at, ",");
        const size_t i = find_annotation(session, etch_copy_text(session->arena, at, length));
        if (!etch_annotation_at(i))
            return false;
        style->annotations |= 1u << i;
        at = at[length] ? at + length + 1 : NULL;
    }
    return true;
}

static etch_status lower_session(void *data)
{
    lowering *l = data;
    etch_session *session = l->session;
    const etch_output_options *o = l->options;
    const etch_job *job;
    etch_style style;
    etch_intervals ranks = {0};
    if (!read_style(session, o, &style))
        return ETCH_EINPUT;
    if (!o->folder && !o->archive && o->stream < 1 && !o->dry_run)
        return etch_session_refuse(session, "nothing says where the traces go");
    if (o->ranks && !etch_intervals_read(session->arena, o->ranks, &ranks))
        return refuse_ranks(session, o->ranks);
    etch_compiled *p = etch_compiled_get(session, NULL, NULL, true, (etch_span){0, 0});
    if (!p || !etch_compiled_place(session, p))
        return ETCH_EINPUT;
    etch_status status = etch_compiled_lower(session, p, &style, &job);
    if (status != ETCH_OK)
        return status;
    etch_remark_default_axes(session, p, NULL);
    char hash[ETCH_SHA256_TEXT];
    hash_spec(session, hash);
    const etch_emit_options options = {.folder = o->folder,
                                       .name = o->name ? o->name : job->model,
                                       .tool_version = ETCH_VERSION,
                                       .spec_sha256 = hash,
                                       .threads = o->threads,
                                       .force = o->force,
                                       .astra_sim = o->astra_sim,
                                       .links = o->link,
                                       .packs = o->zstd,
                                       .groups = (etch_group_form)o->groups,
                                       .syncs = !o->no_sync,
                                       .ranks = o->ranks ? &ranks : NULL,
                                       .cancel = &session->cancel,
                                       .world = o->world,
                                       .archive = o->archive,
                                       .stream = o->stream};
    etch_emit_result result;
    l->report = summarize(l, job);
    status = o->dry_run ? etch_emit_measure(session->mem, job, &options, session->diags, &result)
                        : etch_emit(session->mem, job, &options, session->diags, &result);
    if (status == ETCH_OK)
        add_result(l->report, &result);
    return status;
}

etch_status etch_session_lower(etch_session *session, const etch_output_options *options,
                               const etch_output_report **report)
{
    etch_output_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    lowering l = {.session = session, .options = &own};
    const etch_status status =
        unfit ? etch_session_refuse(session, unfit) : etch_session_run_bound(session, lower_session, &l);
    *report = status == ETCH_OK && etch_world_rank(own.world) == 0 ? l.report : NULL;
    return status;
}
