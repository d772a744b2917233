/* The classes of memory that `memory(C)` may be asked of. */
#include "session/query/query.h"

#include <string.h>

enum {
    WEIGHTS = 1 << ETCH_MEMORY_WEIGHTS,
    GRADS = 1 << ETCH_MEMORY_GRADS,
    MASTER = 1 << ETCH_MEMORY_MASTER,
    MOMENTS = 1 << ETCH_MEMORY_MOMENTS,
    ACTIVATIONS = 1 << ETCH_MEMORY_ACTIVATIONS,
    WORKSPACE = 1 << ETCH_MEMORY_WORKSPACE,
    STAGING = 1 << ETCH_MEMORY_STAGING,
    HOST = 1 << ETCH_MEMORY_HOST,
    STATES = WEIGHTS | GRADS | MASTER | MOMENTS
};

static const etch_memory_class classes[] = {
    {"weights", WEIGHTS, false, true, "weights"},
    {"grads", GRADS, false, true, "their gradients, which microbatches add to"},
    {"master", MASTER, false, true, "what the optimizer works on: copies of weights, and of gradients"},
    {"moments", MOMENTS, false, true, "what else it keeps of each weight"},
    {"optimizer", MASTER | MOMENTS, false, true, "both"},
    {"states", STATES, false, true, "weights, grads and optimizer"},
    {"activations", ACTIVATIONS, false, false, "what is kept for backward, of all microbatches under way"},
    {"workspace", WORKSPACE, false, false, "the most that is there besides while the passes run"},
    {"staging", STAGING, false, false, "room for what comes from the memory of the host, and goes back"},
    {"cache", 0, true, true, "what caches hold when a served model has run"},
    {"peak", STATES | ACTIVATIONS | WORKSPACE | STAGING, true, false,
     "the sum of states, activations, workspace, staging and cache"},
    {"host", HOST, false, true, "what is in the memory of the host instead"},
};
enum { CLASS_COUNT = sizeof classes / sizeof *classes };

const etch_memory_class *etch_memory_class_at(size_t index)
{
    return index < CLASS_COUNT ? &classes[index] : NULL;
}

const char *etch_memory_label(const etch_cost *cost)
{
    return cost->measure == ETCH_HELD ? etch_memory_name(cost->memory) : "cache";
}

static const etch_memory_class *report_none(etch_session *session, const etch_quantity *q)
{
    const char *names[CLASS_COUNT];
    etch_buf list = {.arena = session->arena};
    for (size_t i = 0; i < CLASS_COUNT; i++) {
        names[i] = classes[i].name;
        etch_buf_printf(&list, "%s%s", i ? ", " : "", classes[i].name);
    }
    etch_diag *diag = q->first ? etch_error(session->diags, ETCH_E_QUERY_PHASE, q->first_span,
                                            "'%s' is nothing that a rank holds", q->first)
                               : etch_error(session->diags, ETCH_E_QUERY_PHASE, q->span,
                                            "'%s' needs to know of what: %s(peak)", q->name, q->name);
    const char *near = q->first ? etch_nearest(q->first, names, CLASS_COUNT) : NULL;
    if (near)
        etch_help(diag, "did you mean '%s'?", near);
    etch_help(diag, "what it holds is %s", list.text);
    return NULL;
}

/* The class that a quantity names; an old name gives the one that took its place, with a remark. */
static const char *class_name(etch_session *session, const etch_quantity *q)
{
    if (!q->first || strcmp(q->first, "working") != 0)
        return q->first;
    etch_remark(session->diags, ETCH_E_OLD_WORD, q->first_span,
                "'working' is called 'workspace' now; the old word is understood until etch 0.2");
    return "workspace";
}

const etch_memory_class *etch_memory_class_of(etch_session *session, const etch_quantity *q)
{
    const char *name = class_name(session, q);
    for (size_t i = 0; name && i < CLASS_COUNT; i++) {
        if (strcmp(name, classes[i].name) != 0)
            continue;
        if (!q->of || classes[i].of_parts)
            return &classes[i];
        etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_ARGUMENT, q->of_span,
                                     "%s(%s) is of a whole stage", q->name, q->first);
        etch_help(diag, "rank_saved(of = %s) is what one microbatch keeps of it", q->of);
        return NULL;
    }
    return report_none(session, q);
}
