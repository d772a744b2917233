/* Models that a program builds: what they cost is what the same model in a spec costs, and mistakes are
 * reported. */
#include "etch/builder.h"
#include "etch/etch.h"
#include "suite.h"

#include <stdio.h>
#include <string.h>

static const char names[] =
    "etch 1\n"
    "param batch, seq, heads, width, layers\n"
    "dim B = batch, S = seq, T = seq, A = heads, D = width, H = heads*width, F = 4*H\n";
static const char ending[] = "train { model = decoder, optimizer = adamw(master = true) }\n"
                             "parallel tp { mesh [dp, tp]; shard B @ dp, A @ tp, F @ tp }\n";

/* The model below as a spec says it. */
static const char written[] = "module block(x[B,S,H]) -> y[B,S,H] {\n"
                              "  weight g[H], wq[H,A,D], wk[H,A,D], wv[H,A,D], wo[A,D,H]\n"
                              "  n = rms_norm(x, g, over = H)\n"
                              "  q[B,S,A,D] = n * wq\n"
                              "  k[B,S',A,D] = n[S->S'] * wk\n"
                              "  v[B,S',A,D] = n[S->S'] * wv\n"
                              "  o = sdpa(q, k, v, dot = D, over = S', causal = true)\n"
                              "  a[B,S,H] = o * wo\n"
                              "  y = x + dropout(a, 1/10)\n"
                              "}\n"
                              "model decoder(x[B,S,H]) -> l[] {\n"
                              "  weight bias[H] tag frozen\n"
                              "  z = x + bias\n"
                              "  repeat layers as layer { z = block(z) }\n"
                              "  l[] = scale(sum(z, over = (B,S,H)), 1/(batch*seq)) tag loss\n"
                              "}\n";

typedef struct names_of {
    etch_dim *b, *s, *t, *a, *d, *h;
} names_of;

static etch_tensor *projection(etch_network *net, etch_tensor *x, const char *name, const names_of *n,
                               etch_dim *seq)
{
    etch_tensor *w = etch_network_weight(net, name, NULL, 3, (etch_dim *[]){n->h, n->a, n->d});
    return etch_network_multiply(net, x, w, 4, (etch_dim *[]){n->b, seq, n->a, n->d});
}

static etch_tensor *block(etch_network *net, etch_tensor *outer, const names_of *n)
{
    etch_network_enter(net, "block");
    etch_tensor *x = etch_network_pass_in(net, outer, "x");
    etch_tensor *g = etch_network_weight(net, "g", NULL, 1, &n->h);
    etch_network_argument over = {.name = "over", .dims = &n->h, .dim_count = 1};
    etch_tensor *normed = etch_network_call(net, "rms_norm", 2, (etch_tensor *[]){x, g}, 1, &over);
    etch_tensor *seen = etch_network_rename(net, normed, 1, &n->s, &n->t);
    etch_tensor *qkv[] = {projection(net, normed, "wq", n, n->s), projection(net, seen, "wk", n, n->t),
                          projection(net, seen, "wv", n, n->t)};
    const etch_network_argument attention[] = {{.name = "dot", .dims = &n->d, .dim_count = 1},
                                               {.name = "over", .dims = &n->t, .dim_count = 1},
                                               {.name = "causal", .number = "1"}};
    etch_tensor *o = etch_network_call(net, "sdpa", 3, qkv, 3, attention);
    etch_tensor *wo = etch_network_weight(net, "wo", NULL, 3, (etch_dim *[]){n->a, n->d, n->h});
    etch_tensor *y = etch_network_multiply(net, o, wo, 3, (etch_dim *[]){n->b, n->s, n->h});
    y = etch_network_call(net, "dropout", 1, &y, 1, &(etch_network_argument){.number = "1/10"});
    y = etch_network_pass_out(net, etch_network_add(net, x, y), "y");
    etch_network_leave(net);
    return y;
}

static void decoder(etch_network *net, void *data)
{
    (void)data;
    const names_of n = {etch_network_dim(net, "B"), etch_network_dim(net, "S"), etch_network_dim(net, "S'"),
                        etch_network_dim(net, "A"), etch_network_dim(net, "D"), etch_network_dim(net, "H")};
    etch_tensor *x = etch_network_input(net, "x", NULL, 3, (etch_dim *[]){n.b, n.s, n.h});
    etch_tensor *bias = etch_network_frozen_weight(net, "bias", NULL, 1, &n.h);
    etch_tensor *z = etch_network_add(net, x, bias), *result;
    etch_network_repeat(net, "layer", "layers");
    etch_tensor *changed = block(net, etch_network_carry(net, z), &n);
    etch_network_end(net, 1, &changed, &result);
    etch_tensor *loss = etch_network_scale(net, etch_network_reduce(net, result, 0, NULL), "1/(batch*seq)");
    etch_network_name(net, loss, "l");
    etch_network_tag(net, loss, "loss");
}

static etch_session *open_text(const char *text, const etch_network_model *model, size_t memory)
{
    etch_session *session;
    const etch_session_options options = {.struct_size = sizeof options,
                                          .text = text,
                                          .models = model,
                                          .model_count = model != NULL,
                                          .memory_limit = memory};
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_OK);
    return session;
}

START_TEST(what_is_built_costs_what_is_written)
{
    static const char *const questions[] = {"params(model)",
                                            "params(block)",
                                            "trainable(model)",
                                            "flops(step)",
                                            "flops(forward, of = layer)",
                                            "matmul_flops(backward)",
                                            "comm(step)",
                                            "rank_flops(step)",
                                            "traffic(step)",
                                            "matmul_flops(step)"};
    char built_text[2048], written_text[4096];
    snprintf(built_text, sizeof built_text, "%s%s", names, ending);
    snprintf(written_text, sizeof written_text, "%s%s%s", names, written, ending);
    const etch_network_model model = {.name = "decoder", .build = decoder};
    etch_session *built = open_text(built_text, &model, 0), *other = open_text(written_text, NULL, 0);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        const etch_answer *a, *b;
        ck_assert_msg(etch_session_query(built, questions[i], NULL, &a) == ETCH_OK, "%s: %s", questions[i],
                      etch_session_message_text(built));
        ck_assert_msg(etch_session_query(other, questions[i], NULL, &b) == ETCH_OK, "%s: %s", questions[i],
                      etch_session_message_text(other));
        ck_assert_str_eq(a->amount.text, b->amount.text);
    }
    etch_session_close(built);
    etch_session_close(other);
}
END_TEST

/* Rows of experts' tables, three quarters of which a token sees on average. */
static void own_dims(etch_network *net, void *data)
{
    (void)data;
    etch_dim *rows = etch_network_new_dim(net, "R", "3*heads + 1", false);
    etch_dim *seen = etch_network_new_dim(net, "Q", "3*heads/4", true);
    etch_tensor *w = etch_network_weight(net, "w", NULL, 2, (etch_dim *[]){rows, seen});
    etch_tensor *v = etch_network_weight(net, "v", "f32", 1, &rows);
    etch_network_subtract(net, etch_network_shift(net, w, "heads"), etch_network_weigh(net, v, v));
}

START_TEST(a_network_may_have_dims_of_its_own)
{
    etch_session *session = open_text(names, &(etch_network_model){.name = "table", .build = own_dims}, 0);
    const etch_answer *answer;
    ck_assert_msg(etch_session_query(session, "params(model)", NULL, &answer) == ETCH_OK, "%s",
                  etch_session_message_text(session));
    ck_assert_str_eq(answer->amount.text, "9*heads^2/4 + 15*heads/4 + 1");
    ck_assert_int_eq(etch_session_query(session, "flops(forward)", NULL, &answer), ETCH_OK);
    ck_assert_str_eq(answer->amount.text, "9*heads^2/2 + 9*heads/2 + 1");
    etch_session_close(session);
}
END_TEST

/* ---- mistakes ------------------------------------------------------------------------------------------ */

static bool has_code(etch_session *session, const char *code)
{
    size_t count;
    const etch_message *messages = etch_session_messages(session, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(messages[i].code, code) == 0)
            return true;
    return false;
}

static void unknown_dim(etch_network *net, void *data)
{
    (void)data;
    etch_dim *dims[] = {etch_network_dim(net, "B"), etch_network_dim(net, "NONE")};
    etch_tensor *x = etch_network_input(net, "x", NULL, 2, dims);
    ck_assert_ptr_null(x);
    ck_assert_ptr_null(etch_network_add(net, x, x));
    ck_assert_ptr_null(etch_network_multiply(net, x, x, 2, dims));
    ck_assert_ptr_null(etch_network_call(net, "relu", 1, &x, 0, NULL));
    etch_network_tag(net, x, "loss");
}

static void unknown_op(etch_network *net, void *data)
{
    (void)data;
    etch_dim *b = etch_network_dim(net, "B");
    etch_tensor *x = etch_network_input(net, "x", NULL, 1, &b);
    ck_assert_ptr_null(etch_network_call(net, "relo", 1, &x, 0, NULL));
}

static void wrong_argument(etch_network *net, void *data)
{
    (void)data;
    etch_dim *b = etch_network_dim(net, "B");
    etch_tensor *x = etch_network_input(net, "x", NULL, 1, &b);
    ck_assert_ptr_null(etch_network_call(net, "relu", 1, &x, 1,
                                         &(etch_network_argument){"over", .dims = &b, .dim_count = 1}));
}

static void missing_argument(etch_network *net, void *data)
{
    (void)data;
    etch_dim *b = etch_network_dim(net, "B");
    etch_tensor *x = etch_network_input(net, "x", NULL, 1, &b);
    ck_assert_ptr_null(etch_network_call(net, "softmax", 1, &x, 0, NULL));
}

static void too_many_operands(etch_network *net, void *data)
{
    (void)data;
    etch_dim *b = etch_network_dim(net, "B");
    etch_tensor *x = etch_network_input(net, "x", NULL, 1, &b);
    ck_assert_ptr_null(etch_network_call(net, "relu", 2, (etch_tensor *[]){x, x}, 0, NULL));
}

/* One cast is right, the next is to whole numbers, which have no gradient. */
static void wrong_cast(etch_network *net, void *data)
{
    (void)data;
    etch_dim *b = etch_network_dim(net, "B");
    etch_tensor *x = etch_network_input(net, "x", NULL, 1, &b);
    x = etch_network_call(net, "cast", 1, &x, 1, &(etch_network_argument){"dtype", .number = "f8"});
    ck_assert_ptr_nonnull(x);
    ck_assert_ptr_null(
        etch_network_call(net, "cast", 1, &x, 1, &(etch_network_argument){"dtype", .number = "i32"}));
}

static void wrong_dtype(etch_network *net, void *data)
{
    (void)data;
    etch_dim *b = etch_network_dim(net, "B");
    ck_assert_ptr_null(etch_network_input(net, "x", "b17", 1, &b));
}

static void wrong_number(etch_network *net, void *data)
{
    (void)data;
    etch_dim *b = etch_network_dim(net, "B");
    ck_assert_ptr_null(etch_network_scale(net, etch_network_input(net, "x", NULL, 1, &b), "1/unknown"));
}

static void open_loop(etch_network *net, void *data)
{
    (void)data;
    etch_network_repeat(net, "layer", "layers");
}

static void open_module(etch_network *net, void *data)
{
    (void)data;
    etch_network_enter(net, "block");
}

static void left_too_often(etch_network *net, void *data)
{
    (void)data;
    etch_network_leave(net);
    etch_network_leave(net);
}

static void ended_too_often(etch_network *net, void *data)
{
    (void)data;
    etch_network_end(net, 0, NULL, NULL);
}

static void carried_wrongly(etch_network *net, void *data)
{
    (void)data;
    etch_dim *b = etch_network_dim(net, "B");
    etch_tensor *x = etch_network_input(net, "x", NULL, 1, &b), *results[2], *changed[2];
    etch_network_repeat(net, "layer", "layers");
    changed[0] = changed[1] = etch_network_carry(net, x);
    etch_network_end(net, 2, changed, results);
}

START_TEST(mistakes_are_messages)
{
    static const struct {
        void (*build)(etch_network *network, void *data);
        const char *code;
    } mistakes[] = {
        {unknown_dim, "E0210"},      {unknown_op, "E0602"},        {wrong_argument, "E0240"},
        {missing_argument, "E0240"}, {too_many_operands, "E0240"}, {wrong_dtype, "E0216"},
        {wrong_cast, "E0240"},       {wrong_number, "E0210"},      {open_loop, "E0269"},
        {open_module, "E0269"},      {left_too_often, "E0269"},    {ended_too_often, "E0269"},
        {carried_wrongly, "E0269"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const etch_network_model model = {.name = "decoder", .build = mistakes[i].build};
        etch_session *session = open_text(names, &model, 0);
        const etch_answer *answer;
        ck_assert_msg(etch_session_query(session, "params(model)", NULL, &answer) == ETCH_EINPUT, "%zu", i);
        ck_assert_msg(has_code(session, mistakes[i].code), "%zu: no %s in\n%s", i, mistakes[i].code,
                      etch_session_message_text(session));
        etch_session_close(session);
    }
}
END_TEST

/* Never ends by itself; memory does end. */
static void endless(etch_network *net, void *data)
{
    bool *returned = data;
    etch_dim *b = etch_network_dim(net, "B");
    etch_tensor *x = etch_network_input(net, "x", NULL, 1, &b);
    while (x)
        x = etch_network_call(net, "relu", 1, &x, 0, NULL);
    ck_assert_ptr_null(etch_network_dim(net, "B"));
    *returned = true;
}

START_TEST(limits_return_through_the_program)
{
    bool returned = false;
    const etch_network_model model = {.name = "decoder", .build = endless, .data = &returned};
    etch_session *session = open_text(names, &model, (size_t)4 << 20);
    const etch_answer *answer;
    ck_assert_int_eq(etch_session_query(session, "params(model)", NULL, &answer), ETCH_ELIMIT);
    ck_assert(returned);
    ck_assert_int_eq(etch_session_query(session, "batch", NULL, &answer), ETCH_ELIMIT);
    etch_session_close(session);
}
END_TEST

START_TEST(a_name_is_declared_once)
{
    const etch_network_model model = {.name = "B", .build = decoder};
    etch_session *session;
    const etch_session_options options = {
        .struct_size = sizeof options, .text = names, .models = &model, .model_count = 1};
    ck_assert_int_eq(etch_session_open(&options, &session), ETCH_EINPUT);
    ck_assert(has_code(session, "E0211"));
    etch_session_close(session);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("network");
    ETCH_ADD_TESTS(suite, what_is_built_costs_what_is_written, a_network_may_have_dims_of_its_own,
                   mistakes_are_messages, limits_return_through_the_program, a_name_is_declared_once);
    return suite;
}
