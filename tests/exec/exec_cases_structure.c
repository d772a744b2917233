/* Rows that look at elements under other dims, put tensors side by side or take them apart, and slide
 * windows. */
#include "exec_cases.h"

static etch_tensor *merged(exec_model *m)
{
    etch_tensor *y = exec_regroup(m, "y", exec_weight(m, "a", "S H"), "S H", "W");
    return exec_product(m, "y", y, exec_weight(m, "w", "W K"), "K");
}

static etch_tensor *parted(exec_model *m)
{
    etch_tensor *y = exec_regroup(m, "y", exec_weight(m, "a", "K W"), "W", "S D");
    return exec_product(m, "y", y, exec_weight(m, "w", "D H"), "K S H");
}

/* Three dims to one, and that to two others. */
static etch_tensor *reshaped(exec_model *m)
{
    etch_tensor *all = exec_regroup(m, "all", exec_weight(m, "a", "B K D H"), "K D H", "W");
    return exec_regroup(m, "y", all, "W", "H' S");
}

/* The second operand is broadcast along K. */
static etch_tensor *joined(exec_model *m)
{
    return exec_concat(m, "y", "S H", "B K N", exec_weight(m, "a", "B K S"), exec_weight(m, "b", "B H"),
                       NULL);
}

/* Products on both sides, and a part of one element. */
static etch_tensor *joined_products(exec_model *m)
{
    etch_tensor *x = exec_weight(m, "x", "B S K");
    etch_tensor *a = exec_product(m, "a", x, exec_weight(m, "wa", "K T"), "B S T");
    etch_tensor *b = exec_product(m, "b", x, exec_weight(m, "wb", "K H"), "B S H");
    etch_tensor *c = exec_weight(m, "c", "B S");
    return exec_concat(m, "y", "T H U", "B S N'", a, b, c);
}

static etch_tensor *taken_apart(exec_model *m)
{
    static const char *const parts[] = {"B H T", "B H D", NULL};
    etch_tensor *out[2];
    exec_split(m, exec_product(m, "x", exec_weight(m, "a", "B K"), exec_weight(m, "w", "K H N"), "B H N"),
               "N", parts, out);
    etch_tensor *first = exec_call_row(m, "f", "rms_norm", "T", out[0], NULL, NULL);
    return exec_product(m, "y", first, out[1], "B H T D");
}

/* Parts of size 1, one of which nobody reads. */
static etch_tensor *singled_out(exec_model *m)
{
    static const char *const parts[] = {"B S", "B S", "B S", "B S", NULL};
    etch_tensor *out[4];
    exec_split(m, exec_weight(m, "a", "B S H"), "H", parts, out);
    return exec_product(m, "y", exec_sum(m, "s", out[0], out[3]), out[1], "B S");
}

static etch_tensor *padded(exec_model *m)
{
    etch_tensor *y = exec_pad(m, "y", exec_weight(m, "a", "K S D"), "S", "P");
    exec_tag(m, y, "padded");
    return exec_product(m, "y", y, exec_weight(m, "w", "D H"), "K P H");
}

static etch_tensor *convolution(exec_model *m)
{
    return exec_window(m, "conv", "B S V", "S", exec_weight(m, "a", "B S K"), exec_weight(m, "w", "KY K V"),
                       "KY", 0, 1, false);
}

/* Along two dims, to half of the places, which have dims of their own. */
static etch_tensor *strided_convolution(exec_model *m)
{
    etch_tensor *y = exec_window(m, "conv", "R Q V", "Y X", exec_weight(m, "a", "Y X K"),
                                 exec_weight(m, "w", "KY KX K V"), "KY KX", 0, 2, false);
    exec_tag(m, y, "places");
    return y;
}

static etch_tensor *grouped_convolution(exec_model *m)
{
    return exec_window(m, "conv", "H K V", "S", exec_weight(m, "a", "S K D"), exec_weight(m, "w", "KY K D V"),
                       "KY", 0, 2, false);
}

/* Each channel with a kernel of its own. The cotangent may be a partial sum. */
static etch_tensor *depthwise_convolution(exec_model *m)
{
    etch_tensor *y = exec_window(m, "conv", NULL, "S", exec_weight(m, "a", "B S H"),
                                 exec_weight(m, "w", "K H"), "K", 0, 1, true);
    return exec_product(m, "y", y, exec_weight(m, "w2", "H V"), "B S V");
}

/* The result of a product, of which a rank may have a summand; its places get another name. */
static etch_tensor *convolved_product(exec_model *m)
{
    etch_tensor *a = exec_product(m, "a", exec_weight(m, "x", "S H"), exec_weight(m, "w1", "H D"), "S D");
    return exec_window(m, "conv", "T V", "S", a, exec_weight(m, "w2", "KY D V"), "KY", 0, 1, false);
}

static etch_tensor *pools(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B Y X");
    etch_tensor *most = exec_window(m, "max_pool", "B R Q", "Y X", a, NULL, "", 3, 2, false);
    etch_tensor *mean = exec_window(m, "avg_pool", "B R Q", "Y X", a, NULL, "", 2, 2, false);
    exec_tag(m, most, "places");
    exec_tag(m, mean, "places");
    return exec_product(m, "y", most, mean, "B R Q");
}

/* Of what a rank may have a summand of; the cotangent may be one, too. */
static etch_tensor *pooled_product(exec_model *m)
{
    etch_tensor *a = exec_product(m, "a", exec_weight(m, "x", "S K"), exec_weight(m, "w1", "K D"), "S D");
    etch_tensor *mean = exec_window(m, "avg_pool", "H D", "S", a, NULL, "", 2, 2, false);
    etch_tensor *most = exec_window(m, "max_pool", "H D", "S", a, NULL, "", 3, 2, false);
    return exec_sum(m, "y", exec_product(m, "y", mean, exec_weight(m, "w2", "D V"), "H V"),
                    exec_product(m, "y", most, exec_weight(m, "w3", "D V"), "H V"));
}

/* Batches are groups, each of two heads of width D, with states of H. */
static etch_tensor *scanned(exec_model *m)
{
    etch_tensor *rate = exec_call_row(m, "dt", "softplus", "", exec_weight(m, "t", "B S K"), NULL, NULL);
    etch_tensor *const ins[] = {exec_weight(m, "u", "B S K D"), rate, exec_weight(m, "a", "K"),
                                exec_weight(m, "b", "B S H"), exec_weight(m, "c", "B S H")};
    return exec_scan(m, "y", ins, "S", "H", 4);
}

/* Products on all sides, and groups that are no batches. */
static etch_tensor *scanned_products(exec_model *m)
{
    etch_tensor *x = exec_weight(m, "x", "S D");
    etch_tensor *u = exec_product(m, "u", x, exec_weight(m, "wu", "D K H"), "S K H");
    etch_tensor *b = exec_product(m, "b", x, exec_weight(m, "wb", "D K H'"), "S K H'");
    etch_tensor *c = exec_product(m, "c", x, exec_weight(m, "wc", "D K H'"), "S K H'");
    etch_tensor *t = exec_product(m, "t", x, exec_weight(m, "wt", "D K H"), "S K H");
    etch_tensor *const ins[] = {u, exec_call_row(m, "dt", "softplus", "", t, NULL, NULL),
                                exec_weight(m, "a", "K H"), b, c};
    return exec_product(m, "y", exec_scan(m, "s", ins, "S", "H'", 2), exec_weight(m, "wo", "K H V"), "S V");
}

/* Decays of each head, and of each element. */
static etch_tensor *recurred(exec_model *m)
{
    etch_tensor *a = exec_call_row(m, "a", "sigmoid", "", exec_weight(m, "t", "B S K"), NULL, NULL);
    etch_tensor *h = exec_call_row(m, "h", "scan", "S", a, exec_weight(m, "b", "S K B D"), NULL);
    return exec_call_row(m, "y", "scan", "S", exec_weight(m, "c", "S K B D"), h, NULL);
}

/* Products on all sides, of which one may be a partial sum. */
static etch_tensor *recurred_products(exec_model *m)
{
    etch_tensor *x = exec_weight(m, "x", "S H");
    etch_tensor *a = exec_product(m, "a", x, exec_weight(m, "wa", "H K"), "S K");
    etch_tensor *b = exec_product(m, "b", x, exec_weight(m, "wb", "H K D"), "S K D");
    etch_tensor *h = exec_call_row(m, "h", "scan", "S", a, b, NULL);
    return exec_product(m, "y", h, exec_weight(m, "wo", "K D V"), "S V");
}

/* Windows that look back only: of each channel, behind a product that may be a partial sum, and across
 * channels. The last one looks ahead, too, and keeps nothing. */
static etch_tensor *convolved_on(exec_model *m)
{
    etch_tensor *x =
        exec_product(m, "x", exec_weight(m, "x0", "B S D"), exec_weight(m, "w1", "D H"), "B S H");
    etch_tensor *c = exec_window(m, "conv", NULL, "S", x, exec_weight(m, "w2", "KY H"), "KY", 0, 1, true);
    etch_tensor *d =
        exec_window(m, "conv", "B S V", "S", c, exec_weight(m, "w3", "KX H V"), "KX", 0, 1, true);
    return exec_window(m, "conv", NULL, "S", d, exec_weight(m, "w4", "K V"), "K", 0, 1, false);
}

/* Heads of keys for each head of queries, as they are and after a product. */
static etch_tensor *copied(exec_model *m)
{
    etch_tensor *kr = exec_copies(m, "kr", exec_weight(m, "k", "B S K"), "B S K D");
    return exec_product(m, "y", kr, exec_weight(m, "w", "K D"), "B S K D");
}

static etch_tensor *copied_product(exec_model *m)
{
    etch_tensor *k = exec_product(m, "k", exec_weight(m, "x", "B S H"), exec_weight(m, "wk", "H K"), "B S K");
    etch_tensor *kr = exec_copies(m, "kr", k, "B S K D");
    return exec_product(m, "y", kr, exec_weight(m, "w", "D V"), "B S K V");
}

/* Places of a table, a gain and what is added. */
static etch_tensor *constants(exec_model *m)
{
    etch_tensor *places = exec_constant(m, "places", "S", 0, 0),
                *half = exec_constant(m, "half", "B H", 1, 2);
    etch_tensor *x = exec_call_row(m, "x", "gather", "P", exec_weight(m, "table", "P H"), places, NULL);
    x = exec_product(m, "y", half, x, "B S H");
    return exec_sum(m, "z", x, exec_constant(m, "three", "", 3, 1));
}

static etch_tensor *scattered(exec_model *m)
{
    etch_tensor *x = exec_weight(m, "x", "B S H"), *ids = exec_ids(m, "ids", "B S");
    return exec_sum(
        m, "y", exec_scatter(m, "all", x, ids, "V", "V H"),
        exec_call_row(m, "own", "tanh", "", exec_scatter(m, "own", x, ids, "V", "B V H"), NULL, NULL));
}

static etch_tensor *scattered_product(exec_model *m)
{
    etch_tensor *x = exec_product(m, "x", exec_weight(m, "a", "S D"), exec_weight(m, "w", "D H"), "S H");
    etch_tensor *y = exec_scatter(m, "y", x, exec_ids(m, "ids", "S"), "V", "V H");
    return exec_product(m, "z", y, exec_weight(m, "w2", "H K"), "V K");
}

const exec_case exec_structure_cases[] = {
    {"copied", copied},
    {"copied product", copied_product},
    {"constants", constants},
    {"scattered", scattered},
    {"scattered product", scattered_product},
    {"merged", merged},
    {"parted", parted},
    {"reshaped", reshaped},
    {"joined", joined},
    {"joined products", joined_products},
    {"taken apart", taken_apart},
    {"singled out", singled_out},
    {"padded", padded},
    {"convolution", convolution},
    {"strided convolution", strided_convolution},
    {"grouped convolution", grouped_convolution},
    {"depthwise convolution", depthwise_convolution},
    {"convolved product", convolved_product},
    {"pools", pools},
    {"pooled product", pooled_product},
    {"scanned", scanned},
    {"scanned products", scanned_products},
    {"recurred", recurred},
    {"recurred products", recurred_products},
    {"scanned on", scanned},
    {"recurred on", recurred},
    {"convolved on", convolved_on},
    {NULL, NULL},
};
