/* Formulas with libetch: facts, proofs, calculus, and a million exact values.
 *
 *     cc expr.c $(pkg-config --cflags --libs --static etch) -o expr */
#include <etch/expr.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static etch_formula read_formula(etch_algebra *al, const char *text)
{
    return etch_formula_read(al, text, strlen(text), ETCH_PLAIN, NULL);
}

static void show(etch_algebra *al, const char *what, etch_formula formula, etch_notation notation,
                 etch_form form)
{
    const char *text = etch_formula_text(al, formula, notation, form);
    printf("%-12s %s\n", what, text ? text : "-");
}

/* Prints whether left >= right holds for all values, or values for which it does not. */
static void decide(etch_algebra *al, const char *left, const char *right)
{
    static const char *const words[] = {[ETCH_NO] = "no", [ETCH_YES] = "yes", [ETCH_UNKNOWN] = "unknown"};
    etch_truth truth;
    etch_counterexample values;
    etch_algebra_decide(al, ETCH_REL_GE, read_formula(al, left), read_formula(al, right), &truth, &values);
    printf("%s >= %s: %s", left, right, words[truth]);
    for (size_t i = 0; i < values.count; i++)
        printf("%s%s = %s", i == 0 ? ", as for " : ", ", values.names[i], values.values[i]);
    printf("\n");
}

/* The formula for 1,000,000 sizes of the sequence, exactly; the other variables are fixed. */
static int sweep(etch_algebra *al, etch_formula formula)
{
    enum { COUNT = 1000000 };
    static const struct {
        const char *name;
        int64_t value;
    } fixed[] = {{"batch", 1024}, {"hidden", 8192}, {"layers", 80}, {"tp", 8}};
    etch_program *program;
    etch_workspace *workspace;
    if (etch_formula_compile(al, 1, &formula, &program) != ETCH_OK ||
        etch_workspace_new(&workspace) != ETCH_OK)
        return 1;
    int64_t *seq = malloc(COUNT * sizeof *seq), *values = malloc(COUNT * sizeof *values);
    unsigned char *kinds = malloc(COUNT);
    etch_column columns[8] = {0};
    if (!seq || !values || !kinds || etch_program_variables(program) > 8)
        return 1;
    for (size_t i = 0; i < COUNT; i++)
        seq[i] = 8 * (int64_t)(i + 1);
    for (size_t v = 0; v < etch_program_variables(program); v++) {
        columns[v].values = seq;
        for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++)
            if (strcmp(etch_program_variable(program, v), fixed[k].name) == 0)
                columns[v] = (etch_column){.values = &fixed[k].value, .same = true};
    }
    if (etch_program_evaluate(program, COUNT, columns, values, kinds, workspace) != ETCH_OK)
        return 1;
    size_t large = 0;
    for (size_t i = 0; i < COUNT; i++)
        large += kinds[i] == ETCH_VALUE_LARGE;
    printf("first        %" PRId64 "\n", values[0]);
    printf("last         %s\n", etch_workspace_number(workspace, values[COUNT - 1]));
    printf("above 2^63   %zu of %d\n", large, COUNT);
    free(seq);
    free(values);
    free(kinds);
    etch_workspace_free(workspace);
    etch_program_free(program);
    return 0;
}

int main(void)
{
    etch_algebra *al;
    if (etch_algebra_new(NULL, &al) != ETCH_OK)
        return 1;
    /* variables in the order in which they are to be printed */
    etch_formula seq = NULL;
    static const char *const names[] = {"batch", "seq", "hidden", "layers", "tp"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        etch_formula variable = etch_formula_variable(al, names[i]);
        seq = strcmp(names[i], "seq") == 0 ? variable : seq;
    }
    etch_algebra_assume(al, ETCH_REL_DIVIDES, read_formula(al, "tp"), read_formula(al, "hidden"), 1, NULL);

    etch_formula flop =
        read_formula(al, "layers*(24*batch*seq*hidden*(hidden // tp) + 4*batch*seq^2*hidden/tp)");
    show(al, "FLOP", flop, ETCH_PLAIN, ETCH_EXPANDED);
    show(al, "factored", flop, ETCH_PLAIN, ETCH_FACTORED);
    show(al, "LaTeX", flop, ETCH_LATEX, ETCH_EXPANDED);
    show(al, "by seq", etch_formula_derivative(al, flop, seq, NULL), ETCH_PLAIN, ETCH_EXPANDED);
    show(al, "seq large", etch_formula_leading(al, flop, seq), ETCH_PLAIN, ETCH_EXPANDED);
    decide(al, "hidden", "tp");
    decide(al, "seq", "tp");
    int failed = sweep(al, flop);
    if (etch_algebra_status(al) != ETCH_OK) {
        fprintf(stderr, "%s\n", etch_algebra_message(al));
        failed = 1;
    }
    etch_algebra_free(al);
    return failed;
}
