/* What the devices of a job take in a step: while they compute, and in the rest of the time. */
#include "session/query/query.h"

static etch_expr power_of(etch_sym *sym, etch_decimal watts)
{
    return etch_mul(sym, etch_int(sym, watts.digits), etch_pow(sym, etch_int(sym, 10), watts.power));
}

/* Device-picoseconds, as seconds. */
static etch_expr seconds_of(etch_sym *sym, etch_expr count)
{
    enum { PICO = 12 };
    return etch_div(sym, count, etch_pow(sym, etch_int(sym, 10), PICO));
}

/* Each rank takes the power of an idle device all the time, and what a busy one takes more while it computes,
 * with times that are off by the error of the run: what a rank computes is one of its paths. */
static etch_expr joules_of(etch_sym *sym, const etch_device *device, const etch_simulated *run, int sign)
{
    etch_expr ranks = etch_int(sym, 0), computing = etch_int(sym, 0);
    const int64_t error = (int64_t)run->error * sign;
    for (uint32_t c = 0; c < run->class_count; c++) {
        const etch_simulated_class *class = &run->classes[c];
        const int64_t each = (int64_t) class->computing + error;
        const etch_expr count = etch_int(sym, class->rank_count);
        ranks = etch_add(sym, ranks, count);
        computing = etch_add(sym, computing, etch_mul(sym, count, etch_int(sym, each > 0 ? each : 0)));
    }
    const etch_expr idle = power_of(sym, device->idle);
    const etch_expr more = etch_sub(sym, power_of(sym, device->busy), idle);
    const etch_expr all = etch_mul(sym, ranks, etch_int(sym, (int64_t)run->step + error));
    return seconds_of(sym, etch_add(sym, etch_mul(sym, idle, all), etch_mul(sym, more, computing)));
}

/* NULL after a reported error. */
static const etch_simulated *run_all(etch_session *session, etch_compiled *p, const etch_cluster *cluster,
                                     const etch_stack *stack)
{
    const etch_style style = {.workloads = true};
    const etch_simulate_options options = {.cluster = cluster, .stack = stack};
    const etch_job *job;
    const etch_simulated *run;
    if (etch_compiled_lower(session, p, &style, &job) != ETCH_OK ||
        etch_simulate(session->arena, session->diags, job, &options, &run) != ETCH_OK)
        return NULL;
    return run;
}

bool etch_energy_of(etch_session *session, const etch_quantity *q, etch_compiled *p,
                    const etch_cluster *cluster, const etch_stack *stack, etch_within *out)
{
    const etch_device *device = cluster->device;
    if (device->idle.digits == 0 || device->busy.digits == 0) {
        etch_diag *diag = etch_error(session->diags, ETCH_E_MACHINE_UNFIT, q->span,
                                     "the device '%s' does not say what it takes while it is %s",
                                     device->name, device->idle.digits == 0 ? "idle" : "busy");
        etch_help(diag, "write it into the device: `idle = 100 W, busy = 700 W`");
        return false;
    }
    const etch_simulated *run = run_all(session, p, cluster, stack);
    if (run)
        *out = (etch_within){.low = joules_of(session->sym, device, run, -1),
                             .value = joules_of(session->sym, device, run, 0),
                             .high = joules_of(session->sym, device, run, 1)};
    return run != NULL;
}
