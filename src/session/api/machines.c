/* Machines: how long kernels take on them, and their text. */
#include "session/query/query.h"

/* ---- one kernel ---------------------------------------------------------------------------------------- */

typedef struct timing {
    etch_session *session;
    const etch_kernel_call *kernel;
    etch_seconds seconds;
} timing;

static etch_status time_kernel(void *data)
{
    timing *t = data;
    etch_machine machine;
    if (!etch_session_device(t->session, t->kernel->kind == ETCH_KERNEL_COLLECTIVE, &machine))
        return ETCH_EINPUT;
    const char *why = etch_kernel_time(t->session->arena, &machine, t->kernel, &t->seconds);
    if (!why)
        return ETCH_OK;
    etch_error(t->session->diags, ETCH_E_FIT, (etch_span){0, 0}, "%s", why);
    return ETCH_EINPUT;
}

etch_status etch_session_kernel_time(etch_session *session, const etch_kernel_call *kernel,
                                     etch_seconds *seconds)
{
    timing t = {.session = session, .kernel = kernel};
    const etch_status status = etch_session_run(session, time_kernel, &t);
    *seconds = t.seconds;
    return status;
}

/* ---- as text ------------------------------------------------------------------------------------------- */

typedef struct printing {
    etch_session *session;
    const char *text;
} printing;

static etch_status print_machines(void *data)
{
    printing *p = data;
    const etch_device *const *devices;
    const etch_cluster *const *clusters;
    const uint32_t count = etch_spec_devices(p->session->spec, &devices);
    const uint32_t cluster_count = etch_spec_clusters(p->session->spec, &clusters);
    etch_buf out = {.arena = p->session->arena};
    etch_buf_puts(&out, "etch 1\n");
    for (uint32_t i = 0; i < count; i++)
        etch_device_print(&out, devices[i]);
    for (uint32_t i = 0; i < cluster_count; i++)
        etch_cluster_print(&out, clusters[i]);
    p->text = out.text;
    return ETCH_OK;
}

etch_status etch_session_machines(etch_session *session, const char **text)
{
    printing p = {.session = session};
    const etch_status status = etch_session_run(session, print_machines, &p);
    *text = status == ETCH_OK ? p.text : NULL;
    return status;
}
