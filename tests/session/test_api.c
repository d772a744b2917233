/* The library as a program uses it: public headers only. */
#define _POSIX_C_SOURCE 200809L

#include "etch/etch.h"
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

static const etch_view_options of_mlp = {.struct_size = sizeof of_mlp, .part = "mlp"},
                               of_nothing = {.struct_size = sizeof of_nothing, .part = "mpl"};

static etch_session *open_spec(const char *name, const char *config)
{
    char path[4096];
    etch_session_options options = {
        .struct_size = sizeof options, .spec = spec_path(path, name), .config = config};
    etch_session *session;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    return session;
}

static bool has_code(etch_session *session, const char *code)
{
    size_t count;
    const etch_message *messages = etch_session_messages(session, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(messages[i].code, code) == 0)
            return true;
    return false;
}

START_TEST(a_query_gives_an_exact_number_or_a_formula)
{
    const etch_answer *answer;
    etch_session *session = open_spec("models/llama.etch", "llama3_8b");
    ck_assert_int_eq(etch_session_query(session, "params(model)", NULL, &answer), ETCH_OK);
    ck_assert_str_eq(answer->amount.text, "8030261248");
    ck_assert(answer->amount.is_number);
    ck_assert_str_eq(answer->amount.human, "8.03 G");
    ck_assert_int_eq(answer->unit, ETCH_UNIT_ELEMENTS);
    ck_assert_int_eq(etch_session_query(session, "flops(step)", NULL, &answer), ETCH_OK);
    ck_assert(!answer->amount.is_number);
    ck_assert_ptr_null(answer->amount.human);
    etch_session_close(session);
}
END_TEST

START_TEST(a_formula_is_written_as_asked)
{
    const etch_answer *answer;
    etch_session *session = open_spec("models/gpt.etch", NULL);
    etch_query_options options = {
        .struct_size = sizeof options, .notation = ETCH_PYTHON, .form = ETCH_FACTORED};
    ck_assert_int_eq(etch_session_query(session, "params(mlp)", &options, &answer), ETCH_OK);
    ck_assert_str_eq(answer->amount.text, "hidden*(8*hidden + 5)");
    ck_assert_ptr_null(answer->amount.json);
    options = (etch_query_options){.struct_size = sizeof options, .notation = ETCH_JSON, .derivative = "H"};
    ck_assert_int_eq(etch_session_query(session, "params(mlp)", &options, &answer), ETCH_OK);
    ck_assert_str_eq(answer->amount.text, "16*hidden + 5");
    ck_assert_int_eq(answer->unit, ETCH_UNIT_NONE); /* of a derivative it is another one */
    ck_assert_ptr_nonnull(strstr(answer->amount.json, "\"16\""));
    options = (etch_query_options){.struct_size = sizeof options, .by = ETCH_BY_TERM};
    ck_assert_int_eq(etch_session_query(session, "params(model)", &options, &answer), ETCH_OK);
    ck_assert_uint_gt(answer->row_count, 2);
    options = (etch_query_options){.struct_size = sizeof options, .leading = "no_such_name"};
    ck_assert_int_eq(etch_session_query(session, "params(model)", &options, &answer), ETCH_EINPUT);
    ck_assert_ptr_null(answer);
    ck_assert_str_eq(etch_notation_name(ETCH_LATEX), "latex");
    ck_assert_ptr_null(etch_form_name((etch_form)4));
    etch_session_close(session);
}
END_TEST

START_TEST(a_greatest_of_rows_is_left_out_where_rows_are_enough)
{
    const etch_answer *whole, *rows;
    etch_session_options of = {.struct_size = sizeof of, .plan = "megatron_pp"};
    char path[4096];
    of.spec = spec_path(path, "models/deepseek_v3.etch");
    etch_session *session;
    ck_assert_int_eq(etch_session_open(&of, &session), ETCH_OK);
    ck_assert_int_eq(etch_session_query(session, "comm(step)", NULL, &whole), ETCH_OK);
    ck_assert_int_eq(whole->sum, ETCH_SUM_GREATEST);
    ck_assert_ptr_nonnull(strstr(whole->amount.text, "max("));
    const etch_query_options options = {.struct_size = sizeof options, .rows_alone = true};
    ck_assert_int_eq(etch_session_query(session, "comm(step)", &options, &rows), ETCH_OK);
    ck_assert_int_eq(rows->sum, ETCH_SUM_GREATEST);
    ck_assert_ptr_null(rows->amount.text);
    ck_assert_uint_eq(rows->row_count, whole->row_count);
    for (size_t i = 0; i < rows->row_count; i++)
        ck_assert_str_eq(rows->rows[i].amount.text, whole->rows[i].amount.text);
    ck_assert_int_eq(etch_session_query(session, "params(model)", &options, &rows), ETCH_OK);
    ck_assert_ptr_nonnull(rows->amount.text); /* no rows stand for it */
    etch_session_close(session);
}
END_TEST

START_TEST(flops_count_by_a_convention)
{
    const etch_answer *answer;
    etch_session *session;
    char path[4096];
    etch_session_options options = {.struct_size = sizeof options,
                                    .spec = spec_path(path, "models/llama.etch"),
                                    .config = "llama2_7b",
                                    .count = "megatron"};
    const char *const sets[] = {"batch=1,seq=4096"};
    options.sets = sets;
    options.set_count = 1;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    ck_assert_int_eq(etch_session_query(session, "flops(step)", NULL, &answer), ETCH_OK);
    ck_assert_str_eq(answer->amount.text, "175569673125888"); /* as Megatron-LM says */
    ck_assert_ptr_nonnull(strstr(answer->count, "causal=half"));
    etch_session_close(session);
    options.count = "megatron,causal=thin";
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_EINPUT);
    ck_assert(has_code(session, "E0638"));
    etch_session_close(session);
}
END_TEST

START_TEST(a_formula_says_why)
{
    const etch_answer *answer;
    etch_session *session = open_spec("models/gpt.etch", NULL);
    etch_query_options options = {.struct_size = sizeof options, .why = true};
    ck_assert_int_eq(etch_session_query(session, "matmul_flops(forward)", &options, &answer), ETCH_OK);
    ck_assert_uint_eq(answer->term_count, 3);
    ck_assert_uint_eq(answer->terms[2].reason_count, 1);
    const etch_reason *reason = &answer->terms[2].reasons[0];
    ck_assert_str_eq(reason->amount.text, "2*batch*seq*hidden*vocab");
    ck_assert_str_eq(reason->op, "einsum");
    ck_assert_str_eq(reason->module, "gpt");
    ck_assert(reason->phased && reason->phase == ETCH_FORWARD);
    ck_assert_ptr_nonnull(strstr(reason->location.path, "models/gpt.etch"));
    options.by = ETCH_BY_OP;
    ck_assert_int_eq(etch_session_query(session, "flops(step)", &options, &answer), ETCH_EINPUT);
    ck_assert(has_code(session, "E0628"));
    etch_session_close(session);
}
END_TEST

START_TEST(a_statement_is_proved_refuted_or_unknown)
{
    const etch_proof *proof;
    etch_session *session = open_spec("models/gpt.etch", NULL);
    ck_assert_int_eq(etch_session_prove(session, "params(model) >= hidden*vocab", &proof), ETCH_OK);
    ck_assert_int_eq(proof->truth, ETCH_YES);
    ck_assert_uint_eq(proof->condition_count, 0);
    ck_assert_int_eq(etch_session_prove(session, "2 | layers", &proof), ETCH_EINPUT);
    ck_assert_int_eq(proof->truth, ETCH_NO);
    ck_assert_uint_eq(proof->witness_count, 1);
    ck_assert_str_eq(proof->witness[0].name, "layers");
    ck_assert_ptr_null(proof->difference);
    ck_assert_int_eq(etch_session_prove(session, "layers^3 + vocab^3 != seq^3", &proof), ETCH_EUNKNOWN);
    ck_assert_str_eq(proof->difference, "layers^3 - seq^3 + vocab^3");
    ck_assert_int_eq(etch_session_prove(session, "seq/(layers - vocab)*(layers - vocab) == seq", &proof),
                     ETCH_OK);
    ck_assert_uint_eq(proof->condition_count, 1);
    ck_assert_str_eq(proof->conditions[0], "layers - vocab != 0");
    /* a mistake is no refutation */
    ck_assert_int_eq(etch_session_prove(session, "layers", &proof), ETCH_EINPUT);
    ck_assert_ptr_null(proof);
    ck_assert(has_code(session, "E0607"));
    etch_session_close(session);
}
END_TEST

START_TEST(a_session_answers_again_after_an_error)
{
    const etch_answer *answer;
    etch_session *session = open_spec("models/llama.etch", "llama3_8b");
    ck_assert_int_eq(etch_session_query(session, "parms(model)", NULL, &answer), ETCH_EINPUT);
    ck_assert_ptr_null(answer);
    size_t count;
    const etch_message *messages = etch_session_messages(session, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(messages[0].severity, ETCH_ERROR);
    ck_assert_uint_eq(messages[0].location.line, 1);
    ck_assert_uint_eq(messages[0].location.column, 1);
    ck_assert_ptr_nonnull(strstr(etch_session_message_text(session), "parms"));
    ck_assert_int_eq(etch_session_query(session, "params(model)", NULL, &answer), ETCH_OK);
    ck_assert_str_eq(answer->amount.text, "8030261248");
    etch_session_close(session);
}
END_TEST

START_TEST(answers_live_as_long_as_the_session)
{
    const etch_answer *first, *second;
    etch_session *session = open_spec("models/gpt.etch", "gpt2");
    ck_assert_int_eq(etch_session_query(session, "params(model)",
                                        &(etch_query_options){.struct_size = sizeof(etch_query_options),
                                                              .by = ETCH_BY_MODULE},
                                        &first),
                     ETCH_OK);
    ck_assert_int_eq(etch_session_query(session, "params(model) + 1", NULL, &second), ETCH_OK);
    ck_assert_str_eq(first->amount.text, "124439808");
    ck_assert_str_eq(second->amount.text, "124439809");
    ck_assert_int_eq(first->by, ETCH_BY_MODULE);
    ck_assert_uint_gt(first->row_count, 2);
    ck_assert_str_eq(first->rows[0].label, "gpt");
    etch_session_close(session);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_an_io_error)
{
    etch_session_options options = {.struct_size = sizeof options, .spec = "no/such/file.etch"};
    etch_session *session;
    const etch_answer *answer;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_EIO);
    ck_assert_ptr_nonnull(session);
    size_t count;
    etch_session_messages(session, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(etch_session_query(session, "1", NULL, &answer), ETCH_EIO);
    etch_session_close(session);
    options.spec = "/"; /* nor can a folder be read */
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_EIO);
    etch_session_close(session);
}
END_TEST

START_TEST(what_a_config_leaves_out_has_its_default_in_questions_and_is_open_in_statements)
{
    const etch_answer *answer;
    const etch_proof *proof;
    etch_session *session = open_spec("models/gpt.etch", "gpt2");
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(etch_session_query(session, "saved(model)/(batch*seq) - 0*seq", NULL, &answer),
                         ETCH_OK);
        ck_assert_ptr_null(strstr(answer->amount.text, "micro"));
        ck_assert(has_code(session, "E0510"));
        ck_assert_int_eq(etch_session_prove(session, "micro == 1", &proof), ETCH_EINPUT);
        ck_assert_int_eq(etch_session_prove(session, "micro >= 1", &proof), ETCH_OK);
        ck_assert_int_eq(etch_session_query(session, "micro", NULL, &answer), ETCH_OK);
        ck_assert_str_eq(answer->amount.text, "1");
    }
    etch_session_close(session);
}
END_TEST

/* As if the text stood in a file beside the shipped specs. */
static etch_session *open_text(const char *text)
{
    char path[4096];
    etch_session_options options = {
        .struct_size = sizeof options, .spec = spec_path(path, "models/test.etch"), .text = text};
    etch_session *session;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    return session;
}

START_TEST(a_check_lists_imported_plans_that_do_not_suit_the_model)
{
    const etch_check_report *report;
    etch_session *session = open_text("etch 1\nimport \"gpt_oss.etch\"\nimport \"plans.etch\"\n"
                                      "check comm(forward, plan = ddp) == 0\n");
    ck_assert_int_eq(etch_session_check(session, &report), ETCH_OK);
    ck_assert_uint_eq(report->unsuited_count, 3);
    ck_assert_str_eq(report->unsuited[0].plan, "context_gather");
    ck_assert_ptr_nonnull(strstr(report->unsuited[0].text, "window"));
    ck_assert_uint_gt(report->unsuited[0].location.line, 0);
    ck_assert_uint_eq(report->verdict_count, 1);
    etch_session_close(session);

    session = open_text("etch 1\nimport \"gpt_oss.etch\"\nimport \"plans.etch\"\n"
                        "check comm(forward, plan = context_gather) == 0\n");
    ck_assert_int_eq(etch_session_check(session, &report), ETCH_EINPUT);
    ck_assert(has_code(session, "E0420"));
    etch_session_close(session);
}
END_TEST

START_TEST(a_check_looks_at_configs_and_modules_that_nothing_uses)
{
    const etch_check_report *report;
    const etch_answer *answer;
    etch_session *session = open_text("etch 1\nparam batch, hidden\ndim B = batch, H = hidden\n"
                                      "model m(x[B,H]) -> y[B,H] { y = gelu(x) }\n"
                                      "config small { hidden = 0 }\n");
    ck_assert_int_eq(etch_session_check(session, &report), ETCH_EINPUT);
    ck_assert(has_code(session, "E0504"));
    etch_session_close(session);

    session = open_text("etch 1\nparam batch, hidden\ndim B = batch, H = hidden\n"
                        "model m(x[B,H]) -> y[B,H] { y = gelu(x) }\n"
                        "module other(x[B,H]) -> y[B,H] { y = gelo(x) }\n");
    ck_assert_int_eq(etch_session_query(session, "flops(forward)", NULL, &answer), ETCH_OK);
    ck_assert_int_eq(etch_session_check(session, &report), ETCH_EINPUT);
    ck_assert(has_code(session, "E0210"));
    etch_session_close(session);
}
END_TEST

START_TEST(a_check_reports_names_demands_and_verdicts)
{
    const etch_check_report *report;
    etch_session *session = open_spec("models/llama.etch", NULL);
    ck_assert_int_eq(etch_session_check(session, &report), ETCH_OK);
    ck_assert_uint_eq(report->model_count, 1);
    ck_assert_str_eq(report->models[0], "llama");
    ck_assert_uint_ge(report->plan_count, 3);
    ck_assert_uint_gt(report->requirement_count, 0);
    ck_assert_uint_gt(report->verdict_count, 0);
    for (size_t i = 0; i < report->verdict_count; i++)
        ck_assert_int_eq(report->verdicts[i].truth, ETCH_YES);
    etch_session_close(session);
}
END_TEST

START_TEST(a_placement_says_where_tensors_are_and_what_is_moved)
{
    char path[4096];
    const etch_session_options options = {
        .struct_size = sizeof options, .spec = spec_path(path, "models/llama.etch"), .plan = "megatron_sp"};
    etch_session *session;
    const etch_placement_report *whole, *part, *none;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    ck_assert_int_eq(etch_session_placement(session, NULL, &whole), ETCH_OK);
    ck_assert_int_eq(etch_session_placement(session, &of_mlp, &part), ETCH_OK);
    ck_assert_int_eq(etch_session_placement(session, &of_nothing, &none), ETCH_EINPUT);
    ck_assert_ptr_null(none);
    ck_assert_str_eq(whole->plan, "megatron_sp");
    ck_assert_uint_eq(whole->axis_count, 2);
    ck_assert_uint_eq(whole->stage_count, 1);
    ck_assert_uint_lt(part->collective_count, whole->collective_count);
    /* forward the whole sequence is gathered; backward twice: the gradient of the result, and the input
     * again */
    static const etch_collective moved[] = {ETCH_ALL_GATHER, ETCH_ALL_GATHER, ETCH_ALL_GATHER,
                                            ETCH_ALL_REDUCE};
    ck_assert_uint_eq(part->collective_count, 4);
    for (size_t i = 0; i < 4; i++) {
        const etch_view_collective *c = &part->collectives[i];
        ck_assert_int_eq(c->collective, moved[i]);
        ck_assert_str_eq(c->group, i < 3 ? "tp" : "dp");
        ck_assert_uint_gt(c->why_count, 1);
        if (i < 3) {
            ck_assert_str_eq(c->bytes_by_dims, "2*B*S*H/(micro*dp*tp)");
            ck_assert_str_eq(part->steps[c->step].name, "all_gather");
            ck_assert_uint_eq(part->steps[c->step].collective, i);
            ck_assert_uint_eq(part->values[part->steps[c->step].outs[0]].step, c->step);
        }
    }
    etch_session_close(session);
}
END_TEST

START_TEST(a_graph_says_what_is_derived_and_kept)
{
    char path[4096];
    const etch_session_options options = {.struct_size = sizeof options,
                                          .spec = spec_path(path, "models/llama.etch")};
    etch_session *session;
    const etch_graph_report *whole, *part, *none;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    ck_assert_int_eq(etch_session_graph(session, NULL, &whole), ETCH_OK);
    ck_assert_int_eq(etch_session_graph(session, &of_mlp, &part), ETCH_OK);
    ck_assert_int_eq(etch_session_graph(session, &of_nothing, &none), ETCH_EINPUT);
    ck_assert_ptr_null(none);
    ck_assert(has_code(session, "E0624"));
    ck_assert(whole->trains && !whole->part);
    ck_assert_str_eq(whole->model, "llama");
    ck_assert_str_eq(part->part, "mlp");
    ck_assert_uint_lt(part->op_count, whole->op_count);
    /* silu(x wg) * (x wu) wd: three weights, and what their gradients and those of silu and the product
     * read */
    size_t weights = 0;
    for (size_t i = 0; i < part->tensor_count; i++)
        weights += part->tensors[i].kind == ETCH_WEIGHT;
    ck_assert_uint_eq(weights, 3);
    ck_assert_uint_eq(part->saved_count, 4);
    static const char *const kept[] = {"g", "u", "y.1", "y.2"};
    for (size_t i = 0; i < 4; i++) {
        const etch_view_saved *saved = &part->saved[i];
        ck_assert_str_eq(part->tensors[saved->tensor].name, kept[i]);
        ck_assert_str_eq(saved->bytes_by_dims, "2*B*S*F/micro");
        ck_assert_int_eq(part->ops[saved->reader].phase, ETCH_BACKWARD);
    }
    etch_session_close(session);
}
END_TEST

START_TEST(a_dry_run_needs_no_folder)
{
    char path[4096];
    const char *sets[] = {"batch=4,seq=64", "dp=2,tp=2,layers=2"};
    etch_session_options options = {.struct_size = sizeof options,
                                    .spec = spec_path(path, "models/llama.etch"),
                                    .config = "llama3_8b",
                                    .plan = "megatron",
                                    .sets = sets,
                                    .set_count = 2};
    etch_output_options output = {.struct_size = sizeof output, .dry_run = true};
    etch_session *session;
    const etch_output_report *report;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    ck_assert_int_eq(etch_session_lower(session, &output, &report), ETCH_OK);
    ck_assert_uint_eq(report->ranks, 4);
    ck_assert(!report->written);
    ck_assert_uint_eq(report->files, 6);
    ck_assert_uint_eq(report->stage_count, 1);
    ck_assert_uint_eq(report->nodes, UINT64_C(4) * report->stages[0].nodes);
    etch_session_close(session);
}
END_TEST

START_TEST(a_cancelled_session_writes_nothing)
{
    char path[4096];
    const char *sets[] = {"batch=4,seq=64,layers=2"};
    etch_session_options options = {.struct_size = sizeof options,
                                    .spec = spec_path(path, "models/llama.etch"),
                                    .config = "llama3_8b",
                                    .plan = "megatron",
                                    .sets = sets,
                                    .set_count = 1};
    etch_output_options output = {.struct_size = sizeof output, .folder = "cancelled-traces", .threads = 2};
    etch_session *session;
    const etch_output_report *report;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    etch_session_cancel(session);
    ck_assert_int_eq(etch_session_lower(session, &output, &report), ETCH_ELIMIT);
    ck_assert_ptr_null(report);
    ck_assert(has_code(session, "E0705"));
    ck_assert_ptr_null(fopen("cancelled-traces/manifest.json", "rb"));
    etch_session_close(session);
}
END_TEST

/* What becomes of one query in `limit` bytes. */
static etch_status query_within(size_t limit)
{
    char path[4096];
    etch_session_options options = {.struct_size = sizeof options,
                                    .spec = spec_path(path, "models/llama.etch"),
                                    .plan = "megatron_sp",
                                    .memory_limit = limit};
    etch_session *session;
    const etch_answer *answer;
    etch_status status = etch_session_open(&options, &session);
    if (status == ETCH_OK)
        status = etch_session_query(
            session, "comm(step)",
            &(etch_query_options){.struct_size = sizeof(etch_query_options), .by = ETCH_BY_AXIS}, &answer);
    if (status == ETCH_ELIMIT) {
        size_t count;
        ck_assert_int_eq(etch_session_query(session, "1", NULL, &answer), ETCH_ELIMIT);
        const etch_message *messages = etch_session_messages(session, &count);
        ck_assert_uint_gt(count, 0);
        ck_assert_str_eq(messages[count - 1].code, "E0905");
        char bytes[32];
        snprintf(bytes, sizeof bytes, "hold: %zu", limit);
        ck_assert_ptr_nonnull(strstr(messages[count - 1].text, bytes));
        ck_assert_ptr_nonnull(strstr(etch_session_message_text(session), bytes));
    }
    etch_session_close(session);
    return status;
}

/* Its formula is a maximum of a hundred sums, which takes more than 128 MB to find one by one. */
START_TEST(numbers_need_no_formula_of_memory)
{
    const etch_answer *answer;
    etch_session *session;
    char path[4096];
    const char *const sets[] = {"batch=16,seq=32,src=32,tgt=16,enc_layers=3,dec_layers=3,hidden=64,heads=8,"
                                "kv_heads=4,head_dim=8,ffn=96,vocab=128,micro=2,buckets=8,cp=2,rep=2,part=2"};
    const etch_session_options options = {.struct_size = sizeof options,
                                          .spec = spec_path(path, "tests/baseline/specs/more_t5.etch"),
                                          .plan = "random_90",
                                          .sets = sets,
                                          .set_count = 1,
                                          .defaults = true,
                                          .memory_limit = (size_t)32 << 20};
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    ck_assert_int_eq(etch_session_query(session, "memory(peak)", NULL, &answer), ETCH_OK);
    ck_assert_str_eq(answer->amount.text, "1781920");
    etch_session_close(session);
}
END_TEST

START_TEST(a_memory_limit_ends_a_call_and_not_the_process)
{
    size_t limit = 1 << 10, limited = 0;
    etch_status status;
    while ((status = query_within(limit)) != ETCH_OK) {
        ck_assert(status == ETCH_ELIMIT || status == ETCH_ENOMEM);
        limited++;
        limit += limit / 3;
        ck_assert_uint_lt(limit, ETCH_MEMORY_LIMIT);
    }
    ck_assert_uint_gt(limited, 5);
    /* what it needs, to the byte: one less is refused */
    size_t little = limit / 2, enough = limit;
    while (enough - little > 1) {
        const size_t middle = little + (enough - little) / 2;
        if (query_within(middle) == ETCH_OK)
            enough = middle;
        else
            little = middle;
    }
    ck_assert_int_eq(query_within(enough), ETCH_OK);
    ck_assert_int_eq(query_within(enough - 1), ETCH_ELIMIT);
}
END_TEST

START_TEST(traces_need_no_spec)
{
    char folder[] = "/tmp/etch-api-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    etch_session *session;
    const etch_output_options output = {
        .struct_size = sizeof output, .folder = folder, .name = "t", .threads = 2};
    const etch_output_report *report;
    const char *const sets[] = {
        "layers=1,dp=2,batch=2,seq=4,hidden=8,heads=2,kv_heads=2,head_dim=4,ffn=8,vocab=8"};
    char path[4096];
    const etch_session_options with = {.struct_size = sizeof with,
                                       .spec = spec_path(path, "models/llama.etch"),
                                       .plan = "ddp",
                                       .sets = sets,
                                       .set_count = 1};
    ck_assert_int_eq(etch_session_open(&with, &session), ETCH_OK);
    ck_assert_int_eq(etch_session_lower(session, &output, &report), ETCH_OK);
    const uint64_t nodes = report->nodes;
    etch_session_close(session);

    const etch_session_options without = {.struct_size = sizeof without, .spec = NULL};
    const etch_verification_options verify = {
        .struct_size = sizeof verify, .path = folder, .threads = 2, .seeds = 3};
    const etch_verification *told;
    const etch_answer *answer;
    ck_assert_int_eq(etch_session_open(&without, &session), ETCH_OK);
    ck_assert_int_eq(etch_session_verify(session, &verify, &told), ETCH_OK);
    ck_assert_int_eq(told->verdict, ETCH_VERDICT_ALWAYS);
    ck_assert_uint_eq(told->ranks, 2);
    ck_assert_uint_eq(told->nodes, nodes);
    ck_assert_uint_eq(told->marks[1].in_flight, 1);
    ck_assert_int_eq(etch_session_query(session, "params(model)", NULL, &answer), ETCH_EINPUT);
    const etch_verification_options nowhere = {.struct_size = sizeof nowhere, .path = "/nowhere/at/all"};
    ck_assert_int_eq(etch_session_verify(session, &nowhere, &told), ETCH_EIO);
    ck_assert_ptr_null(told);
    ck_assert(has_code(session, "E0800"));
    etch_session_close(session);
    static const char *const files[] = {"t.0.et", "t.1.et", "comm_group.json", "manifest.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        ck_assert_int_eq(remove(path), 0);
    }
    ck_assert_int_eq(remove(folder), 0);
}
END_TEST

/* Every choice that there is is taken, and no other. */
START_TEST(choices_are_those_of_the_lists)
{
    char path[4096];
    const char *sets[] = {"batch=4,seq=64", "dp=2,tp=2,layers=2"};
    etch_session_options options = {.struct_size = sizeof options,
                                    .spec = spec_path(path, "models/llama.etch"),
                                    .config = "llama3_8b",
                                    .plan = "megatron",
                                    .sets = sets,
                                    .set_count = 2};
    etch_session *session;
    const etch_output_report *report;
    for (unsigned i = 0; i < ETCH_GRANULARITY_COUNT; i++) {
        options.granularity = (etch_granularity)i;
        ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
        for (unsigned k = 0; k <= ETCH_NAMING_COUNT; k++) {
            const etch_output_options output = {
                .struct_size = sizeof output, .dry_run = true, .names = (etch_naming)k};
            ck_assert_int_eq(etch_session_lower(session, &output, &report),
                             k < ETCH_NAMING_COUNT ? ETCH_OK : ETCH_EINPUT);
        }
        for (size_t k = 0; etch_annotation_at(k); k++) {
            const etch_output_options output = {
                .struct_size = sizeof output, .dry_run = true, .attrs = etch_annotation_at(k)};
            ck_assert_int_eq(etch_session_lower(session, &output, &report), ETCH_OK);
        }
        const etch_output_options wrong_attribute = {
            .struct_size = sizeof wrong_attribute, .dry_run = true, .attrs = "phase,kernel"};
        ck_assert_int_eq(etch_session_lower(session, &wrong_attribute, &report), ETCH_EINPUT);
        etch_session_close(session);
    }
    options.granularity = ETCH_GRANULARITY_COUNT;
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_EINPUT);
    size_t count;
    etch_session_messages(session, &count);
    ck_assert_uint_eq(count, 1);
    etch_session_close(session);
}
END_TEST

START_TEST(listings_need_no_session)
{
    char *text;
    ck_assert_int_eq(etch_describe_ops(&text), ETCH_OK);
    ck_assert_ptr_nonnull(strstr(text, "rms_norm"));
    etch_text_free(text);
    ck_assert_int_eq(etch_describe_quantities(&text), ETCH_OK);
    ck_assert_ptr_nonnull(strstr(text, "matmul_flops(P)"));
    etch_text_free(text);
    ck_assert_int_eq(etch_describe_counts(&text), ETCH_OK);
    ck_assert_ptr_nonnull(strstr(text, "narayanan"));
    etch_text_free(text);
    const char *const names[] = {"check", "query"};
    ck_assert_str_eq(etch_suggest("qurey", names, 2), "query");
    ck_assert_ptr_null(etch_suggest("zzzzzz", names, 2));
    ck_assert(etch_is_spec_name("models/gpt.etch"));
    ck_assert(!etch_is_spec_name("models.etch/gpt"));
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("api");
    ETCH_ADD_TESTS(suite, a_query_gives_an_exact_number_or_a_formula, a_formula_is_written_as_asked,
                   a_statement_is_proved_refuted_or_unknown, a_session_answers_again_after_an_error,
                   answers_live_as_long_as_the_session, a_file_that_is_not_there_is_an_io_error,
                   what_a_config_leaves_out_has_its_default_in_questions_and_is_open_in_statements,
                   a_check_lists_imported_plans_that_do_not_suit_the_model,
                   a_check_looks_at_configs_and_modules_that_nothing_uses,
                   a_check_reports_names_demands_and_verdicts, a_graph_says_what_is_derived_and_kept,
                   a_placement_says_where_tensors_are_and_what_is_moved, a_dry_run_needs_no_folder,
                   a_cancelled_session_writes_nothing, a_memory_limit_ends_a_call_and_not_the_process,
                   numbers_need_no_formula_of_memory, flops_count_by_a_convention, a_formula_says_why,
                   a_greatest_of_rows_is_left_out_where_rows_are_enough, traces_need_no_spec,
                   choices_are_those_of_the_lists, listings_need_no_session);
    return suite;
}
