/* Whatever a spec holds, a session over it ends: each call succeeds, or says what is wrong with the spec. An
 * input is a bundle: the spec with what it imports, the values and the plan that it is used with. */
#define _POSIX_C_SOURCE 200809L

#include "bundle.h"
#include "fuzz.h"

#include "etch/etch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct use {
    etch_session *session;
    size_t errors, warnings; /* that were reported so far */
} use;

/* Every call of the interface must end in one of these. What is refused is explained, what is fine is not. A
 * later call may refuse for the reason that an earlier one gave. */
static void check_end(use *u, etch_status status)
{
    size_t count, errors = 0, warnings = 0;
    const etch_message *messages = etch_session_messages(u->session, &count);
    if (!etch_session_message_text(u->session))
        abort();
    for (size_t i = 0; i < count; i++) {
        errors += messages[i].severity == ETCH_ERROR;
        warnings += messages[i].severity == ETCH_WARNING;
    }
    const bool fine = status == ETCH_OK && errors == u->errors;
    const bool unknown = status == ETCH_EUNKNOWN && errors == u->errors && warnings > 0;
    const bool refused = status == ETCH_EINPUT && errors > 0;
    if (!fine && !unknown && !refused && status != ETCH_ELIMIT) {
        fprintf(stderr, "status %d (%s), %zu new errors\n", (int)status, etch_status_text(status),
                errors - u->errors);
        abort();
    }
    u->errors = errors;
    u->warnings = warnings;
}

/* A report that is promised is there. */
static void check_given(bool fine, const void *report)
{
    if (fine && !report)
        abort();
}

static void ask(use *u, const char *query)
{
    const etch_answer *answer = NULL;
    const etch_status status = etch_session_query(u->session, query, NULL, &answer);
    check_end(u, status);
    check_given(status == ETCH_OK, answer);
    check_given(status == ETCH_OK && answer->row_count == 0, answer ? answer->amount.text : NULL);
}

static void check(use *u)
{
    static const char *const queries[] = {"flops(step)", "traffic(step)", "comm(step)", "params(model)"};
    const etch_check_report *report = NULL;
    const etch_status status = etch_session_check(u->session, &report);
    check_end(u, status);
    check_given(status == ETCH_OK || status == ETCH_EUNKNOWN, report);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        ask(u, queries[i]);
}

/* What is asked after a release is answered as before it, and refused with as many words. */
static void release(use *u)
{
    static const char query[] = "params(model)";
    const etch_answer *answer = NULL;
    const etch_status before = etch_session_query(u->session, query, NULL, &answer);
    check_end(u, before);
    char *text = answer ? strdup(answer->amount.text) : NULL;
    const etch_status status = etch_session_release(u->session);
    if (status == ETCH_OK) {
        size_t count;
        etch_session_messages(u->session, &count);
        if (count > 0)
            abort();
        u->errors = u->warnings = 0;
        const etch_status after = etch_session_query(u->session, query, NULL, &answer);
        check_end(u, after);
        if (after != before && after != ETCH_ELIMIT)
            abort();
        if (after == ETCH_OK && (!text || strcmp(text, answer->amount.text) != 0))
            abort();
    } else if (before != ETCH_ELIMIT) {
        abort();
    }
    free(text);
}

/* The formula of the peak takes seconds under sanitizers, its number does not. */
static void lower(use *u)
{
    const etch_output_options options = {.struct_size = sizeof options, .dry_run = true};
    const etch_output_report *report = NULL;
    const etch_pipeline_report *pipeline = NULL;
    etch_status status = etch_session_pipeline(u->session, &pipeline);
    check_end(u, status);
    check_given(status == ETCH_OK, pipeline);
    status = etch_session_lower(u->session, &options, &report);
    check_end(u, status);
    check_given(status == ETCH_OK, report);
    ask(u, "memory(peak)");
}

static const char *said(const bundle *b, bundle_option option)
{
    return b->options[option][0] ? b->options[option] : NULL;
}

/* `bound`: with the values that the input asks for, and down to traces. */
static void run(const bundle *b, const char *path, bool bound)
{
    const char *const set = said(b, BUNDLE_SET);
    const etch_session_options options = {.struct_size = sizeof options,
                                          .spec = path,
                                          .config = said(b, BUNDLE_CONFIG),
                                          .plan = said(b, BUNDLE_PLAN),
                                          .run = said(b, BUNDLE_RUN),
                                          .sets = &set,
                                          .set_count = bound && set,
                                          .defaults = bound,
                                          .memory_limit = (size_t)128 << 20};
    use u = {0};
    const etch_status status = etch_session_open(&options, &u.session);
    if (!u.session)
        abort();
    check_end(&u, status);
    if (status == ETCH_OK) {
        check(&u);
        if (bound)
            lower(&u);
        release(&u);
    }
    etch_session_close(u.session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bundle b;
    const char *scratch = getenv("TMPDIR");
    char folder[2048], path[4096];
    snprintf(folder, sizeof folder, "%s/etch_fuzz_XXXXXX", scratch && *scratch ? scratch : "/tmp");
    bundle_split(&b, data, size);
    if (!mkdtemp(folder) || !bundle_write(&b, folder))
        abort();
    snprintf(path, sizeof path, "%s/%s", folder, b.files[0].name);
    run(&b, path, false);
    run(&b, path, true);
    bundle_remove(&b, folder);
    return 0;
}
