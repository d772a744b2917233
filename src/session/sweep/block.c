/* Many rows at once: which case each is of, which are refused, and what the others are. */
#include "session/sweep/sweep_int.h"

#include <string.h>

/* ---- rows ---------------------------------------------------------------------------------------------- */

static etch_exact value_at(const etch_sweep_block *b, uint32_t axis, uint32_t row)
{
    return (etch_exact){b->numbers[axis][row], b->denominators[axis] ? b->denominators[axis][row] : 1, NULL};
}

etch_exact *etch_block_row(etch_arena *arena, const etch_sweep_block *b, uint32_t row)
{
    etch_exact *values = ETCH_NEW_ARRAY(arena, b->frame->axis_count, etch_exact);
    for (uint32_t i = 0; i < b->frame->axis_count; i++)
        values[i] = value_at(b, i, row);
    return values;
}

etch_tally *etch_tally_add(etch_arena *arena, etch_tallies *all, const etch_tally *tally)
{
    for (uint32_t i = 0; i < all->count; i++) {
        etch_tally *known = &all->at[i];
        if (known->reason.code != tally->reason.code ||
            (known->reason.text != tally->reason.text && strcmp(known->reason.text, tally->reason.text) != 0))
            continue;
        const uint64_t count = known->count + tally->count;
        if (tally->row < known->row)
            *known = *tally;
        known->count = count;
        return known;
    }
    ETCH_PUSH(arena, all, *tally);
    return &all->at[all->count - 1];
}

uint64_t etch_block_number(const etch_sweep_block *b, uint32_t row)
{
    return b->first_row + (b->before ? b->before[row] : row);
}

void etch_block_refuse(etch_sweep_block *b, uint32_t row, etch_reason_text reason)
{
    /* of the block, until it is finished */
    const etch_tally tally = {.reason = reason, .count = 1, .row = row, .frame = b->frame};
    etch_tally_add(b->arena, &b->tallies, &tally);
}

static etch_reason_text undefined(const char *what)
{
    return (etch_reason_text){ETCH_E_QUERY_UNDEFINED, what};
}

/* ---- evaluating ---------------------------------------------------------------------------------------- */

/* False: it is undefined, or longer than any number. */
static bool exact_at(etch_sweep_block *b, const etch_sweep_values *e, uint32_t formula, uint32_t i,
                     etch_exact *out)
{
    const size_t at = (size_t)formula * e->count + i;
    *out = (etch_exact){e->values[at], 1, NULL};
    switch ((etch_value_kind)e->kinds[at]) {
    case ETCH_VALUE_INTEGER:
        return true;
    case ETCH_VALUE_RATIONAL:
        if (etch_workspace_fraction(e->workspace, e->values[at], &out->number, &out->denominator))
            return true;
        break;
    case ETCH_VALUE_LARGE:
        break;
    case ETCH_VALUE_UNDEFINED:
    case ETCH_VALUE_TOO_LONG:
        return false;
    }
    *out = (etch_exact){0, 1, etch_copy_string(b->arena, etch_workspace_number(e->workspace, e->values[at]))};
    return out->text != NULL;
}

/* ---- plain statements ---------------------------------------------------------------------------------- */

static bool holds(etch_sweep_block *b, const etch_sweep_values *e, const etch_sweep_claim *claim, uint32_t i,
                  bool *defined)
{
    etch_exact left, right;
    *defined = exact_at(b, e, claim->left, i, &left) && exact_at(b, e, claim->right, i, &right);
    return *defined && etch_exact_holds(b->arena, claim->relation, left, right);
}

static etch_status find_passes(etch_sweep_block *b)
{
    const etch_sweep_frame *frame = b->frame;
    const uint32_t statements = b->sweep->request.where.count;
    etch_sweep_values e = {0};
    b->passes = ETCH_NEW_ARRAY(b->arena, b->count, bool);
    memset(b->passes, 1, b->count * sizeof(bool));
    if (!frame->program || b->count == 0)
        return ETCH_OK;
    uint32_t *rows = ETCH_NEW_ARRAY(b->arena, b->count, uint32_t);
    for (uint32_t i = 0; i < b->count; i++)
        rows[i] = i;
    etch_status status = etch_workspace_new(&e.workspace);
    if (status == ETCH_OK)
        status = etch_block_evaluate(b, b->arena, frame->program, frame->inputs, rows, b->count, &e);
    for (uint32_t s = 0; status == ETCH_OK && s < statements; s++) {
        if (frame->kinds[s] != ETCH_WHERE_PLAIN)
            continue;
        for (uint32_t i = 0; i < b->count; i++) {
            bool defined;
            const bool met = holds(b, &e, &frame->claims[s], i, &defined);
            b->asked[s]++;
            b->met[s] += met;
            if (b->passes[i] && !defined)
                etch_block_refuse(b, i, undefined(b->sweep->request.where.at[s]));
            else if (b->passes[i] && !met)
                b->unmet++;
            b->passes[i] = b->passes[i] && met;
        }
    }
    etch_workspace_free(e.workspace);
    return status;
}

/* ---- cases --------------------------------------------------------------------------------------------- */

/* The key of a row of a block, whose values go to `values`. */
static etch_case_key key_of(const etch_sweep_block *b, uint32_t row, bool by_row, etch_exact *values)
{
    for (uint32_t i = 0; i < b->frame->axis_count; i++)
        values[i] = value_at(b, i, row);
    return etch_case_key_of(b->frame, by_row, values, values);
}

static void add_new_key(etch_sweep_block *b, const etch_case_key *key)
{
    const size_t bytes = b->frame->axis_count * sizeof(etch_exact);
    for (uint32_t i = b->new_keys.count; i-- > 0 && b->new_keys.count - i < 64;)
        if (b->new_keys.at[i].hash == key->hash && b->new_keys.at[i].by_row == key->by_row &&
            memcmp(b->new_keys.at[i].values, key->values, bytes) == 0)
            return;
    etch_exact *values = ETCH_NEW_ARRAY(b->arena, b->frame->axis_count, etch_exact);
    if (bytes)
        memcpy(values, key->values, bytes);
    etch_case_key own = *key;
    own.values = values;
    ETCH_PUSH(b->arena, &b->new_keys, own);
}

etch_status etch_block_sort(etch_sweep_block *b)
{
    b->new_keys.count = 0;
    if (!b->passes) {
        const etch_status status = find_passes(b);
        if (status != ETCH_OK)
            return status;
        b->cases = ETCH_NEW_ARRAY(b->arena, b->count, etch_sweep_case *);
        b->fits = ETCH_NEW_ARRAY(b->arena, b->count, bool);
    }
    etch_exact *values = ETCH_NEW_ARRAY(b->arena, b->frame->axis_count, etch_exact);
    for (uint32_t row = 0; row < b->count; row++) {
        if (!b->passes[row] || (b->cases[row] && b->cases[row]->state != ETCH_CASE_BY_ROW))
            continue;
        const bool by_row = b->frame->by_row || b->cases[row];
        b->fits[row] = false; /* in its own case it is looked at again */
        const etch_case_key key = key_of(b, row, by_row, values);
        etch_sweep_case *found = etch_case_find(b->sweep, &key);
        b->cases[row] = found ? found : b->cases[row];
        if (!found || (found->state == ETCH_CASE_BY_ROW && !by_row)) {
            const etch_case_key own = found ? key_of(b, row, true, values) : key;
            etch_sweep_case *exact = found ? etch_case_find(b->sweep, &own) : NULL;
            if (exact)
                b->cases[row] = exact;
            else
                add_new_key(b, &own);
        }
    }
    return ETCH_OK;
}

/* ---- rows of one case ---------------------------------------------------------------------------------- */

static bool is_met(etch_sweep_block *b, const etch_sweep_values *e, const etch_case_must *m, uint32_t i)
{
    etch_exact left = {0}, right = {0};
    const bool defined = exact_at(b, e, m->left, i, &left) && exact_at(b, e, m->right, i, &right);
    return etch_case_must_is_met(b->arena, &m->must, defined, left, right);
}

/* Words are looked at here; what is no word goes the long way. */
static bool is_met_by_words(etch_sweep_block *b, const etch_sweep_values *e, const etch_case_must *m,
                            uint32_t i)
{
    const size_t l = (size_t)m->left * e->count + i, r = (size_t)m->right * e->count + i;
    const int64_t left = e->values[l], right = e->values[r];
    if (e->kinds[l] == ETCH_VALUE_INTEGER && e->kinds[r] == ETCH_VALUE_INTEGER) {
        if (m->must.kind == ETCH_MUST_BE_NUMBER && !m->must.share)
            return m->must.above ? left > m->must.least : left >= m->must.least;
        if (m->must.kind == ETCH_MUST_DIVIDE && left > 0)
            return right % left == 0;
    }
    return is_met(b, e, m, i);
}

/* Takes rows out of the list that a condition refuses. */
static etch_status check_musts(etch_sweep_block *b, const etch_sweep_case *c, etch_sweep_values *e,
                               uint32_t *rows, uint32_t *count)
{
    if (!c->musts.program || *count == 0)
        return ETCH_OK;
    const etch_status status =
        etch_block_evaluate(b, b->arena, c->musts.program, c->musts.inputs, rows, *count, e);
    bool *refused = ETCH_NEW_ARRAY(b->arena, *count, bool);
    for (uint32_t m = 0; status == ETCH_OK && m < c->must_count; m++)
        for (uint32_t i = 0; i < *count; i++)
            if (!refused[i] && !is_met_by_words(b, e, &c->must[m], i)) {
                refused[i] = true;
                etch_block_refuse(b, rows[i],
                                  (etch_reason_text){c->must[m].must.code, c->must[m].must.subject});
            }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (!refused[i])
            rows[kept++] = rows[i];
    *count = kept;
    return status;
}

/* The same of statements about quantities. */
static etch_status check_claims(etch_sweep_block *b, const etch_sweep_case *c, etch_sweep_values *e,
                                uint32_t *rows, uint32_t *count)
{
    if (!c->claims.program || *count == 0)
        return ETCH_OK;
    const etch_status status =
        etch_block_evaluate(b, b->arena, c->claims.program, c->claims.inputs, rows, *count, e);
    uint32_t kept = 0;
    for (uint32_t i = 0; status == ETCH_OK && i < *count; i++) {
        bool met = true, defined = true, each;
        for (uint32_t k = 0; k < c->claim_count && defined; k++) {
            each = holds(b, e, &c->claim[k], i, &defined);
            b->asked[c->claim_of[k]] += defined;
            b->met[c->claim_of[k]] += each;
            met = met && each;
            if (!defined)
                etch_block_refuse(b, rows[i], undefined(b->sweep->request.where.at[c->claim_of[k]]));
        }
        b->unmet += defined && !met;
        if (met && defined)
            rows[kept++] = rows[i];
    }
    *count = kept;
    return status;
}

static etch_status compute(etch_sweep_block *b, const etch_sweep_case *c, etch_sweep_values *e,
                           const uint32_t *rows, uint32_t count)
{
    const uint32_t exprs = b->sweep->request.exprs.count;
    if (count == 0)
        return ETCH_OK;
    const etch_status status =
        etch_block_evaluate(b, b->arena, c->exprs.program, c->exprs.inputs, rows, count, e);
    etch_exact *all = ETCH_NEW_ARRAY(b->arena, (size_t)count * exprs, etch_exact);
    for (uint32_t i = 0; status == ETCH_OK && i < count; i++) {
        etch_exact *results = &all[(size_t)i * exprs];
        bool defined = true;
        for (uint32_t k = 0; k < exprs && defined; k++) {
            defined = exact_at(b, e, k, i, &results[k]);
            if (!defined)
                etch_block_refuse(b, rows[i], undefined(b->sweep->request.exprs.at[k]));
        }
        if (defined)
            b->results[rows[i]] = results;
    }
    return status;
}

static etch_status compute_case(etch_sweep_block *b, const etch_sweep_case *c, etch_sweep_values *e,
                                uint32_t *rows, uint32_t count)
{
    if (c->state == ETCH_CASE_REFUSED) {
        for (uint32_t i = 0; i < count; i++)
            etch_block_refuse(b, rows[i], c->reason);
        return ETCH_OK;
    }
    const etch_status status = check_claims(b, c, e, rows, &count);
    return status == ETCH_OK ? compute(b, c, e, rows, count) : status;
}

/* ---- all rows ------------------------------------------------------------------------------------------ */

/* The next row of the same case; 0: none. `first` by slot of the table, `next` and `last` by row + 1. */
typedef struct chains {
    uint32_t *slots, *next, *last, *heads;
    uint32_t head_count;
} chains;

/* Rows by case, each in order; cases as they come first. */
static chains chain_rows(const etch_sweep_block *b)
{
    enum { SLOTS = 4 * ETCH_SWEEP_BLOCK };
    chains all = {ETCH_NEW_ARRAY(b->arena, SLOTS, uint32_t), ETCH_NEW_ARRAY(b->arena, b->count + 1, uint32_t),
                  ETCH_NEW_ARRAY(b->arena, b->count + 1, uint32_t),
                  ETCH_NEW_ARRAY(b->arena, b->count + 1, uint32_t), 0};
    for (uint32_t row = 0; row < b->count; row++) {
        if (!b->passes[row])
            continue;
        uint32_t slot = (uint32_t)(b->cases[row]->key.hash & (SLOTS - 1));
        while (all.slots[slot] && b->cases[all.slots[slot] - 1] != b->cases[row])
            slot = (slot + 1) & (SLOTS - 1);
        const uint32_t head = all.slots[slot];
        if (head) {
            all.next[all.last[head]] = row + 1;
            all.last[head] = row + 1;
        } else {
            all.slots[slot] = all.last[row + 1] = row + 1;
            all.heads[all.head_count++] = row + 1;
        }
    }
    return all;
}

void etch_block_finish(etch_sweep_block *b)
{
    const bool streams = etch_sweep_streams(b->sweep);
    etch_exact *values = ETCH_NEW_ARRAY(b->arena, b->frame->axis_count, etch_exact);
    b->text.arena = b->arena;
    for (uint32_t row = 0; row < b->count; row++) {
        if (!b->results[row])
            continue;
        b->written++;
        for (uint32_t i = 0; streams && i < b->frame->axis_count; i++)
            values[i] = value_at(b, i, row);
        if (streams)
            etch_print_row(b->sweep, b->frame, values, b->results[row], &b->text);
    }
    for (uint32_t i = 0; i < b->tallies.count; i++) {
        const uint32_t row = (uint32_t)b->tallies.at[i].row;
        b->tallies.at[i].row = etch_block_number(b, row);
        b->tallies.at[i].values = etch_block_row(b->arena, b, row);
    }
}

/* The rows of a case whose values have not been looked at yet. */
static etch_status fit_case(etch_sweep_block *b, etch_sweep_case *c, etch_sweep_values *e, uint32_t *rows,
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        b->passes[rows[i]] = false;
    if (c->state == ETCH_CASE_REFUSED)
        for (uint32_t i = 0; i < count; i++)
            etch_block_refuse(b, rows[i], c->reason);
    if (c->state == ETCH_CASE_REFUSED)
        return ETCH_OK;
    const etch_status status = check_musts(b, c, e, rows, &count);
    for (uint32_t i = 0; i < count; i++)
        b->passes[rows[i]] = b->fits[rows[i]] = true;
    if (count > 0 && c->state == ETCH_CASE_FITS)
        ETCH_PUSH(b->arena, &b->wanted, c);
    return status;
}

etch_status etch_block_fit(etch_sweep_block *b)
{
    const chains all = chain_rows(b);
    uint32_t *rows = ETCH_NEW_ARRAY(b->arena, b->count, uint32_t);
    etch_sweep_values e = {0};
    etch_status status = etch_workspace_new(&e.workspace);
    b->wanted.count = 0;
    for (uint32_t h = 0; status == ETCH_OK && h < all.head_count; h++) {
        uint32_t count = 0;
        etch_sweep_case *c = b->cases[all.heads[h] - 1];
        for (uint32_t at = all.heads[h]; at; at = all.next[at])
            if (!b->fits[at - 1])
                rows[count++] = at - 1;
        if (count > 0)
            status = fit_case(b, c, &e, rows, count);
    }
    etch_workspace_free(e.workspace);
    return status;
}

etch_status etch_block_compute(etch_sweep_block *b)
{
    const chains all = chain_rows(b);
    uint32_t *rows = ETCH_NEW_ARRAY(b->arena, b->count, uint32_t);
    etch_sweep_values e = {0};
    etch_status status = etch_workspace_new(&e.workspace);
    b->results = ETCH_NEW_ARRAY(b->arena, b->count, etch_exact *);
    for (uint32_t h = 0; status == ETCH_OK && h < all.head_count; h++) {
        uint32_t count = 0;
        for (uint32_t at = all.heads[h]; at; at = all.next[at])
            rows[count++] = at - 1;
        status = compute_case(b, b->cases[rows[0]], &e, rows, count);
    }
    etch_workspace_free(e.workspace);
    return status;
}
