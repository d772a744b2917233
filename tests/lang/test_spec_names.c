/* Names, imports, params, dims, assumptions and dtypes of a spec. */
#include "specs.h"
#include "suite.h"

#include <string.h>

static void check_cases(etch_arena *arena, const spec_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        spec_scene s = specs_load(arena, cases[i].text);
        specs_expect(cases[i].text, specs_messages(&s), cases[i].messages);
        specs_end(&s);
    }
}
#define CHECK_CASES(arena, ...)                            \
    check_cases((arena), (const spec_case[]){__VA_ARGS__}, \
                sizeof((const spec_case[]){__VA_ARGS__}) / sizeof(spec_case))

static void wrong_names(etch_arena *arena)
{
    CHECK_CASES(arena,
                {"dim H = hiden\nparam hidden\n", "E0210 a.etch:2:9 unknown name 'hiden'\n"
                                                  "  help did you mean 'hidden'?\n"},
                {"param a\nparam b, a\n", "E0211 a.etch:3:10 'a' is defined twice\n"
                                          "  note a.etch:2:7 'a' is this param already\n"},
                {"param a\nmodule a(x) -> y { y = x }\n", "E0211 a.etch:3:8 'a' is defined twice\n"
                                                          "  note a.etch:2:7 'a' is this param already\n"},
                {"import \"b.etch\"\ndim B = 4\n--- b.etch\nparam x\ndim B = x\n",
                 "E0211 a.etch:3:5 'B' is defined twice\n"
                 "  note b.etch:3:5 'B' is this dim already\n"},
                {"import \"b.etch\"\nimport \"c.etch\"\n--- b.etch\nparam x\n--- c.etch\nparam x\n",
                 "E0211 a.etch:3:8 'x' is imported from two files\n"
                 "  note b.etch:2:7 'x' is this param already\n"
                 "  help import under another name, `import \"...\" as x`, or list what you need in ( )\n"},
                {"import \"b.etch\" (norn, x)\n--- b.etch\nparam x\nmodule norm(x) -> y { y = x }\n",
                 "E0212 a.etch:2:18 'b.etch' has no 'norn'\n"
                 "  help did you mean 'norm'?\n"},
                {"import \"b.etch\" (x)\ndim A = x*y\n--- b.etch\nparam x, y\n",
                 "E0210 a.etch:3:11 unknown name 'y'\n"
                 "  note b.etch:2:10 this param is not visible in 'a.etch'\n"
                 "  help import it from 'b.etch'\n"},
                {"dim A = c\nconfig c { }\n", "E0600 a.etch:2:9 'c' is a config, not a number\n"
                                              "  note a.etch:3:8 it is declared here\n"},
                {"train { }\ntrain { }\n", "E0211 a.etch:3:1 'train' is defined twice\n"
                                           "  note a.etch:2:1 'train' is this train block already\n"
                                           "  help give train blocks names: train NAME { ... }\n"},
                {"use config big\nconfig bog { }\n", "E0500 a.etch:2:12 there is no config 'big'\n"
                                                     "  help did you mean 'bog'?\n"},
                {"use plan p\nuse plan q\nparallel p { }\nparallel q { }\n",
                 "E0219 a.etch:3:1 a spec uses one plan\n"
                 "  note a.etch:2:1 it uses this one already\n"}, );
}

START_TEST(a_wrong_name_is_reported_at_its_place_with_what_is_near)
{
    etch_with_arena(wrong_names);
}
END_TEST

static void wrong_numbers(etch_arena *arena)
{
    CHECK_CASES(arena, {"dim A = B, B = C, C = 2*A\n", "E0213 a.etch:2:5 the size of dim 'A' needs itself\n"},
                {"param n\ndim A = n/(n - n)\n", "E0603 a.etch:3:9 'n/(n - n)' divides by zero\n"},
                {"param n\ndim A = 2^n\n", "E0604 a.etch:3:11 an exponent is a whole number, not 'n'\n"},
                {"dim A = \"4\"\n", "E0600 a.etch:2:9 a text stands where a number is needed\n"},
                {"dim A = max(3, (1, 2))\n", "E0600 a.etch:2:16 a list stands where a number is needed\n"},
                {"dim A = cieldiv(3, 2)\n", "E0602 a.etch:2:9 'cieldiv' is no function of numbers\n"
                                            "  help did you mean 'ceildiv'?\n"},
                {"dim A = ceildiv(3)\n", "E0601 a.etch:2:9 ceildiv takes 2 arguments, not 1\n"},
                {"dim A = pow2(1, 2)\n", "E0601 a.etch:2:9 pow2 takes 1 argument, not 2\n"},
                {"param a whole\n", "E0214 a.etch:2:9 params have no type 'whole'\n"
                                    "  help a param is an integer, or `param a real`: any number above 0\n"
                                    "  help several in one are a `text` or a `list`\n"},
                {"param a, b >= a\n",
                 "E0215 a.etch:2:15 the bound of a param is a whole number, not 'a'\n"
                 "  help what depends on other params is an assumption: assume b >= a\n"},
                {"param a >= 4 = 3\n", "E0504 a.etch:2:16 a = 3 is less than 4\n"
                                       "  note a.etch:2:7 'a' is declared here\n"},
                {"param a = 5/2\n", "E0505 a.etch:2:11 a = 5/2 is no integer\n"
                                    "  note a.etch:2:7 'a' is declared here\n"},
                {"param a = b, b = 2*a\n", "E0503 a.etch:2:18 the value of 'a' needs itself\n"
                                           "  note a.etch:2:11 'a' is given here\n"},
                {"param a\nconfig c { a = 1, a = 2 }\n", "E0507 a.etch:3:19 config 'c' binds 'a' twice\n"
                                                         "  note a.etch:3:12 it is bound here already\n"},
                {"param hidden\ndim H = hidden\nconfig c { hiden = 1 }\nconfig d { H = 1 }\n",
                 "E0501 a.etch:4:12 there is no param or mesh axis 'hiden'\n"
                 "  help did you mean 'hidden'?\n"
                 "E0506 a.etch:5:12 'H' is a dim: only params have values\n"
                 "  note a.etch:3:5 its size is declared here\n"}, );
}

START_TEST(a_wrong_number_is_reported_at_its_place)
{
    etch_with_arena(wrong_numbers);
}
END_TEST

static void good_specs(etch_arena *arena)
{
    CHECK_CASES(
        arena, {"", ""}, {"param a = 0, b >= 0 = 0, c >= 4 = 4, d real = 1/2, e = -3\n", ""},
        {"dim A = n, B = A\nparam n = m, m = 2\n", ""}, /* in any order */
        {"import \"b.etch\"\nimport \"c.etch\"\n--- b.etch\nimport \"c.etch\"\n--- c.etch\nparam x\n", ""},
        {"import \"b.etch\"\ntrain { }\n--- b.etch\ntrain { }\n", ""},
        {"import \"b.etch\" (A)\nparam x\ndim B = A*x\n--- b.etch\nparam x\ndim A = x\n", ""},
        {"import \"b.etch\" as b\nparam x\ndim A = b.x*x\n--- b.etch\nparam x\n", ""},
        {"use config c\nconfig c { tp = 2 }\nparallel p { mesh [tp] }\n", ""}, );
}

START_TEST(good_specs_load_in_silence)
{
    etch_with_arena(good_specs);
}
END_TEST

/* ---- assumptions --------------------------------------------------------------------------------------- */

static void contradictions(etch_arena *arena)
{
    CHECK_CASES(arena,
                {"param a, b\nassume a >= b + 3\nassume a < b\n",
                 "E0218 a.etch:4:8 'a < b' contradicts what is known\n"
                 "  note a.etch:3:8 'a >= b + 3' is assumed here\n"},
                {"param a\nassume a <= 0\n", "E0218 a.etch:3:8 'a <= 0' contradicts what is known\n"
                                             "  note a.etch:2:7 a is declared here: an integer from 1 on\n"},
                {"assume 2 == 3\n", "E0218 a.etch:2:8 '2 == 3' contradicts what is known\n"}, );
}

START_TEST(contradictions_name_both_places)
{
    etch_with_arena(contradictions);
}
END_TEST

/* What holds under the facts of a spec: texts of predicates, and whether they must be proved. */
typedef struct fact_case {
    const char *spec, *claim;
    etch_truth holds;
} fact_case;

static etch_truth holds(const spec_scene *s, const char *text)
{
    const etch_source *source = etch_source_add(s->diags, "claim", text, strlen(text));
    const etch_ast_expr *expr = etch_ast_parse_query(&s->spec->context, source);
    const etch_lookup lookup = etch_global_lookup(s->spec, s->spec->main);
    ck_assert_ptr_nonnull(expr);
    const etch_claim claim = etch_claim_of(s->spec, expr, &lookup);
    ck_assert_ptr_nonnull(claim.left);
    specs_expect("text", claim.text, text);
    return etch_claim_holds(s->spec, &claim, NULL);
}

static void facts(etch_arena *arena)
{
    static const fact_case cases[] = {
        {"param h, k\nassume k | h\n", "integer(h/k)", ETCH_YES},
        {"param h, k\n", "integer(h/k)", ETCH_NO},
        {"param h, k\nassume integer(h/k)\n", "k | h", ETCH_YES},
        {"param a, b\nassume a < b\n", "a + 1 <= b", ETCH_YES},
        {"param a, b\nassume a > b\n", "a >= b + 1", ETCH_YES},
        {"param a, b\nassume a > b\n", "a != b", ETCH_YES},
        {"param a, b\nassume a == 2*b\n", "2 | a", ETCH_YES},
        {"param a\n", "a > 0", ETCH_YES},
        {"param a >= 0\n", "a >= 1", ETCH_NO},
        {"param a = 0\n", "a >= 1", ETCH_NO},
        {"param a\n", "a == a", ETCH_YES},
        {"param a\n", "a + 1", ETCH_YES}, /* not 0 */
        {"param a\n", "2 < 1", ETCH_NO},
        /* an assumption about what the importing file does not see */
        {"import \"b.etch\" (H)\n--- b.etch\nparam h, k\nassume 6 | h\ndim H = h\n", "3 | H", ETCH_YES},
        /* sizes know facts that are stated behind them */
        {"dim G = h/k\nparam h, k\nassume k | h\n", "integer(G)", ETCH_YES},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spec_scene s = specs_load(arena, cases[i].spec);
        specs_expect(cases[i].spec, specs_messages(&s), "");
        ck_assert_msg(holds(&s, cases[i].claim) == cases[i].holds, "%s: %s", cases[i].spec, cases[i].claim);
        specs_end(&s);
    }
}

START_TEST(assumptions_of_all_files_hold)
{
    etch_with_arena(facts);
}
END_TEST

/* ---- what the spec lists ------------------------------------------------------------------------------- */

static const char *list(const spec_scene *s, etch_listing what)
{
    const char *const *names;
    const uint32_t count = etch_spec_list(s->spec, what, &names);
    etch_buf out = {.arena = s->arena};
    etch_buf_puts(&out, "");
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(&out, "%s%s", i ? " " : "", names[i]);
    return out.text;
}

static const char *const listed = "import \"b.etch\" as b\n"
                                  "import \"c.etch\"\n"
                                  "param n, m = 2*n, r real = 0.5\n"
                                  "module f(x) -> y { y = x }\n"
                                  "model big(x[X]) -> y { y = x }\n"
                                  "dim X = n\n"
                                  "config tiny { n = 1 }\n"
                                  "train { model = big }\n"
                                  "train second { model = big }\n"
                                  "parallel one { }\n"
                                  "--- b.etch\n"
                                  "import \"d.etch\"\n"
                                  "param n\n"
                                  "config huge { n = 100 }\n"
                                  "--- c.etch\n"
                                  "import \"d.etch\" (w)\n"
                                  "param q\n"
                                  "model small(x[]) -> y { y = x }\n"
                                  "train third { model = small }\n"
                                  "--- d.etch\n"
                                  "param w\n";

static void listings(etch_arena *arena)
{
    spec_scene s = specs_load(arena, listed);
    specs_expect("messages", specs_messages(&s), "");
    specs_expect("models", list(&s, ETCH_LIST_MODELS), "small big");
    specs_expect("modules", list(&s, ETCH_LIST_MODULES), "f");
    specs_expect("configs", list(&s, ETCH_LIST_CONFIGS), "b.huge tiny");
    specs_expect("plans", list(&s, ETCH_LIST_PLANS), "one");
    specs_expect("runs", list(&s, ETCH_LIST_RUNS), "train second");

    const etch_param *params;
    etch_buf out = {.arena = arena};
    const uint32_t count = etch_spec_params(s.spec, &params);
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(&out, "%s%s ", params[i].name,
                        params[i].value ? etch_text(arena, "=%s", etch_expr_text(s.sym, params[i].value))
                                        : "");
    specs_expect("params", out.text, "w b.n q n m=2*n r=1/2 ");

    const etch_source **files;
    const uint32_t file_count = etch_spec_files(s.spec, &files);
    out = (etch_buf){.arena = arena};
    for (uint32_t i = 0; i < file_count; i++)
        etch_buf_printf(&out, "%s ", strrchr(files[i]->path, '/') + 1);
    specs_expect("files", out.text, "a.etch b.etch d.etch c.etch ");
    specs_end(&s);
}

START_TEST(a_spec_lists_what_it_sees)
{
    etch_with_arena(listings);
}
END_TEST

static void params_of_one_name(etch_arena *arena)
{
    spec_scene s = specs_load(arena, "import \"b.etch\" (A)\nimport \"c.etch\" (B)\nparam n\ndim C = A*B*n\n"
                                     "--- b.etch\nparam n\ndim A = n\n--- c.etch\nparam n\ndim B = n\n");
    specs_expect("messages", specs_messages(&s), "");
    etch_expr value = etch_spec_value(s.spec, "C", "query", NULL, NULL);
    specs_expect("C", etch_expr_text(s.sym, value), "b.n*c.n*n");
    specs_end(&s);
}

START_TEST(params_of_one_name_in_different_files_stay_apart)
{
    etch_with_arena(params_of_one_name);
}
END_TEST

/* ---- dtypes -------------------------------------------------------------------------------------------- */

static void dtypes(etch_arena *arena)
{
    static const struct {
        const char *text, *dtypes;
    } cases[] = {
        {"", "bf16 bf16 f32 f32"},
        {"dtype act = f16, optim = f64\n", "f16 bf16 f32 f64"},
        {"import \"b.etch\"\ndtype act = f32\n--- b.etch\ndtype act = f16, grads = bf16\n",
         "f32 bf16 bf16 f32"},
        {"import \"b.etch\" (x)\n--- b.etch\nimport \"c.etch\"\nparam x\n--- c.etch\ndtype weights = f32\n",
         "bf16 f32 f32 f32"},
        {"import \"b.etch\"\nimport \"c.etch\"\ndtype act = f32\n--- b.etch\ndtype act = f16\n--- "
         "c.etch\ndtype act = bf16\n",
         "f32 bf16 f32 f32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spec_scene s = specs_load(arena, cases[i].text);
        specs_expect(cases[i].text, specs_messages(&s), "");
        const etch_dtypes *d = &s.spec->dtypes;
        specs_expect(cases[i].text,
                     etch_text(arena, "%s %s %s %s", etch_dtype_name(d->act), etch_dtype_name(d->weights),
                               etch_dtype_name(d->grads), etch_dtype_name(d->optim)),
                     cases[i].dtypes);
        specs_end(&s);
    }
    CHECK_CASES(
        arena,
        {"dtype act = f17\n", "E0216 a.etch:2:13 there is no dtype 'f17'\n"
                              "  help did you mean 'f16'?\n"
                              "  help dtypes are f64, f32, bf16, f16, f8, i64, i32, i8, bool\n"},
        {"dtype atc = f16\n", "E0216 a.etch:2:7 'atc' is no class of tensors\n"
                              "  help did you mean 'act'?\n"
                              "  help classes are act, weights, grads, optim, master, moments, grads_comm, "
                              "weights_comm, dispatch, combine\n"},
        {"dtype master = none\n", "E0216 a.etch:2:16 there is no dtype 'none'\n"
                                  "  help dtypes are f64, f32, bf16, f16, f8, i64, i32, i8, bool\n"},
        {"dtype gemm = f8\n", "E0244 a.etch:2:7 the dtype of 'gemm' is part of the language but is "
                              "not given meaning yet\n"},
        {"import \"b.etch\"\nimport \"c.etch\"\n--- b.etch\ndtype act = f16\n--- c.etch\ndtype act = bf16\n",
         "E0217 a.etch:3:8 imports set the dtype of 'act' differently\n"
         "  note b.etch:2:7 f16 here\n"
         "  note c.etch:2:7 bf16 here\n"
         "  help set it in this file: dtype act = f16\n"}, );
}

START_TEST(a_file_overrules_the_dtypes_of_its_imports)
{
    etch_with_arena(dtypes);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("spec_names");
    ETCH_ADD_TESTS(suite, a_wrong_name_is_reported_at_its_place_with_what_is_near,
                   a_wrong_number_is_reported_at_its_place, good_specs_load_in_silence,
                   contradictions_name_both_places, assumptions_of_all_files_hold, a_spec_lists_what_it_sees,
                   params_of_one_name_in_different_files_stay_apart,
                   a_file_overrules_the_dtypes_of_its_imports);
    return suite;
}
