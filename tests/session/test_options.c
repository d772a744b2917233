/* Options of another version, kinds and their names, and sessions that release what they have handed out:
 * public headers only. */
#define _POSIX_C_SOURCE 200809L

#include "etch/etch.h"
#include "etch/expr.h"
#include "etch/placement.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *spec_path(char path[4096], const char *name)
{
    snprintf(path, 4096, "%s/%s", getenv("ETCH_SOURCE_DIR"), name);
    return path;
}

static etch_session *open_gpt(size_t memory_limit)
{
    char path[4096];
    const etch_session_options options = {.struct_size = sizeof options,
                                          .spec = spec_path(path, "models/gpt.etch"),
                                          .config = "gpt2",
                                          .memory_limit = memory_limit};
    etch_session *session;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    return session;
}

/* Ends a session whose only message has these words. */
static void close_after(etch_session *session, const char *words)
{
    size_t count;
    const etch_message *messages = etch_session_messages(session, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(messages[0].severity, ETCH_ERROR);
    ck_assert_msg(strstr(messages[0].text, words) != NULL, "%s", messages[0].text);
    etch_session_close(session);
}

/* ---- struct_size --------------------------------------------------------------------------------------- */

START_TEST(options_without_a_size_are_refused)
{
    static const char words[] = "struct_size";
    char path[4096];
    const etch_session_options no_size = {.spec = spec_path(path, "models/gpt.etch")};
    const etch_answer *answer;
    const etch_output_report *output;
    const etch_graph_report *graph;
    const etch_placement_report *placement;
    const etch_verification *verification;
    etch_session *session;
    ck_assert_int_eq(etch_session_open(&no_size, &session), ETCH_EINPUT);
    ck_assert_int_eq(etch_session_query(session, "1", NULL, &answer), ETCH_EINPUT);
    close_after(session, words);
    session = open_gpt(0);
    ck_assert_int_eq(etch_session_query(session, "1", &(etch_query_options){.why = true}, &answer),
                     ETCH_EINPUT);
    ck_assert_ptr_null(answer);
    close_after(session, words);
    session = open_gpt(0);
    ck_assert_int_eq(etch_session_lower(session, &(etch_output_options){.dry_run = true}, &output),
                     ETCH_EINPUT);
    close_after(session, words);
    session = open_gpt(0);
    ck_assert_int_eq(etch_session_graph(session, &(etch_view_options){.part = "mlp"}, &graph), ETCH_EINPUT);
    close_after(session, words);
    session = open_gpt(0);
    ck_assert_int_eq(etch_session_placement(session, &(etch_view_options){.part = "mlp"}, &placement),
                     ETCH_EINPUT);
    close_after(session, words);
    session = open_gpt(0);
    ck_assert_int_eq(etch_session_verify(session, &(etch_verification_options){.path = "."}, &verification),
                     ETCH_EINPUT);
    close_after(session, words);
    session = open_gpt(0);
    ck_assert_int_eq(etch_session_dump(session, ".", &(etch_dumping_options){.ranks = "0"}, NULL, NULL),
                     ETCH_EINPUT);
    close_after(session, words);
    session = open_gpt(0); /* never written to */
    ck_assert_int_eq(
        etch_session_query(session, "1", &(etch_query_options){.struct_size = SIZE_MAX - 7}, &answer),
        ETCH_EINPUT);
    close_after(session, words);
    etch_algebra *algebra;
    ck_assert_int_eq(etch_algebra_new(&(etch_algebra_options){.terms = 5}, &algebra), ETCH_EINPUT);
    ck_assert_ptr_nonnull(strstr(etch_algebra_message(algebra), words));
    ck_assert_ptr_null(etch_formula_number(algebra, 1));
    etch_algebra_clear(algebra);
    ck_assert_int_eq(etch_algebra_status(algebra), ETCH_EINPUT);
    etch_algebra_free(algebra);
}
END_TEST

/* What a newer header might have. */
typedef struct newer_options {
    etch_query_options known;
    const char *unknown;
    size_t more;
} newer_options;

START_TEST(options_of_a_newer_header_are_taken_as_far_as_they_are_known)
{
    newer_options options = {.known = {.struct_size = sizeof options, .by = ETCH_BY_MODULE}};
    const etch_answer *answer;
    etch_session *session = open_gpt(0);
    ck_assert_int_eq(etch_session_query(session, "params(model)", &options.known, &answer), ETCH_OK);
    ck_assert_int_eq(answer->by, ETCH_BY_MODULE);
    ck_assert_str_eq(answer->amount.text, "124439808");
    options.more = 1; /* it asks for what this library cannot do */
    ck_assert_int_eq(etch_session_query(session, "params(model)", &options.known, &answer), ETCH_EINPUT);
    ck_assert_ptr_null(answer);
    close_after(session, "does not know");
}
END_TEST

START_TEST(options_of_an_older_header_are_zero_where_it_ends)
{
    const etch_query_options options = {.struct_size = offsetof(etch_query_options, derivative),
                                        .by = ETCH_BY_MODULE,
                                        .derivative = "not there yet",
                                        .why = true};
    const etch_answer *answer;
    etch_session *session = open_gpt(0);
    ck_assert_int_eq(etch_session_query(session, "params(model)", &options, &answer), ETCH_OK);
    ck_assert_int_eq(answer->by, ETCH_BY_MODULE);
    ck_assert_ptr_null(answer->terms);
    etch_session_close(session);
}
END_TEST

START_TEST(numbers_that_are_no_kinds_are_refused)
{
    const etch_query_options wrong[] = {
        {.struct_size = sizeof *wrong, .by = (etch_breakdown)99},
        {.struct_size = sizeof *wrong, .notation = (etch_notation)99},
        {.struct_size = sizeof *wrong, .form = (etch_form)-1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const etch_answer *answer;
        etch_session *session = open_gpt(0);
        ck_assert_int_eq(etch_session_query(session, "params(model)", &wrong[i], &answer), ETCH_EINPUT);
        close_after(session, "that there is not");
    }
    etch_session *session = open_gpt(0);
    const etch_dumping_options dump = {.struct_size = sizeof dump, .as = (etch_dump_as)99};
    ck_assert_int_eq(etch_session_dump(session, ".", &dump, NULL, NULL), ETCH_EINPUT);
    close_after(session, "that there is not");
}
END_TEST

/* ---- kinds --------------------------------------------------------------------------------------------- */

/* Every kind has a name of its own, and what is no kind has none. */
#define CHECK_NAMES(type, name_of, count)                             \
    do {                                                              \
        for (unsigned i = 0; i < (unsigned)(count); i++) {            \
            ck_assert_msg(name_of((type)i) != NULL, #type " %u", i);  \
            for (unsigned k = 0; k < i; k++)                          \
                ck_assert_str_ne(name_of((type)i), name_of((type)k)); \
        }                                                             \
        ck_assert_ptr_null(name_of((type)(count)));                   \
        ck_assert_ptr_null(name_of((type)-1));                        \
    } while (false)

START_TEST(kinds_have_names)
{
    CHECK_NAMES(etch_truth, etch_truth_name, ETCH_UNKNOWN + 1);
    CHECK_NAMES(etch_severity, etch_severity_name, ETCH_SEVERITY_COUNT);
    CHECK_NAMES(etch_given_by, etch_given_by_name, ETCH_GIVEN_BY_COUNT);
    CHECK_NAMES(etch_unit, etch_unit_name, ETCH_UNIT_COUNT);
    CHECK_NAMES(etch_sum_kind, etch_sum_kind_name, ETCH_SUM_COUNT);
    CHECK_NAMES(etch_phase, etch_phase_name, ETCH_PHASE_COUNT);
    CHECK_NAMES(etch_collective, etch_collective_name, ETCH_COLLECTIVE_COUNT);
    CHECK_NAMES(etch_tensor_kind, etch_tensor_kind_name, ETCH_TENSOR_KIND_COUNT);
    CHECK_NAMES(etch_dtype, etch_dtype_name, ETCH_DTYPE_COUNT);
    CHECK_NAMES(etch_placed_by, etch_placed_by_name, ETCH_PLACED_BY_COUNT);
    CHECK_NAMES(etch_rule, etch_rule_name, ETCH_RULE_COUNT);
    CHECK_NAMES(etch_phrase_role, etch_phrase_role_name, ETCH_PHRASE_COUNT);
    CHECK_NAMES(etch_schedule_kind, etch_schedule_kind_name, ETCH_SCHEDULE_COUNT);
    CHECK_NAMES(etch_granularity, etch_granularity_name, ETCH_GRANULARITY_COUNT);
    CHECK_NAMES(etch_naming, etch_naming_name, ETCH_NAMING_COUNT);
    CHECK_NAMES(etch_protocol, etch_protocol_name, ETCH_PROTOCOL_COUNT);
    CHECK_NAMES(etch_verdict_kind, etch_verdict_name, ETCH_VERDICT_COUNT);
    CHECK_NAMES(etch_breakdown, etch_breakdown_name, ETCH_BY_CLASS + 1);
    CHECK_NAMES(etch_notation, etch_notation_name, ETCH_JSON + 1);
    CHECK_NAMES(etch_form, etch_form_name, ETCH_RELATIVE + 1);
}
END_TEST

START_TEST(a_binding_says_what_gave_it)
{
    char path[4096];
    const char *const sets[] = {"batch=4"};
    const etch_session_options options = {.struct_size = sizeof options,
                                          .spec = spec_path(path, "models/gpt.etch"),
                                          .config = "gpt2",
                                          .sets = sets,
                                          .set_count = 1};
    etch_session *session;
    const etch_binding_row *rows;
    size_t count, given[ETCH_GIVEN_BY_COUNT] = {0};
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    ck_assert_int_eq(etch_session_bindings(session, &rows, &count), ETCH_OK);
    for (size_t i = 0; i < count; i++) {
        given[rows[i].from]++;
        ck_assert_int_eq(rows[i].from == ETCH_GIVEN_BY_SET, strcmp(rows[i].name, "batch") == 0);
    }
    ck_assert_uint_eq(given[ETCH_GIVEN_BY_SET], 1);
    ck_assert_uint_gt(given[ETCH_GIVEN_BY_CONFIG], 3);
    etch_session_close(session);
}
END_TEST

/* ---- releasing ----------------------------------------------------------------------------------------- */

static const struct {
    const char *expression, *value;
} asked[] = {{"params(model)", "124439808"}, {"params(model) + 1", "124439809"}, {"hidden*layers", "9216"}};
enum { ASKED = sizeof asked / sizeof *asked };

/* Asks until a limit is met; at most `most` times. */
static size_t ask(etch_session *session, size_t most, bool release)
{
    size_t i = 0;
    for (; i < most; i++) {
        const etch_answer *answer;
        const etch_status status = etch_session_query(session, asked[i % ASKED].expression, NULL, &answer);
        if (status == ETCH_ELIMIT)
            break;
        ck_assert_int_eq(status, ETCH_OK);
        ck_assert_str_eq(answer->amount.text, asked[i % ASKED].value);
        if (release)
            ck_assert_int_eq(etch_session_release(session), ETCH_OK);
    }
    return i;
}

START_TEST(a_session_that_releases_answers_for_ever)
{
    const size_t limit = (size_t)4 << 20;
    etch_session *session = open_gpt(limit);
    const size_t answers = ask(session, 1000000, false); /* until it is full */
    ck_assert_uint_gt(answers, 100);
    ck_assert_uint_lt(answers, 20000);
    ck_assert_int_eq(etch_session_release(session), ETCH_ELIMIT);
    etch_session_close(session);
    session = open_gpt(limit);
    ck_assert_uint_eq(ask(session, 4 * answers, true), 4 * answers);
    etch_session_close(session);
}
END_TEST

START_TEST(messages_begin_anew_after_a_release)
{
    const etch_answer *answer;
    size_t count;
    etch_session *session = open_gpt(0);
    for (int i = 0; i < 50; i++) { /* a session that keeps them says 20 */
        ck_assert_int_eq(etch_session_query(session, "parms(model)", NULL, &answer), ETCH_EINPUT);
        const etch_message *messages = etch_session_messages(session, &count);
        ck_assert_uint_eq(count, 1);
        ck_assert_uint_eq(messages[0].location.column, 1);
        ck_assert_ptr_nonnull(strstr(etch_session_message_text(session), "parms"));
        ck_assert_int_eq(etch_session_release(session), ETCH_OK);
        etch_session_messages(session, &count);
        ck_assert_uint_eq(count, 0);
        ck_assert_str_eq(etch_session_message_text(session), "");
        ck_assert_int_eq(etch_session_query(session, "params(model)", NULL, &answer), ETCH_OK);
        ck_assert_str_eq(answer->amount.text, "124439808");
    }
    etch_session_close(session);
}
END_TEST

/* What was found wrong once, and is known from then on, is said again to whoever asks again. */
START_TEST(errors_that_are_remembered_are_said_again)
{
    char path[4096];
    const char *const sets[] = {"layers=0"};
    const etch_session_options options = {.struct_size = sizeof options,
                                          .spec = spec_path(path, "models/gpt.etch"),
                                          .config = "gpt2",
                                          .sets = sets,
                                          .set_count = 1};
    etch_session *session;
    const etch_answer *answer;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    for (int i = 0; i < 3; i++) {
        size_t count;
        ck_assert_int_eq(etch_session_query(session, "params(model)", NULL, &answer), ETCH_EINPUT);
        etch_session_messages(session, &count);
        ck_assert_uint_gt(count, 0);
        ck_assert_int_eq(etch_session_release(session), ETCH_OK);
    }
    etch_session_close(session);
}
END_TEST

/* A plan with an error is refused whatever is asked, and however often. */
START_TEST(a_broken_plan_answers_nothing)
{
    const etch_session_options options = {
        .struct_size = sizeof options,
        .spec = "broken.etch",
        .text = "etch 1\nparam n\ndim N = n\nmodel m(x[N]) -> y[N] {\n  weight w[N]\n  y = x * w\n"
                "  l[] = mean(y, over = N) tag loss\n}\ntrain { model = m, optimizer = adamw }\n"
                "parallel p {\n  mesh [dp]\n  shard N @ dq\n}\n"};
    etch_session *session;
    const etch_answer *answer;
    const etch_proof *proof;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(etch_session_query(session, i % 2 ? "params(model)" : "comm(step)", NULL, &answer),
                         ETCH_EINPUT);
        ck_assert_int_eq(etch_session_prove(session, "params(model) == n", &proof), ETCH_EINPUT);
        ck_assert_ptr_null(strstr(etch_session_message_text(session), "divisor"));
        if (i == 2)
            ck_assert_int_eq(etch_session_release(session), ETCH_OK);
    }
    etch_session_close(session);
}
END_TEST

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* The files of the spec are read once: what becomes of them afterwards changes no answer. */
START_TEST(a_session_keeps_the_spec_that_it_has_read)
{
    char folder[] = "/tmp/etch-release-XXXXXX", main_path[64], base_path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(main_path, sizeof main_path, "%s/main.etch", folder);
    snprintf(base_path, sizeof base_path, "%s/base.etch", folder);
    write_file(base_path, "etch 1\nparam n = 3\n");
    write_file(main_path, "etch 1\nimport \"base.etch\"\nparam m = 2*n\n");
    const etch_session_options options = {
        .struct_size = sizeof options, .spec = main_path, .defaults = true, .memory_limit = (size_t)2 << 20};
    etch_session *session;
    const etch_answer *answer;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    write_file(base_path, "etch 1\nparam n = 4\n");
    ck_assert_int_eq(remove(main_path), 0);
    for (int i = 0; i < 4000; i++) {
        ck_assert_int_eq(etch_session_query(session, "m + n", NULL, &answer), ETCH_OK);
        ck_assert_str_eq(answer->amount.text, "9");
        ck_assert_int_eq(etch_session_release(session), ETCH_OK);
    }
    ck_assert_int_eq(etch_session_query(session, "x", NULL, &answer), ETCH_EINPUT); /* it is read again */
    ck_assert_int_eq(etch_session_release(session), ETCH_OK);
    ck_assert_int_eq(etch_session_query(session, "m + n", NULL, &answer), ETCH_OK);
    ck_assert_str_eq(answer->amount.text, "9");
    etch_session_close(session);
    ck_assert_int_eq(remove(base_path), 0);
    ck_assert_int_eq(remove(folder), 0);
}
END_TEST

/* Reports of every kind, with releases between them, are those of a session that has just been opened. */
START_TEST(reports_after_a_release_are_the_same)
{
    char path[4096];
    const etch_session_options options = {.struct_size = sizeof options,
                                          .spec = spec_path(path, "models/llama.etch"),
                                          .plan = "megatron_sp",
                                          .defaults = true};
    etch_session *session, *fresh;
    const etch_placement_report *a, *b;
    const etch_pipeline_report *pipeline;
    const etch_answer *answer;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    ck_assert_int_eq(etch_session_open(&options, &fresh), ETCH_OK);
    ck_assert_int_eq(etch_session_placement(fresh, NULL, &b), ETCH_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(etch_session_query(session, "no_such_name", NULL, &answer), ETCH_EINPUT);
        ck_assert_int_eq(etch_session_release(session), ETCH_OK);
        ck_assert_int_eq(etch_session_pipeline(session, &pipeline), ETCH_OK);
        ck_assert_int_eq(pipeline->schedule, ETCH_SCHEDULE_ONE_F_ONE_B);
        ck_assert_int_eq(etch_session_release(session), ETCH_OK);
        ck_assert_int_eq(etch_session_placement(session, NULL, &a), ETCH_OK);
        ck_assert_uint_eq(a->collective_count, b->collective_count);
        for (size_t k = 0; k < a->collective_count; k++) {
            ck_assert_int_eq(a->collectives[k].collective, b->collectives[k].collective);
            ck_assert_str_eq(a->collectives[k].bytes, b->collectives[k].bytes);
        }
    }
    etch_session_close(session);
    etch_session_close(fresh);
}
END_TEST

START_TEST(a_session_without_spec_releases_too)
{
    etch_session *session;
    const etch_verification_options nowhere = {.struct_size = sizeof nowhere, .path = "/nowhere/at/all"};
    const etch_verification *told;
    ck_assert_int_eq(etch_session_open(NULL, &session), ETCH_OK);
    for (int i = 0; i < 30; i++) {
        size_t count;
        ck_assert_int_eq(etch_session_verify(session, &nowhere, &told), ETCH_EIO);
        etch_session_messages(session, &count);
        ck_assert_uint_eq(count, 1);
        ck_assert_int_eq(etch_session_release(session), ETCH_OK);
    }
    etch_session_close(session);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("options");
    ETCH_ADD_TESTS(suite, options_without_a_size_are_refused,
                   options_of_a_newer_header_are_taken_as_far_as_they_are_known,
                   options_of_an_older_header_are_zero_where_it_ends, numbers_that_are_no_kinds_are_refused,
                   kinds_have_names, a_binding_says_what_gave_it, a_session_that_releases_answers_for_ever,
                   messages_begin_anew_after_a_release, errors_that_are_remembered_are_said_again,
                   a_broken_plan_answers_nothing, a_session_keeps_the_spec_that_it_has_read,
                   reports_after_a_release_are_the_same, a_session_without_spec_releases_too);
    return suite;
}
