/* Configs of published models as a program hands them over. */
#include "etch/etch.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char config[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 256, \"intermediate_size\": 1024, \"vocab_size\": 1000,"
    " \"num_attention_heads\": 8, \"num_hidden_layers\": 4, \"num_key_value_heads\": 2, \"novelty\": 1}";
static const char number[] = "4315392"; /* 2*1000*256 + 4*(2*256*256 + 2*256*64 + 3*256*1024 + 2*256) + 256 */

static const char *models(char path[4096])
{
    snprintf(path, 4096, "/nowhere:%s/models", getenv("ETCH_SOURCE_DIR"));
    return path;
}

static etch_session *open_config(const char *text, const char *folders, etch_status expected)
{
    const etch_session_options options = {
        .struct_size = sizeof options, .spec = "mine", .text = text, .folders = folders};
    etch_session *session;
    ck_assert_int_eq(etch_session_open(&options, &session), expected);
    return session;
}

static void expect_code(etch_session *session, const char *code)
{
    size_t count;
    const etch_message *messages = etch_session_messages(session, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_str_eq(messages[0].code, code);
}

START_TEST(a_session_takes_a_config_for_a_spec)
{
    char path[4096];
    const etch_answer *answer;
    etch_session *session = open_config(config, models(path), ETCH_OK);
    expect_code(session, "E0288");
    /* The second round begins anew after an error, with the spec as it was read. */
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(etch_session_query(session, "params(model)", NULL, &answer), ETCH_OK);
        ck_assert_str_eq(answer->amount.text, number);
        ck_assert_int_eq(etch_session_query(session, "params(nothing)", NULL, &answer), ETCH_EINPUT);
        ck_assert_int_eq(etch_session_release(session), ETCH_OK);
    }
    etch_session_close(session);
}
END_TEST

START_TEST(imports_are_looked_for_in_folders)
{
    char path[4096];
    etch_session_close(open_config("etch 1\nimport \"llama.etch\"\n", models(path), ETCH_OK));
    etch_session *session = open_config("etch 1\nimport \"llama.etch\"\n", NULL, ETCH_EINPUT);
    expect_code(session, "E0202");
    etch_session_close(session);
    session = open_config("etch 1\nimport \"llama.etch\"\n", "/nowhere::/neither", ETCH_EINPUT);
    expect_code(session, "E0202");
    etch_session_close(session);
}
END_TEST

START_TEST(a_config_becomes_a_spec)
{
    char path[4096];
    const etch_imported *imported;
    etch_import_options options = {
        .struct_size = sizeof options, .name = "mine", .text = config, .length = sizeof config - 1};
    etch_session *session;
    const etch_session_options plain = {.struct_size = sizeof plain};
    ck_assert_int_eq(etch_session_open(&plain, &session), ETCH_OK);
    ck_assert_int_eq(etch_session_import(session, &options, &imported), ETCH_OK);
    ck_assert_str_eq(imported->model_type, "llama");
    ck_assert_str_eq(imported->file, "llama.etch");
    ck_assert_str_eq(imported->model, "llama");
    etch_session *again = open_config(imported->spec, models(path), ETCH_OK);
    const etch_answer *answer;
    ck_assert_int_eq(etch_session_query(again, "params(model)", NULL, &answer), ETCH_OK);
    ck_assert_str_eq(answer->amount.text, number);
    etch_session_close(again);
    options.length = 20; /* a part of it */
    ck_assert_int_eq(etch_session_import(session, &options, &imported), ETCH_EINPUT);
    ck_assert_ptr_null(imported);
    options.name = NULL;
    ck_assert_int_eq(etch_session_import(session, &options, &imported), ETCH_EINPUT);
    options.struct_size = 0;
    ck_assert_int_eq(etch_session_import(session, &options, &imported), ETCH_EINPUT);
    etch_session_close(session);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("session.import");
    ETCH_ADD_TESTS(suite, a_session_takes_a_config_for_a_spec, imports_are_looked_for_in_folders,
                   a_config_becomes_a_spec);
    return suite;
}
