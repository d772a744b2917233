/* Values of expressions, quantities in them, checks. */
#include "lang/model/model_int.h"
#include "specs.h"
#include "suite.h"

#include <string.h>

static const char *const spec_text =
    "param batch, heads, kv, hidden\n"
    "assume kv | heads\n"
    "dim B = batch, H = hidden, G = heads/kv, C ~ 3*B/2\n"
    "module ring(x) -> y { y = x }\n"
    "parallel p { mesh [edp = dp/ep, ep, ring]\n axis dp = (edp, ep), all = (dp, ring) }\n"
    "parallel q { mesh [tp] }\n";

/* Repeats what it is asked, and is worth 7. */
typedef struct heard {
    etch_arena *arena;
    etch_sym *sym;
    etch_buf text;
} heard;

static etch_expr hear(void *data, const etch_quantity *q)
{
    heard *h = data;
    etch_buf_printf(&h->text, "%s(%s", q->name, q->first ? q->first : "");
    const char *const names[] = {"of", "op", "run", "plan", "stage"};
    const char *const values[] = {q->of, q->op, q->run, q->plan, q->stage};
    for (uint32_t i = 0; i < 5; i++)
        if (values[i])
            etch_buf_printf(&h->text, " %s=%s", names[i], values[i]);
    for (uint32_t i = 0; i < q->axis_count; i++)
        etch_buf_printf(&h->text, " axis=%s", q->axes[i]);
    etch_buf_puts(&h->text, ")");
    return strcmp(q->name, "nothing") == 0 ? NULL : etch_int(h->sym, 7);
}

static const char *const quantity_names[] = {"flops", "comm", "params", "nothing", NULL};
static const char *const quantity_examples[] = {"flops(step)", "comm(step)", "params(model)",
                                                "nothing(step)"};

/* A query, under a plan or none, and its value as text; NULL: undefined. */
typedef struct value_case {
    const char *query, *plan, *value, *messages;
} value_case;

static void values(etch_arena *arena)
{
    static const value_case cases[] = {
        {"1 + 2*3 - 4/8", NULL, "13/2", ""},
        {"2^3^2 - -1", NULL, "513", ""},
        {"-2^2", NULL, "-4", ""},
        {"7 // 2 + 7 % 2 + -7 // 2 + -7 % 2", NULL, "1", ""}, /* 3 + 1 - 4 + 1 */
        {"0.1 + 0.2", NULL, "3/10", ""},
        {"max(1, 5, 3) + min(4, 2) + abs(-3) + floor(5/2) + ceil(5/2)", NULL, "15", ""},
        {"ceildiv(7, 2) + floordiv(7, 2) + mod(7, 2)", NULL, "8", ""},
        {"pow2(64) + pow2(65) + pow2(1) + pow2(0) + pow2(1/2)", NULL, "2", ""},
        {"pow2(4*batch) + 2*pow2(3*batch) + pow2(H/2)", NULL, "pow2(hidden/2) + pow2(batch)", ""},
        {"integer(3) + integer(1/3)", NULL, "1", ""},
        {"true + true + false", NULL, "2", ""},
        {"99999999999999999999 * 99999999999999999999", NULL, "9999999999999999999800000000000000000001", ""},
        {"H*B", NULL, "batch*hidden", ""},
        {"G*kv", NULL, "heads", ""},
        {"G // 1 - G", NULL, "0", ""}, /* the assumption says that G is an integer */
        {"H' + C", NULL, "3*batch/2 + hidden", ""},
        {"edp*ep + ring", "p", "dp + ring", ""},
        {"all/dp", "p", "ring", ""},
        {"tp*2", NULL, "2*tp", ""}, /* of some plan */
        {"tp*2", "q", "2*tp", ""},
        {"ring", "q", NULL,
         "E0600 query:1:1 'ring' is a module, not a number\n  note a.etch:5:8 it is declared here\n"},
        {"tpp + ep", "q", NULL,
         "E0210 query:1:1 unknown name 'tpp'\n"
         "  help did you mean 'tp'?\n"
         "E0210 query:1:7 unknown name 'ep'\n"
         "  help did you mean 'tp'?\n"},
        {"hiden", NULL, NULL, "E0210 query:1:1 unknown name 'hiden'\n  help did you mean 'hidden'?\n"},
        {"1/(H - H)", NULL, NULL, "E0603 query:1:1 '1/(H - H)' divides by zero\n"},
        {"2 + (3 // 0)", NULL, NULL, "E0603 query:1:5 '(3 // 0)' divides by zero\n"},
        {"0^-1", NULL, NULL, "E0603 query:1:1 '0^-1' divides by zero\n"},
        {"2^H", NULL, NULL, "E0604 query:1:3 an exponent is a whole number, not 'H'\n"},
        {"4^(1/2)", NULL, NULL, "E0604 query:1:3 an exponent is a whole number, not '(1/2)'\n"},
        {"H == 2", NULL, NULL,
         "E0605 query:1:1 a comparison stands where a value is needed\n"
         "  help claims are written in the spec: check H == 2\n"},
        {"max()", NULL, NULL, "E0601 query:1:1 max takes at least 1 argument, not 0\n"},
        {"max(1, over = 2)", NULL, NULL, "E0601 query:1:8 max has no argument 'over'\n"},
        {"x[A->B]", NULL, NULL, "E0600 query:1:1 a tensor stands where a number is needed\n"},
        {"(1, 2)", NULL, NULL, "E0600 query:1:1 a list stands where a number is needed\n"},
        {"1 +", NULL, NULL, "E0110 query:1:4 expected a value after '+', found end of the text\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const value_case *c = &cases[i];
        spec_scene s = specs_load(arena, spec_text);
        specs_expect("spec", specs_messages(&s), "");
        const etch_plan *plan = c->plan ? etch_spec_plan(s.spec, c->plan, true, (etch_span){0, 0}) : NULL;
        etch_expr value = etch_spec_value(s.spec, c->query, "query", plan, NULL);
        specs_expect(c->query, specs_messages(&s), c->messages);
        ck_assert_msg((value != NULL) == (c->value != NULL), "%s", c->query);
        if (value)
            specs_expect(c->query, etch_expr_text(s.sym, value), c->value);
        specs_end(&s);
    }
}

START_TEST(values_are_exact_and_mistakes_have_places)
{
    etch_with_arena(values);
}
END_TEST

/* A query, what the quantities in it are asked for, and what is reported. */
typedef struct quantity_case {
    const char *query, *asked, *value, *messages;
} quantity_case;

static void quantities(etch_arena *arena)
{
    static const quantity_case cases[] = {
        {"flops(step)", "flops(step)", "7", ""},
        {"flops(step)/2 + params(model)*H", "flops(step)params(model)", "7*hidden + 7/2", ""},
        {"comm(step, op = all_reduce, axis = (dp, tp), of = attention.wq)",
         "comm(step of=attention.wq op=all_reduce axis=dp axis=tp)", "7", ""},
        {"comm(forward, axis = dp, run = decode, plan = tp8, stage = 3)",
         "comm(forward run=decode plan=tp8 stage=3 axis=dp)", "7", ""},
        {"flops()", "flops()", "7", ""},
        {"max(flops(step), 9)", "flops(step)", "9", ""},
        {"1 + nothing(step)", "nothing(step)", NULL, ""}, /* the quantity reports by itself */
        {"flosp(step)", "", NULL,
         "E0602 query:1:1 there is no quantity or function 'flosp'\n"
         "  help did you mean 'flops'?\n"
         "  help `etch help quantities` lists what can be asked\n"},
        {"1 + comm", "", NULL,
         "E0210 query:1:5 'comm' is a quantity: it is asked with what it is of\n"
         "  help for example comm(step); `etch help quantities` lists them\n"},
        {"latency", "", NULL,
         "E0210 query:1:1 unknown name 'latency'\n"
         "  help `etch help quantities` lists what can be asked\n"},
        {"flops(step, off = x)", "", NULL,
         "E0621 query:1:13 'flops' has no argument 'off'\n"
         "  help did you mean 'of'?\n"
         "  help quantities take of, op, axis, run, plan, stage, part, count, buffers\n"},
        {"flops(step, layer)", "", NULL,
         "E0621 query:1:13 'flops' has one argument without a name, the first\n"
         "  help the others are named: of, op, axis, run, plan, stage, part, count, buffers\n"},
        {"flops(step, of = 2*x)", "", NULL, "E0621 query:1:18 a name stands here\n"},
        {"flops(3)", "", NULL, "E0621 query:1:7 a name stands here\n"},
        {"flops(step, of = a, of = b)", "", NULL, "E0621 query:1:21 'of' is given twice\n"},
        {"flops(step, axis = (dp, 2))", "", NULL, "E0621 query:1:25 a name stands here\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const quantity_case *c = &cases[i];
        spec_scene s = specs_load(arena, spec_text);
        heard h = {.arena = arena, .sym = s.sym, .text = {.arena = arena}};
        etch_buf_puts(&h.text, "");
        const etch_quantities known = {hear, &h, quantity_names, quantity_examples};
        etch_expr value = etch_spec_value(s.spec, c->query, "query", NULL, &known);
        specs_expect(c->query, specs_messages(&s), c->messages);
        specs_expect(c->query, h.text.text, c->asked);
        ck_assert_msg((value != NULL) == (c->value != NULL), "%s", c->query);
        if (value)
            specs_expect(c->query, etch_expr_text(s.sym, value), c->value);
        specs_end(&s);
    }
}

START_TEST(quantities_are_asked_for_by_their_arguments)
{
    etch_with_arena(quantities);
}
END_TEST

static void single(etch_arena *arena)
{
    static const struct {
        const char *text, *name, *of;
    } cases[] = {{"comm(step, of = block)", "comm", "block"},
                 {"(flops(step))", "flops", NULL},
                 {"2*flops(step)", NULL, NULL},
                 {"max(1, 2)", NULL, NULL},
                 {"H", NULL, NULL},
                 {"unheard(of)", "unheard", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spec_scene s = specs_load(arena, spec_text);
        etch_quantity q;
        const bool is_one = etch_spec_quantity(s.spec, cases[i].text, "query", &q);
        ck_assert_msg(is_one == (cases[i].name != NULL), "%s", cases[i].text);
        if (is_one) {
            ck_assert_str_eq(q.name, cases[i].name);
            ck_assert(cases[i].of ? strcmp(q.of, cases[i].of) == 0 : !q.of);
        }
        specs_expect(cases[i].text, specs_messages(&s), "");
        specs_end(&s);
    }
}

START_TEST(one_quantity_alone_is_told_from_more)
{
    etch_with_arena(single);
}
END_TEST

static void checks(etch_arena *arena)
{
    spec_scene s = specs_load(arena, "import \"b.etch\"\nparam a\nassume a >= 2\ncheck flops(step) == 7*a/a\n"
                                     "check a > 1\ncheck nope(step) == 1\ncheck a\n"
                                     "--- b.etch\nparam b\nassume 3 | b\ncheck b == 0\n");
    specs_expect("spec", specs_messages(&s), "");
    heard h = {.arena = arena, .sym = s.sym, .text = {.arena = arena}};
    const etch_quantities known = {hear, &h, quantity_names, quantity_examples};
    const etch_claim *claims;
    static const struct {
        const char *text;
        etch_relation relation;
        etch_truth holds;
    } expected[] = {{"flops(step) == 7*a/a", ETCH_REL_EQ, ETCH_YES},
                    {"a > 1", ETCH_REL_GT, ETCH_YES},
                    {"nope(step) == 1", ETCH_REL_EQ, ETCH_UNKNOWN},
                    {"a", ETCH_REL_TRUE, ETCH_YES}};
    ck_assert_uint_eq(etch_spec_checks(s.spec, &known, &claims), 4);
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_str_eq(claims[i].text, expected[i].text);
        ck_assert_int_eq(claims[i].relation, expected[i].relation);
        ck_assert((claims[i].left != NULL) == (i != 2));
        if (claims[i].left)
            ck_assert_int_eq(etch_claim_holds(s.spec, &claims[i], NULL), expected[i].holds);
    }
    specs_expect("checks", specs_messages(&s),
                 "E0602 a.etch:7:7 there is no quantity or function 'nope'\n"
                 "  help `etch help quantities` lists what can be asked\n");
    ck_assert_uint_eq(etch_spec_assumptions(s.spec, &claims), 2);
    ck_assert_str_eq(claims[0].text, "3 | b");
    ck_assert_str_eq(claims[1].text, "a >= 2");
    specs_end(&s);
}

START_TEST(checks_are_those_of_the_spec_and_assumptions_of_all_files)
{
    etch_with_arena(checks);
}
END_TEST

/* What comes to nothing has been reported, or the run ends as a bug: in every build, without assertions
 * too. */
static etch_status come_to_nothing(void *data)
{
    const spec_scene *s = data;
    const etch_builder builder = {.spec = s->spec};
    etch_builder_lost(&builder);
    return ETCH_OK;
}

static void losses(etch_arena *arena)
{
    spec_scene s = specs_load(arena, "param a\n");
    ck_assert_int_eq(etch_guard(etch_arena_mem(arena), come_to_nothing, &s), ETCH_EINTERNAL);
    etch_error(s.diags, ETCH_E_CALL_ARGUMENTS, (etch_span){0, 0}, "a reason");
    ck_assert_int_eq(etch_guard(etch_arena_mem(arena), come_to_nothing, &s), ETCH_OK);
    specs_end(&s);
}

START_TEST(nothing_is_left_out_without_a_reason)
{
    etch_with_arena(losses);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("values");
    ETCH_ADD_TESTS(suite, values_are_exact_and_mistakes_have_places,
                   quantities_are_asked_for_by_their_arguments, one_quantity_alone_is_told_from_more,
                   checks_are_those_of_the_spec_and_assumptions_of_all_files,
                   nothing_is_left_out_without_a_reason);
    return suite;
}
