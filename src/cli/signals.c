/* Signals that end a run which is writing. */
#define _POSIX_C_SOURCE 200809L

#include "cli_int.h"

#include <signal.h>
#include <stdatomic.h>

/* The session that is writing. A signal handler can be told nothing, so this is the program's only
 * variable. */
static _Atomic(etch_session *) writing;

static void interrupt(int signal)
{
    (void)signal;
    etch_session *session = atomic_load(&writing);
    if (session)
        etch_session_cancel(session);
}

/* What hangs up, or a terminal's key, may be ignored on purpose: see nohup. */
void cli_catch_signals(etch_session *session)
{
    static const struct {
        int signal;
        bool may_be_ignored;
    } signals[] = {{SIGINT, false}, {SIGTERM, false}, {SIGXCPU, false}, {SIGHUP, true}, {SIGQUIT, true}};
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND}, before;
    sigemptyset(&action.sa_mask);
    atomic_store(&writing, session);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (!signals[i].may_be_ignored ||
            (sigaction(signals[i].signal, NULL, &before) == 0 && before.sa_handler != SIG_IGN))
            sigaction(signals[i].signal, &action, NULL);
}

void cli_forget_signals(void)
{
    atomic_store(&writing, NULL);
}
