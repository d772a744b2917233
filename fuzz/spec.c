/* Whatever a spec holds, a session over it ends: each call succeeds, or says what is wrong with the spec. */
#define _POSIX_C_SOURCE 200809L

#include "fuzz.h"

#include "etch/etch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every call of the interface must end in one of these; what is refused is explained. */
static void check_end(etch_session *session, etch_status status)
{
    size_t count, errors = 0;
    const etch_message *messages = etch_session_messages(session, &count);
    etch_session_message_text(session);
    for (size_t i = 0; i < count; i++)
        errors += strcmp(messages[i].severity, "error") == 0;
    const bool fine = status == ETCH_OK || status == ETCH_EUNKNOWN;
    const bool refused = status == ETCH_EINPUT && errors > 0;
    if (!fine && !refused && status != ETCH_ELIMIT)
        abort();
}

static void ask(etch_session *session)
{
    static const char *const queries[] = {"flops(step)", "traffic(step)", "comm(step)", "params(model)"};
    const etch_check_report *report;
    const etch_answer *answer;
    check_end(session, etch_session_check(session, &report));
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        check_end(session, etch_session_query(session, queries[i], ETCH_BY_NOTHING, &answer));
}

static void lower(etch_session *session)
{
    const etch_output_options options = {.dry_run = true};
    const etch_output_report *report;
    const etch_pipeline_report *pipeline;
    check_end(session, etch_session_pipeline(session, &pipeline));
    check_end(session, etch_session_lower(session, &options, &report));
}

static void use(const char *path, bool bound)
{
    static const char *const sets[] = {"batch=4", "seq=8", "hidden=8", "layers=2", "vocab=16"};
    const etch_session_options options = {.spec = path,
                                          .sets = sets,
                                          .set_count = bound ? sizeof sets / sizeof *sets : 0,
                                          .memory_limit = (size_t)64 << 20};
    etch_session *session;
    const etch_status status = etch_session_open(&options, &session);
    if (!session)
        abort();
    check_end(session, status);
    if (status == ETCH_OK) {
        ask(session);
        if (bound)
            lower(session);
    }
    etch_session_close(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/etch_fuzz_XXXXXX";
    const int file = mkstemp(path);
    if (file < 0 || write(file, data, size) != (ssize_t)size || close(file) != 0)
        abort();
    use(path, false);
    use(path, true);
    unlink(path);
    return 0;
}
