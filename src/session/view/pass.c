/* What the passes make of a model, one after the other: for whoever works on them. */
#include <string.h>

#include "session/query/query.h"

typedef struct showing {
    etch_session *session;
    const char *name;
    const etch_compiled *pipeline;
    const char *text;
} showing;

const char *etch_pass_at(size_t i)
{
    return i < ETCH_PASS_COUNT ? etch_pass_name((etch_pass)i) : NULL;
}

static bool find_pass(const showing *s, etch_pass *pass)
{
    size_t i = 0;
    while (etch_pass_at(i) && strcmp(etch_pass_at(i), s->name) != 0)
        i++;
    *pass = (etch_pass)i;
    if (i < ETCH_PASS_COUNT)
        return true;
    etch_error(s->session->diags, ETCH_E_OUTPUT_STYLE, (etch_span){0, 0}, "there is no pass '%.80s'",
               s->name);
    return false;
}

static etch_expr apply(void *data, etch_expr expr)
{
    const showing *s = data;
    return etch_compiled_apply(s->session, s->pipeline, expr);
}

static etch_status show_placed(showing *s, etch_pass pass, etch_buf *out)
{
    etch_session *session = s->session;
    const etch_compiled *p = s->pipeline;
    const etch_dump_values values = {apply, s};
    if (!etch_spec_pending_ready(session->spec, p->plan, p->settings))
        return ETCH_EINPUT;
    const etch_placed *placed = etch_place_until(p->training, p->plan, session->options.granularity, pass);
    if (!placed)
        return ETCH_EINPUT;
    if (pass == ETCH_PASS_STEP)
        etch_step_program_dump(placed->program, &values, out);
    else
        etch_placed_dump(placed, out);
    if (pass == ETCH_PASS_STAGE)
        etch_stages_dump(placed, &values, out);
    return ETCH_OK;
}

static etch_status show(void *data)
{
    showing *s = data;
    etch_pass pass;
    s->session->of_one_case = true;
    if (!find_pass(s, &pass))
        return ETCH_EINPUT;
    s->pipeline = etch_compiled_get(s->session, NULL, NULL, pass >= ETCH_PASS_PLACE, (etch_span){0, 0});
    if (!s->pipeline)
        return ETCH_EINPUT;
    etch_buf out = {.arena = s->session->arena};
    const etch_training *training = s->pipeline->training;
    const etch_dump_values values = {apply, s};
    if (pass < ETCH_PASS_PLACE)
        etch_graph_dump(training->graph, pass == ETCH_PASS_TRAIN ? training->backward : NULL, &values, &out);
    const etch_status status = pass < ETCH_PASS_PLACE ? ETCH_OK : show_placed(s, pass, &out);
    s->text = out.text;
    if (status == ETCH_OK)
        etch_remark_config_defaults(s->session);
    return status;
}

etch_status etch_session_pass(etch_session *session, const char *pass, const char **text)
{
    showing s = {.session = session, .name = pass};
    const etch_status status = etch_session_run(session, show, &s);
    *text = status == ETCH_OK ? s.text : NULL;
    return status;
}
