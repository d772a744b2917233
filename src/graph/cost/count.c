/* Counting conventions: one table of what they may say, one of the presets with their sources. Nothing of an
 * outside program's bookkeeping stands anywhere else. */
#include "graph/cost/cost_int.h"

#include <string.h>

/* ---- items --------------------------------------------------------------------------------------------- */

enum { MOST_VALUES = 4 };
enum { CAUSAL_EXACT, CAUSAL_HALF, CAUSAL_FULL };
enum { YES, NO };
enum { NORMS_SAME, NORMS_YES, NORMS_NO };
enum { EMBEDDING_NO, EMBEDDING_YES };
enum { LOGITS_ALL, LOGITS_LAST, LOGITS_NO };

typedef struct item_row {
    const char *name;
    /* the first is that of execution */
    const char *values[MOST_VALUES];
    /* lines */
    const char *help;
} item_row;

static const item_row items[ETCH_COUNT_ITEMS] = {
    [ETCH_COUNT_CAUSAL] = {"causal",
                           {"exact", "half", "full"},
                           "pairs of query and key where no query sees a later key:\n"
                           "S*T - S*(S-1)/2, S*T/2 or S*T for S queries and T keys, as many\n"
                           "as a window shows; scores that products compute and a mask\n"
                           "hides are all pairs, or half"},
    [ETCH_COUNT_RESCORE] = {"rescore",
                            {"yes", "no"},
                            "the scores that backward of fused attention computes a second\n"
                            "time: it costs 2.5 times its forward with them, 2 times without"},
    [ETCH_COUNT_RECOMPUTE] = {"recompute", {"yes", "no"}, "the recompute phase"},
    [ETCH_COUNT_ELEMENTWISE] = {"elementwise",
                                {"yes", "no"},
                                "everything that is no product, the optimizer too"},
    [ETCH_COUNT_NORMS] = {"norms",
                          {"same", "yes", "no"},
                          "norms and their backward; same: as `elementwise` says"},
    [ETCH_COUNT_EMBEDDING] = {"embedding",
                              {"no", "yes"},
                              "lookups in weights, and their gradients, as products with\n"
                              "one-hot rows; looking up multiplies nothing"},
    [ETCH_COUNT_ROUTER] = {"router",
                           {"yes", "no"},
                           "products that choose experts: what an op chooses by, and what\n"
                           "is tagged `router`"},
    [ETCH_COUNT_LOGITS] = {"logits",
                           {"all", "last", "no"},
                           "products that give the logits: of all tokens, of one token of\n"
                           "each sequence, or not at all"},
};

/* ---- presets ------------------------------------------------------------------------------------------- */

/* A term of an outside program's bookkeeping: FLOP for each element of what ops of this kind normalise, in
 * place of those that their rows say. */
typedef struct term_row {
    const char *name;
    etch_op_role_bit role;
    uint32_t forward, backward;
    const char *help;
} term_row;

struct etch_count_preset {
    const char *name;
    unsigned char at[ETCH_COUNT_ITEMS];
    /* ends with a row without a name; NULL: none */
    const term_row *terms;
    /* lines */
    const char *source;
};

static const term_row megatron_terms[] = {
    {"latent norms", ETCH_OP_LATENT_NORM, 2, 4,
     "q_lora_rank*(... + 1) + kv_lora_rank*(... + 1): the norm between two projections\n"
     "is one multiply-add for each element, three times in a step"},
    {"prediction norms", ETCH_OP_MTP_NORM, 2, 4,
     "mtp_num_layers*(3*hidden_size + ...): so is a norm in a statement tagged `mtp`, those\n"
     "of the token and of the hidden state that are joined, and the one before the logits"},
    {0},
};

static const etch_count_preset presets[] = {
    {"megatron",
     {[ETCH_COUNT_CAUSAL] = CAUSAL_HALF,
      [ETCH_COUNT_RESCORE] = NO,
      [ETCH_COUNT_RECOMPUTE] = NO,
      [ETCH_COUNT_ELEMENTWISE] = NO,
      [ETCH_COUNT_NORMS] = NORMS_NO,
      [ETCH_COUNT_ROUTER] = NO},
     megatron_terms,
     "Megatron-LM d98e8a64, megatron/training/training.py, num_floating_point_operations:\n"
     "products of forward and twice as much backward, half of the pairs of tokens"},
    {"narayanan",
     {[ETCH_COUNT_CAUSAL] = CAUSAL_FULL,
      [ETCH_COUNT_RESCORE] = NO,
      [ETCH_COUNT_ELEMENTWISE] = NO,
      [ETCH_COUNT_NORMS] = NORMS_NO},
     NULL,
     "Narayanan et al. 2021, arXiv 2104.04473, equation 3: products, all pairs of\n"
     "tokens, and what a spec recomputes"},
};
enum { PRESET_COUNT = sizeof presets / sizeof *presets };

/* ---- names --------------------------------------------------------------------------------------------- */

const char *etch_count_item_name(size_t item)
{
    return item < ETCH_COUNT_ITEMS ? items[item].name : NULL;
}

const char *etch_count_value_name(size_t item, size_t value)
{
    return value < MOST_VALUES ? items[item].values[value] : NULL;
}

const char *etch_count_preset_name(size_t preset)
{
    return preset < PRESET_COUNT ? presets[preset].name : NULL;
}

etch_count etch_count_of_preset(size_t preset)
{
    etch_count count = {.preset = &presets[preset]};
    memcpy(count.at, presets[preset].at, sizeof count.at);
    return count;
}

static void put_values(etch_buf *out, const unsigned char *at, const char *separator)
{
    for (size_t i = 0; i < ETCH_COUNT_ITEMS; i++)
        etch_buf_printf(out, "%s%s=%s", i ? separator : "", items[i].name, items[i].values[at[i]]);
}

const char *etch_count_text(etch_arena *arena, const etch_count *count)
{
    etch_buf out = {.arena = arena};
    put_values(&out, count->at, ",");
    if (count->preset && count->preset->terms)
        etch_buf_printf(&out, ",terms=%s", count->preset->name);
    return out.text;
}

/* ---- listings ------------------------------------------------------------------------------------------ */

/* Lines of text, all but the first behind a margin. */
static void put_lines(etch_buf *out, int margin, const char *text)
{
    for (; *text; text += *text == '\n') {
        const size_t length = strcspn(text, "\n");
        etch_buf_printf(out, "%.*s\n", (int)length, text);
        text += length;
        if (*text)
            etch_buf_printf(out, "%*s", margin, "");
    }
}

static void describe_item(etch_buf *out, const item_row *row)
{
    enum { MARGIN = 29 };
    etch_buf call = {.arena = out->arena};
    etch_buf_printf(&call, "%s=", row->name);
    for (size_t i = 0; i < MOST_VALUES && row->values[i]; i++)
        etch_buf_printf(&call, "%s%s", i ? "|" : "", row->values[i]);
    etch_buf_printf(out, "  %-*s", MARGIN - 2, call.text);
    put_lines(out, MARGIN, row->help);
}

static void describe_preset(etch_buf *out, const etch_count_preset *preset)
{
    enum { MARGIN = 10 };
    etch_buf_printf(out, "\n%s\n  values  ", preset->name);
    for (size_t i = 0; i < ETCH_COUNT_ITEMS; i++)
        etch_buf_printf(out, "%s%s=%s",
                        !i       ? ""
                        : i == 4 ? "\n          "
                                 : " ",
                        items[i].name, items[i].values[preset->at[i]]);
    etch_buf_puts(out, "\n  source  ");
    put_lines(out, MARGIN, preset->source);
    for (const term_row *term = preset->terms; term && term->name; term++) {
        etch_buf_printf(out, "  term    %s, %u FLOP an element forward, %u backward:\n%*s", term->name,
                        term->forward, term->backward, MARGIN, "");
        put_lines(out, MARGIN, term->help);
    }
}

void etch_count_describe(etch_buf *out)
{
    etch_buf_puts(out, "What counts as FLOP; the first value is the work as it is executed:\n");
    for (size_t i = 0; i < ETCH_COUNT_ITEMS; i++)
        describe_item(out, &items[i]);
    etch_buf_puts(out, "\nPresets:\n");
    for (size_t i = 0; i < PRESET_COUNT; i++)
        describe_preset(out, &presets[i]);
}

/* ---- one item of work ---------------------------------------------------------------------------------- */

typedef struct judging {
    const etch_count *count;
    const etch_op_roles *roles;
    const etch_cost *item;
    /* of the forward op that the item comes from */
    unsigned role;
    etch_flop_rule rule;
} judging;

static unsigned mark_of(const etch_op_roles *roles, const etch_op *op)
{
    const etch_op *first = op ? etch_first_op(op) : NULL;
    return first && first->id < roles->op_count ? roles->of[first->id] : 0;
}

static unsigned says(const judging *j, etch_count_item item)
{
    return j->count->at[item];
}

/* Products, and lookups where they count as such. */
static bool counts_product(judging *j)
{
    if (j->role & ETCH_OP_ROUTER && says(j, ETCH_COUNT_ROUTER) == NO)
        return false;
    if (j->role & ETCH_OP_LOGITS && says(j, ETCH_COUNT_LOGITS) == LOGITS_NO)
        return false;
    if (j->role & ETCH_OP_LOGITS && says(j, ETCH_COUNT_LOGITS) == LOGITS_LAST)
        j->rule.single = j->roles->sequence;
    j->rule.pairs = says(j, ETCH_COUNT_CAUSAL) == CAUSAL_HALF   ? ETCH_PAIRS_HALF
                    : says(j, ETCH_COUNT_CAUSAL) == CAUSAL_FULL ? ETCH_PAIRS_FULL
                                                                : ETCH_PAIRS_EXACT;
    j->rule.half = j->role & ETCH_OP_MASKED && j->rule.pairs == ETCH_PAIRS_HALF;
    j->rule.once = says(j, ETCH_COUNT_RESCORE) == NO;
    return true;
}

/* A term of the preset that the op is counted by; NULL: none. */
static const term_row *term_of(const judging *j)
{
    const term_row *term = j->count->preset ? j->count->preset->terms : NULL;
    while (term && term->name && !(j->role & term->role && j->item->op->row->family == ETCH_FAMILY_NORM))
        term++;
    return term && term->name ? term : NULL;
}

static bool counts_other(judging *j)
{
    const etch_op *op = j->item->op;
    const term_row *term = op ? term_of(j) : NULL;
    if (term) {
        const bool forward = j->item->phase == ETCH_FORWARD || j->item->phase == ETCH_RECOMPUTE;
        j->rule.element = forward ? term->forward : term->backward;
        return true;
    }
    const bool embeds = j->role & ETCH_OP_EMBEDDING && op->row->family == ETCH_FAMILY_LOOKUP;
    if (embeds && says(j, ETCH_COUNT_EMBEDDING) == EMBEDDING_YES) {
        j->rule.product = true;
        return true;
    }
    if (op && op->row->family == ETCH_FAMILY_NORM && says(j, ETCH_COUNT_NORMS) != NORMS_SAME)
        return says(j, ETCH_COUNT_NORMS) == NORMS_YES;
    return says(j, ETCH_COUNT_ELEMENTWISE) == YES;
}

bool etch_count_fits(const etch_count *count, const etch_op_roles *roles)
{
    return count->at[ETCH_COUNT_LOGITS] != LOGITS_LAST || roles->has_sequence;
}

bool etch_count_apply(const etch_count *count, const etch_op_roles *roles, const etch_training *training,
                      const etch_placed *placed, etch_cost *item)
{
    judging j = {.count = count, .roles = roles, .item = item, .role = mark_of(roles, item->op)};
    if (item->measure != ETCH_FLOPS && item->measure != ETCH_RANK_FLOPS)
        return true;
    if (item->phase == ETCH_RECOMPUTE && says(&j, ETCH_COUNT_RECOMPUTE) == NO)
        return false;
    const bool is_product = item->matmul && item->phase != ETCH_OPTIMIZER;
    if (!(is_product ? counts_product(&j) : counts_other(&j)))
        return false;
    item->matmul = item->matmul || j.rule.product;
    if (item->step)
        item->each = etch_step_flop_by(placed, item->step, &j.rule);
    else if (item->op)
        item->each =
            etch_op_flop_by(training->graph->sym, item->op, &j.rule, etch_size_in_training, training);
    return true;
}
