/* Cases of functions of elements, reductions, casts and losses of elements. */
#include "exec_cases.h"

#include <stddef.h>

/* Of a sum of squares, which has a logarithm and a root. */
static etch_tensor *positive(exec_model *m)
{
    static const char *const functions[] = {"log", "sqrt", "rsqrt"};
    etch_tensor *x = exec_call_row(m, "x", "square", "", exec_weight(m, "a", "B S H"), NULL, NULL), *y = NULL;
    x = exec_reduce(m, "x", x, "B S");
    y = etch_graph_reciprocal(m->graph, x, (etch_span){0, 0});
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        etch_tensor *f = exec_call_row(m, functions[i], functions[i], "", x, NULL, NULL);
        y = exec_product(m, "y", y, f, "B S");
    }
    return y;
}

/* Each is read by a product, too, as it is or under another name, so that its result is kept. */
static etch_tensor *kept_results(exec_model *m)
{
    static const char *const functions[] = {"relu", "sigmoid", "tanh", "exp", "sqrt", "rsqrt", "reciprocal"};
    etch_tensor *y = exec_call_row(m, "y", "square", "", exec_weight(m, "a", "B S H"), NULL, NULL);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        y = exec_call_row(m, functions[i], functions[i], "", y, NULL, NULL);
        y = exec_product(m, "y", y, exec_weight(m, etch_text(m->arena, "w%d", (int)i), "H"), "B S H");
        y = exec_call_row(m, "y", "square", "", y, NULL, NULL);
    }
    return exec_reduce(m, "y", y, "B S");
}

/* A product reads what each is given, which is kept. */
static etch_tensor *kept_operands(exec_model *m)
{
    static const char *const functions[] = {"relu", "sigmoid", "tanh", "exp", "sqrt", "rsqrt", "reciprocal"};
    etch_tensor *x = exec_call_row(m, "x", "square", "", exec_weight(m, "a", "B S H"), NULL, NULL);
    etch_tensor *y = exec_product(m, "y", x, exec_weight(m, "w", "H"), "B S H");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        y = exec_sum(m, "y", y, exec_call_row(m, functions[i], functions[i], "", x, NULL, NULL));
    y = exec_sum(m, "y", y, exec_call_number(m, "capped", "softcap", 3, 2, x));
    return exec_reduce(m, "y", y, "B S");
}

/* Of several terms, some of which are broadcast and some taken away. */
static etch_tensor *several_terms(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B S H"), *b = exec_weight(m, "b", "S H"),
                *c = exec_weight(m, "c", "B S H"), *d = exec_weight(m, "d", "H");
    etch_tensor *y = exec_sum_of(m, "y", (etch_tensor *[]){a, b, c, d}, 4, 2);
    return exec_sum_of(m, "z", (etch_tensor *[]){y, a, exec_weight(m, "e", "B S")}, 3, 3);
}

/* Of products that keep their operands, too; both ways to sum; a result that is kept. */
static etch_tensor *quotients(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B S H");
    etch_tensor *b = exec_call_row(m, "b", "exp", "", exec_weight(m, "c", "S H"), NULL, NULL);
    etch_tensor *rows = exec_quotient(m, "rows", a, b, "B S");
    etch_tensor *each = exec_quotient(m, "each", exec_weight(m, "e", "B S"), b, "B S H");
    etch_tensor *kept = exec_product(m, "kept", each, exec_weight(m, "w", "H K"), "B S K");
    return exec_sum(m, "y", rows, exec_reduce(m, "kept", kept, "B S"));
}

/* Only what is taken from an input, or divides it, has a gradient: the cotangent may be a summand. */
static etch_tensor *of_inputs(exec_model *m)
{
    etch_tensor *x = exec_input(m, "x", "B S H");
    etch_tensor *b = exec_call_row(m, "b", "exp", "", exec_weight(m, "c", "S H"), NULL, NULL);
    etch_tensor *less = exec_difference(m, "less", x, exec_weight(m, "a", "S H"));
    etch_tensor *share = exec_quotient(m, "share", x, b, "B S H");
    return exec_sum(m, "y", exec_product(m, "y", less, exec_weight(m, "w1", "H V"), "B S V"),
                    exec_product(m, "y", share, exec_weight(m, "w2", "H V"), "B S V"));
}

static etch_tensor *bounded(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B S");
    etch_tensor *capped = exec_call_number(m, "capped", "softcap", 3, 2, a);
    etch_tensor *size = exec_call_row(m, "size", "abs", "", capped, NULL, NULL);
    return exec_sum(m, "y", exec_call_row(m, "size", "abs", "", a, NULL, NULL),
                    exec_call_number(m, "twice", "softcap", 3, 2, size));
}

static etch_tensor *largest(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B S H");
    etch_tensor *over_two = exec_call_row(m, "y", "max", "S H", a, NULL, NULL);
    return exec_product(m, "y", exec_call_row(m, "y", "max", "H", a, NULL, NULL), over_two, "B S");
}

/* Of what is the largest already, and of what a row has many times. */
static etch_tensor *largest_of_largest(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B S H");
    etch_tensor *most =
        exec_call_row(m, "m", "max", "S", exec_call_row(m, "m", "max", "H", a, NULL, NULL), NULL, NULL);
    etch_tensor *copies = exec_copies(m, "c", exec_weight(m, "k", "B"), "B S");
    return exec_product(m, "y", most, exec_call_row(m, "n", "max", "S", copies, NULL, NULL), "B");
}

/* Softmax and its logarithm by hand: nothing of the gradient goes through the largest. */
static etch_tensor *stopped(exec_model *m)
{
    etch_tensor *z = exec_product(m, "z", exec_weight(m, "a", "B H"), exec_weight(m, "w", "H V"), "B V");
    etch_tensor *most = exec_call_row(m, "m", "max", "V", z, NULL, NULL);
    etch_tensor *far = exec_call_row(m, "m", "stop_gradient", "", most, NULL, NULL);
    etch_tensor *e = exec_call_row(m, "e", "exp", "", exec_difference(m, "d", z, far), NULL, NULL);
    etch_tensor *all = exec_reduce(m, "s", e, "B");
    etch_tensor *log = exec_sum(m, "l", exec_call_row(m, "l", "log", "", all, NULL, NULL), far);
    return exec_sum(m, "y", exec_quotient(m, "p", e, all, "B V"), log);
}

/* As a product's operand, whose other operand has a gradient all the same; and the largest of the largest, of
 * which backward reads nothing. */
static etch_tensor *stopped_factor(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B S H"), *b = exec_weight(m, "b", "B S H");
    etch_tensor *rows =
        exec_call_row(m, "m", "max", "S", exec_call_row(m, "m", "max", "H", a, NULL, NULL), NULL, NULL);
    etch_tensor *size = exec_call_row(m, "size", "tanh", "", a, NULL, NULL);
    etch_tensor *held = exec_call_row(m, "held", "stop_gradient", "", size, NULL, NULL);
    etch_tensor *most = exec_call_row(m, "most", "stop_gradient", "", rows, NULL, NULL);
    return exec_sum(m, "y", exec_product(m, "y", held, b, "B S"),
                    exec_difference(m, "y", exec_product(m, "y", size, b, "B S"), most));
}

static etch_tensor *averaged(exec_model *m)
{
    return exec_call_row(m, "y", "mean", "B S", exec_weight(m, "a", "B S H"), NULL, NULL);
}

static etch_tensor *transposed(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B S"), *t = exec_call_row(m, "t", "transpose", "", a, NULL, NULL);
    return exec_sum(m, "y", exec_call_row(m, "own", "exp", "", a, NULL, NULL),
                    exec_call_row(m, "turned", "tanh", "", t, NULL, NULL));
}

static etch_tensor *cast(exec_model *m)
{
    etch_tensor *a = exec_cast(m, "c", exec_weight(m, "a", "B S H"), ETCH_F8);
    return exec_product(m, "y", a, exec_weight(m, "w", "H K"), "B S K");
}

/* Along dims that no rank shares: statistics of a part are not those of the whole. */
static etch_tensor *batch_statistics(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B' H' K");
    etch_tensor *full = exec_batch_norm(m, "n", "K", a, exec_weight(m, "g", "K"), exec_weight(m, "b", "K"));
    etch_tensor *gain = exec_batch_norm(m, "n", "K", full, exec_weight(m, "h", "K"), NULL);
    return exec_batch_norm(m, "y", "K H'", gain, NULL, NULL);
}

static etch_tensor *tokens(exec_model *m)
{
    return exec_call_row(m, "y", "token_nll", "V", exec_weight(m, "z", "B S V"), exec_ids(m, "labels", "B S"),
                         NULL);
}

static etch_tensor *binary_entropy(exec_model *m)
{
    etch_tensor *z = exec_call_number(m, "z", "scale", 1, 2, exec_weight(m, "a", "B S"));
    return exec_call_row(m, "y", "bce", "", z, exec_weight(m, "labels", "B"), NULL);
}

static etch_tensor *divergence(exec_model *m)
{
    return exec_call_row(m, "y", "kl", "", exec_weight(m, "p", "B S"), exec_weight(m, "r", "S"), NULL);
}

static etch_tensor *clipped_ratio(exec_model *m)
{
    etch_tensor *r = exec_call_row(m, "r", "exp", "", exec_weight(m, "a", "B S"), NULL, NULL);
    return exec_call_row(m, "y", "clipped", "", r, exec_weight(m, "advantage", "B"), NULL);
}

static etch_tensor *clipped_weights(exec_model *m)
{
    return exec_call_row(m, "y", "clipped", "", exec_weight(m, "r", "B S"),
                         exec_weight(m, "advantage", "B S"), NULL);
}

const exec_case exec_function_cases[] = {
    {"positive", positive},
    {"kept results", kept_results},
    {"kept operands", kept_operands},
    {"several terms", several_terms},
    {"of inputs", of_inputs},
    {"quotients", quotients},
    {"bounded", bounded},
    {"largest", largest},
    {"largest of largest", largest_of_largest},
    {"stopped", stopped},
    {"stopped factor", stopped_factor},
    {"averaged", averaged},
    {"transposed", transposed},
    {"cast", cast},
    {"batch statistics", batch_statistics},
    {"tokens", tokens},
    {"binary entropy", binary_entropy},
    {"divergence", divergence},
    {"clipped ratio", clipped_ratio},
    {"clipped weights", clipped_weights},
    {NULL, NULL},
};
