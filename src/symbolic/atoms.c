/* Atoms: variables, floor, max and 1/(sum), and the rules by which the opaque ones are built. */
#include <string.h>

#include "symbolic/symbolic_int.h"

enum { SYM_BLOCK = 128, MAX_ARGUMENTS = 256, MAX_FLAT_ARGUMENTS = 64, MAX_ROUNDS = 6, FLOOR_ROUNDS = 200 };

/* ---- interning and order ------------------------------------------------------------------------------- */

/* Labels: visible variables below those of sums, below the variables of proofs, below opaque atoms, which are
 * spread out so that new ones find a place between. */
#define INDEX_LABELS ((UINT64_C(1) << 31) - (UINT64_C(2) << 20))
#define BOUND_LABELS ((UINT64_C(1) << 31) - (UINT64_C(1) << 20))
#define PROOF_LABELS (UINT64_C(1) << 31)
#define LABEL_STRIDE (UINT64_C(1) << 32)
#define FIRST_LABEL (UINT64_C(1) << 62) /* of opaque atoms, with room on both sides */

static sym_atom *new_var(etch_sym *sym, const char *name, uint64_t label, int64_t lower)
{
    sym_atom *atom = ETCH_NEW(sym->arena, sym_atom);
    atom->id = sym->atom_count++;
    atom->kind = ETCH_SYM_VAR;
    atom->name = name;
    atom->index = sym->vars.count;
    atom->label = label;
    atom->lower = atom->declared_lower = lower;
    atom->lower_fact = atom->definition_fact = ETCH_SYM_DECLARED;
    for (const char *c = name; c && *c; c++)
        atom->node.hash = sym_mix(atom->node.hash, (unsigned char)*c);
    if (!name)
        atom->node.hash = sym_mix(UINT64_C(0x736c61636b), label);
    ETCH_PUSH(sym->arena, &sym->vars, atom);
    sym_table_add(sym, &sym->atoms, &atom->node);
    atom->self = sym_monomial(sym, sym_mono_of(sym, atom, 1), ETCH_SYM_ONE);
    return atom;
}

sym_atom *sym_atom_new_var(etch_sym *sym, const char *name, int64_t lower)
{
    return new_var(sym, name, sym->vars.count + (name ? 0 : PROOF_LABELS), lower);
}

sym_atom *sym_bound_var(etch_sym *sym, uint32_t level)
{
    while (sym->bound_vars.count < level) {
        sym_atom *atom = new_var(sym, NULL, BOUND_LABELS + sym->bound_vars.count, 0);
        ETCH_PUSH(sym->arena, &sym->bound_vars, atom);
        atom->bound_level = sym->bound_vars.count;
    }
    return sym->bound_vars.at[level - 1];
}

sym_atom *sym_index_var(etch_sym *sym, uint32_t level)
{
    while (sym->index_vars.count <= level) {
        sym_atom *atom = new_var(sym, NULL, INDEX_LABELS + sym->index_vars.count, ETCH_SYM_UNBOUNDED);
        ETCH_PUSH(sym->arena, &sym->index_vars, atom);
        atom->is_index = true;
    }
    return sym->index_vars.at[level];
}

/* Order of opaque atoms by structure. Their arguments hold only atoms that have their labels already. */
static int compare_atoms(const sym_atom *a, const sym_atom *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    for (uint32_t i = 0; i < a->count && i < b->count; i++) {
        int order = sym_compare(a->args[i], b->args[i]);
        if (order != 0)
            return order;
    }
    return a->count < b->count ? -1 : a->count > b->count;
}

/* Opaque atoms stand in blocks, so that a new one moves few. */
struct sym_block {
    uint32_t count;
    sym_atom *at[SYM_BLOCK];
};

static void spread_labels(etch_sym *sym)
{
    uint64_t next = FIRST_LABEL;
    for (uint32_t i = 0; i < sym->opaque.count; i++)
        for (uint32_t k = 0; k < sym->opaque.at[i]->count; k++) {
            sym->opaque.at[i]->at[k]->label = next;
            next += LABEL_STRIDE;
        }
}

/* How many of the blocks begin with an atom that comes before this one. */
static uint32_t blocks_before(const etch_sym *sym, const sym_atom *atom)
{
    uint32_t low = 0, high = sym->opaque.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_atoms(sym->opaque.at[middle]->at[0], atom) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t place_in_block(const struct sym_block *block, const sym_atom *atom)
{
    uint32_t low = 0, high = block->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_atoms(block->at[middle], atom) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Moves the second half of a full block to a new one behind it. */
static void split_block(etch_sym *sym, uint32_t number)
{
    struct sym_block *fresh = ETCH_NEW(sym->arena, struct sym_block), *full = sym->opaque.at[number];
    fresh->count = full->count / 2;
    full->count -= fresh->count;
    memcpy(fresh->at, full->at + full->count, fresh->count * sizeof *fresh->at);
    ETCH_PUSH(sym->arena, &sym->opaque, fresh);
    memmove(sym->opaque.at + number + 2, sym->opaque.at + number + 1,
            (sym->opaque.count - 2 - number) * sizeof *sym->opaque.at);
    sym->opaque.at[number + 1] = fresh;
}

/* The number of the block where an atom belongs, which has room for it. */
static uint32_t block_for(etch_sym *sym, const sym_atom *atom)
{
    if (sym->opaque.count == 0) {
        ETCH_PUSH(sym->arena, &sym->opaque, ETCH_NEW(sym->arena, struct sym_block));
        return 0;
    }
    uint32_t before = blocks_before(sym, atom), number = before > 0 ? before - 1 : 0;
    if (sym->opaque.at[number]->count < SYM_BLOCK)
        return number;
    split_block(sym, number);
    before = blocks_before(sym, atom);
    return before > 0 ? before - 1 : 0;
}

/* The label between those of the neighbours; 0: there is none. */
static uint64_t label_between(const sym_atom *below, const sym_atom *above)
{
    if (!below)
        return above ? above->label - LABEL_STRIDE : FIRST_LABEL;
    if (!above)
        return below->label + LABEL_STRIDE;
    uint64_t room = (above->label - below->label) / 2;
    return room ? below->label + room : 0;
}

/* Puts a new opaque atom in its place in the order. */
static void place(etch_sym *sym, sym_atom *atom)
{
    if (sym->opaque_count == sym->limits.atoms)
        sym_limit_of(sym, "opaque functions", sym->limits.atoms);
    uint32_t number = block_for(sym, atom);
    struct sym_block *block = sym->opaque.at[number];
    uint32_t at = place_in_block(block, atom);
    memmove(block->at + at + 1, block->at + at, (block->count - at) * sizeof *block->at);
    block->at[at] = atom;
    block->count++;
    sym->opaque_count++;
    struct sym_block *next = number + 1 < sym->opaque.count ? sym->opaque.at[number + 1] : NULL;
    const sym_atom *above = at + 1 < block->count ? block->at[at + 1] : next ? next->at[0] : NULL;
    /* what stands first in a block that is not the first would stand in the one before */
    atom->label = label_between(at > 0 ? block->at[at - 1] : NULL, above);
    if (atom->label == 0)
        spread_labels(sym);
}

sym_atom *sym_atom_intern(etch_sym *sym, sym_kind kind, uint32_t count, const etch_expr *args)
{
    uint64_t hash = sym_mix((uint64_t)kind, count);
    uint32_t depth = 0, level = 0;
    for (uint32_t i = 0; i < count; i++) {
        hash = sym_mix(hash, args[i]->node.hash);
        level = sym_sum_level(args[i]) > level ? sym_sum_level(args[i]) : level;
        depth = args[i]->depth > depth ? args[i]->depth : depth;
    }
    uint32_t probe = 0;
    for (sym_node *node; (node = sym_table_next(&sym->atoms, hash, &probe));) {
        sym_atom *atom = (sym_atom *)node;
        if (atom->kind == kind && atom->count == count && memcmp(atom->args, args, count * sizeof *args) == 0)
            return atom;
    }
    if (depth >= sym->limits.depth)
        sym_limit_of(sym, "depth of opaque functions", sym->limits.depth);
    sym_atom *atom = ETCH_NEW(sym->arena, sym_atom);
    etch_expr *kept = ETCH_NEW_ARRAY(sym->arena, count, etch_expr);
    memcpy(kept, args, count * sizeof *args);
    atom->node.hash = hash;
    atom->id = sym->atom_count++;
    atom->kind = kind;
    atom->depth = depth + 1;
    atom->count = count;
    atom->args = kept;
    atom->sum_level = level + (kind == ETCH_SYM_SUM);
    atom->bound = kind == ETCH_SYM_SUM ? sym_bound_var(sym, level + 1) : NULL;
    atom->lower_fact = atom->definition_fact = ETCH_SYM_DECLARED;
    place(sym, atom);
    sym_table_add(sym, &sym->atoms, &atom->node);
    atom->self = sym_monomial(sym, sym_mono_of(sym, atom, 1), ETCH_SYM_ONE);
    return atom;
}

etch_expr sym_recip_atom(etch_sym *sym, etch_expr den)
{
    return sym_atom_intern(sym, ETCH_SYM_RECIP, 1, &den)->self;
}

/* ---- floor --------------------------------------------------------------------------------------------- */

/* Divides the terms of `a` into those that are integers and the others; the integer part of the constant
 * goes to the former. */
static void split_integer_terms(etch_sym *sym, etch_expr a, etch_expr *whole, etch_expr *rest)
{
    sym_terms *in = sym_terms_new(sym), *out = sym_terms_new(sym);
    for (uint32_t i = 0; i < a->count; i++) {
        sym_term term = a->terms[i];
        if (term.mono->count == 0) {
            sym_coef floor = sym_coef_floor(sym, term.coef);
            if (!sym_coef_is_zero(floor))
                sym_terms_push(sym, in, term.mono, floor);
            term.coef = sym_coef_sub(sym, term.coef, floor);
            if (!sym_coef_is_zero(term.coef))
                sym_terms_push(sym, out, term.mono, term.coef);
        } else {
            bool is_integer = sym_term_is_integer(sym, term.mono, term.coef);
            sym_terms_push(sym, is_integer ? in : out, term.mono, term.coef);
        }
    }
    *whole = sym_terms_finish(sym, in);
    *rest = sym_terms_finish(sym, out);
}

static sym_coef constant_term(etch_expr a)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (a->terms[i].mono->count == 0)
            return a->terms[i].coef;
    return ETCH_SYM_ZERO;
}

/* When the other terms are multiples of 1/q, q a number, the constant may be rounded down to one:
 * floor(a/8 + 1/3) = floor(a/8 + 2/8). */
static etch_expr snap_constant(etch_sym *sym, etch_expr a)
{
    sym_coef constant = constant_term(a);
    if (sym_coef_is_zero(constant))
        return a;
    etch_expr others = sym_sub(sym, a, sym_constant(sym, constant)), grid;
    if (!sym_grid(sym, others, &grid) || !sym_is_constant(grid))
        return a;
    sym_coef q = sym_constant_of(grid);
    sym_coef snapped = sym_coef_div(sym, sym_coef_floor(sym, sym_coef_mul(sym, constant, q)), q);
    return sym_add(sym, others, sym_constant(sym, snapped));
}

/* Is coef * mono known to be positive where its inverse has a value? */
static bool positive_term(etch_sym *sym, const sym_mono *mono, sym_coef coef)
{
    if (sym_coef_sign(coef) < 0)
        return false;
    for (uint32_t i = 0; i < mono->count; i++)
        if (!sym_atom_is_positive(sym, mono->at[i].atom, true))
            return false;
    return true;
}

/* Is it 1/n for something n? */
static bool is_all_below(const sym_mono *mono)
{
    bool below = mono->count > 0;
    for (uint32_t i = 0; i < mono->count && below; i++)
        below = mono->at[i].exp < 0;
    return below;
}

/* The same of what stands over an integer: floor(29/(8*n)) = floor(3/n). */
static etch_expr snap_numerator(etch_sym *sym, etch_expr a)
{
    for (uint32_t i = 0; i < a->count && !(a->flags & ETCH_SYM_HAS_RECIP); i++) {
        const sym_mono *over = a->terms[i].mono;
        if (!is_all_below(over) || sym_coef_is_integer(a->terms[i].coef))
            continue;
        const sym_mono *n = sym_mono_pow(sym, over, -1);
        if (!positive_term(sym, n, ETCH_SYM_ONE) || !sym_term_is_integer(sym, n, ETCH_SYM_ONE))
            continue;
        etch_expr above = sym_scale(sym, a, n, ETCH_SYM_ONE), snapped = snap_constant(sym, above);
        if (snapped != above)
            return snap_constant(sym, sym_scale(sym, snapped, over, ETCH_SYM_ONE));
    }
    return snap_constant(sym, a);
}

/* The sign of `a` far out, where variables that were declared earlier outgrow all later ones: an order of
 * expressions that is kept by adding to both sides and by positive factors. */
static int sign_at_infinity(etch_sym *sym, etch_expr a)
{
    return sym_coef_sign(sym_leading_coef(sym_split(sym, a).num));
}

static int sign_without_constant(etch_sym *sym, etch_expr a)
{
    return sign_at_infinity(sym, sym_sub(sym, a, sym_constant(sym, constant_term(a))));
}

/* floor(a) = -floor(-a + 1 - 1/q) when a takes multiples of 1/q only: the argument that makes the sign
 * positive. NULL when it is already or no such q is known. */
static etch_expr reflected(etch_sym *sym, etch_expr a)
{
    etch_expr grid;
    if (sign_without_constant(sym, a) > 0 || !sym_grid(sym, a, &grid))
        return NULL;
    etch_expr other = sym_sub(sym, sym_add_int(sym, sym_neg(sym, a), 1), sym_div(sym, sym->one, grid));
    return sign_without_constant(sym, other) < 0 ? NULL : other;
}

/* floor((floor(x) + j)/n) = floor((x + j)/n) for integers j and n > 0: the argument without the inner
 * floor, or NULL. */
static etch_expr without_inner_floor(etch_sym *sym, etch_expr a)
{
    if (a->flags & ETCH_SYM_HAS_RECIP)
        return NULL;
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = a->terms[i].mono;
        for (uint32_t j = 0; j < mono->count; j++) {
            sym_atom *atom = mono->at[j].atom;
            if (atom->kind != ETCH_SYM_FLOOR || mono->at[j].exp != 1)
                continue;
            const sym_mono *n = sym_mono_div(sym, sym_mono_of(sym, atom, 1), mono);
            sym_coef n_coef = sym_coef_inv(sym, a->terms[i].coef);
            if (!positive_term(sym, n, n_coef) || !sym_term_is_integer(sym, n, n_coef))
                continue;
            etch_expr inner = sym_scale(sym, a, n, n_coef);
            if (sym_is_integer(sym, sym_sub(sym, inner, atom->self))) {
                etch_expr argument = sym_add(sym, sym_sub(sym, inner, atom->self), atom->args[0]);
                return sym_div(sym, argument, sym_monomial(sym, n, n_coef));
            }
        }
    }
    return NULL;
}

/* Each rule makes the argument simpler; `rounds` bounds how often, whatever the argument. */
static etch_expr floor_of(etch_sym *sym, etch_expr a, uint32_t rounds)
{
    etch_expr whole, rest, other;
    split_integer_terms(sym, a, &whole, &rest);
    if (!sym_is_constant(rest))
        rest = snap_numerator(sym, rest);
    if (sym_is_constant(rest))
        return whole; /* between 0 and 1 */
    if (rounds > 0 && (other = reflected(sym, rest)))
        return sym_sub(sym, whole, floor_of(sym, other, rounds - 1));
    if (rounds > 0 && (other = without_inner_floor(sym, rest)))
        return sym_add(sym, whole, floor_of(sym, other, rounds - 1));
    if (sym_is_nonnegative(sym, rest)) {
        if (sym_is_positive(sym, sym_sub(sym, sym->one, rest)))
            return whole;
    } else if (sym_is_positive(sym, sym_neg(sym, rest)) &&
               sym_is_nonnegative(sym, sym_add_int(sym, rest, 1))) {
        return sym_add_int(sym, whole, -1);
    }
    return sym_add(sym, whole, sym_atom_intern(sym, ETCH_SYM_FLOOR, 1, &rest)->self);
}

etch_expr sym_floor(etch_sym *sym, etch_expr a)
{
    if (sym_is_constant(a))
        return sym_constant(sym, sym_coef_floor(sym, sym_constant_of(a)));
    etch_expr known = sym_memo_get(&sym->floors, a);
    if (known)
        return known;
    etch_expr result = floor_of(sym, a, FLOOR_ROUNDS);
    sym_memo_put(sym, &sym->floors, a, result);
    return result;
}

/* ---- max ----------------------------------------------------------------------------------------------- */

/* Inserts x into a list in the order of signs at infinity, unless it is there. */
static void insert_argument(etch_sym *sym, etch_expr *list, uint32_t *count, etch_expr x)
{
    uint32_t at = *count;
    for (; at > 0; at--) {
        int sign = sign_at_infinity(sym, sym_sub(sym, list[at - 1], x));
        if (sign == 0)
            return;
        if (sign < 0)
            break;
    }
    if (*count == MAX_ARGUMENTS)
        sym_limit(sym);
    memmove(list + at + 1, list + at, (*count - at) * sizeof *list);
    list[at] = x;
    ++*count;
}

/* Is a variable of this power, wherever the power has a value, not negative? */
static bool nonnegative_variable(const sym_atom *atom)
{
    return atom->kind == ETCH_SYM_VAR && (atom->is_real || atom->lower >= 0);
}

/* The max of a monomial m * max{..} with m never negative: such a term can be taken apart. NULL: it is not
 * of that form. */
static sym_atom *flat_max(const sym_mono *mono)
{
    sym_atom *found = NULL;
    for (uint32_t i = 0; i < mono->count; i++) {
        sym_atom *atom = mono->at[i].atom;
        if (atom->kind == ETCH_SYM_MAX && mono->at[i].exp == 1 && !found)
            found = atom;
        else if (!nonnegative_variable(atom))
            return NULL;
    }
    return found;
}

/* The part of all terms c * m * max{..} that every argument has: c is the coefficient nearest to 0 when
 * all are of one sign. */
static etch_expr common_max_terms(etch_sym *sym, const etch_expr *list, uint32_t count)
{
    sym_terms *common = sym_terms_new(sym);
    for (uint32_t j = 0; (list[0]->flags & ETCH_SYM_HAS_OPAQUE) && j < list[0]->count; j++) {
        const sym_mono *mono = list[0]->terms[j].mono;
        sym_coef shared = list[0]->terms[j].coef;
        int sign = flat_max(mono) ? sym_coef_sign(shared) : 0;
        for (uint32_t k = 1; k < count && sign != 0; k++) {
            sym_coef c = sym_coefficient(list[k], mono);
            if (sym_coef_sign(c) != sign)
                sign = 0;
            else if (sym_coef_compare(c, shared) * sign < 0)
                shared = c;
        }
        if (sign != 0)
            sym_terms_push(sym, common, mono, shared);
    }
    return sym_terms_finish(sym, common);
}

static uint32_t flat_max_terms(etch_expr a)
{
    uint32_t count = 0;
    for (uint32_t i = 0; (a->flags & ETCH_SYM_HAS_OPAQUE) && i < a->count; i++)
        count += flat_max(a->terms[i].mono) != NULL;
    return count;
}

/* A max that `a` can be taken apart by; NULL when there is none, or one to be subtracted. */
static sym_atom *some_flat_max(etch_expr a)
{
    sym_atom *found = NULL;
    for (uint32_t i = 0; (a->flags & ETCH_SYM_HAS_OPAQUE) && i < a->count; i++) {
        sym_atom *atom = flat_max(a->terms[i].mono);
        if (atom && sym_coef_sign(a->terms[i].coef) < 0)
            return NULL;
        found = found ? found : atom;
    }
    return found;
}

/* a = factor * atom + rest for those terms that can be taken apart. */
static void take_apart(etch_sym *sym, etch_expr a, sym_atom *atom, etch_expr *factor, etch_expr *rest)
{
    const sym_mono *power = sym_mono_of(sym, atom, 1);
    sym_terms *in = sym_terms_new(sym), *out = sym_terms_new(sym);
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = a->terms[i].mono;
        if (flat_max(mono) == atom)
            sym_terms_push(sym, in, sym_mono_div(sym, mono, power), a->terms[i].coef);
        else
            sym_terms_push(sym, out, mono, a->terms[i].coef);
    }
    *factor = sym_terms_finish(sym, in);
    *rest = sym_terms_finish(sym, out);
}

/* How many arguments x makes once every max in it is taken apart, at most `limit`. */
static uint32_t flat_count(etch_sym *sym, etch_expr x, uint32_t limit)
{
    etch_expr factor;
    uint32_t count = 1;
    for (sym_atom *atom; count < limit && (atom = some_flat_max(x));) {
        take_apart(sym, x, atom, &factor, &x);
        count *= atom->count;
    }
    return count < limit ? count : limit;
}

/* Adds r + c*m*k for every argument k of every max in x = r + c*m*max{k..}; all c > 0. */
static void add_flattened(etch_sym *sym, etch_expr *list, uint32_t *count, etch_expr x)
{
    sym_atom *atom = some_flat_max(x);
    if (!atom) {
        insert_argument(sym, list, count, x);
        return;
    }
    etch_expr factor, rest;
    take_apart(sym, x, atom, &factor, &rest);
    for (uint32_t i = 0; i < atom->count; i++)
        add_flattened(sym, list, count, sym_add(sym, rest, sym_mul(sym, factor, atom->args[i])));
}

/* Drops arguments that are never greater than another that stays; of equal ones the first stays. */
static void drop_dominated(etch_sym *sym, etch_expr *list, uint32_t *count)
{
    sym_scratch_mark mark = sym_scratch_top(sym);
    bool *dropped = sym_scratch_take(sym, *count, sizeof *dropped);
    for (uint32_t i = 0; i < *count; i++)
        for (uint32_t j = 0; j < *count && !dropped[i]; j++)
            if (j != i && !dropped[j] && sym_is_nonnegative(sym, sym_sub(sym, list[j], list[i])))
                dropped[i] = j < i || !sym_is_nonnegative(sym, sym_sub(sym, list[i], list[j]));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (!dropped[i])
            list[kept++] = list[i];
    *count = kept;
    sym_scratch_release(sym, mark);
}

/* The monomial that can be taken out of max: common to all arguments, never negative. */
static const sym_mono *common_factor(etch_sym *sym, const etch_expr *list, uint32_t count)
{
    const sym_mono *common = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (list[i]->flags & ETCH_SYM_HAS_RECIP)
            return sym->unit;
        const sym_mono *content = sym_mono_content(sym, list[i]);
        if (list[i]->count)
            common = common ? sym_mono_meet(sym, common, content, -1) : content;
    }
    const sym_mono *factor = sym->unit;
    for (uint32_t i = 0; common && i < common->count; i++)
        if (nonnegative_variable(common->at[i].atom))
            factor = sym_mono_mul(sym, factor, sym_mono_of(sym, common->at[i].atom, common->at[i].exp));
    return factor;
}

/* Takes the list of arguments in order apart where a max is added in one; not when that makes too many. */
static void flatten(etch_sym *sym, etch_expr *list, uint32_t *count)
{
    uint32_t total = 0, flattened = 0;
    for (uint32_t i = 0; i < *count && total <= MAX_FLAT_ARGUMENTS; i++)
        total += flat_count(sym, list[i], MAX_FLAT_ARGUMENTS + 1);
    if (*count == 1 || total == *count || total > MAX_FLAT_ARGUMENTS)
        return;
    etch_expr *flat = sym_scratch_take(sym, MAX_ARGUMENTS, sizeof *flat);
    for (uint32_t i = 0; i < *count; i++)
        add_flattened(sym, flat, &flattened, list[i]);
    drop_dominated(sym, flat, &flattened);
    memcpy(list, flat, flattened * sizeof *list);
    *count = flattened;
}

/* Moves the argument that the others are measured from to the front: the least of those with the fewest
 * max inside. */
static void put_base_first(etch_expr *list, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++)
        if (flat_max_terms(list[i]) < flat_max_terms(list[best]))
            best = i;
    etch_expr base = list[best];
    memmove(list + 1, list, best * sizeof *list);
    list[0] = base;
}

static etch_expr max_of(etch_sym *sym, uint32_t count, const etch_expr *args, uint32_t rounds);

/* max of the list as base + g * max{0, ..}. Unless the list is that already, the max on the right goes
 * through the rules again: so an atom's arguments are ones that no rule changes. */
static etch_expr assemble_max(etch_sym *sym, etch_expr *list, uint32_t count, uint32_t rounds)
{
    put_base_first(list, count);
    etch_expr base = list[0];
    sym_coef content = ETCH_SYM_ZERO;
    for (uint32_t i = 0; i < count; i++) {
        list[i] = sym_sub(sym, list[i], base);
        content = sym_coef_gcd(sym, content, sym_content(sym, list[i]));
    }
    const sym_mono *factor = common_factor(sym, list, count), *inverse = sym_mono_pow(sym, factor, -1);
    bool settled = base->count == 0 && factor->count == 0 && sym_coef_is_one(content);
    if (rounds == 0 || settled)
        return sym_add(sym, base, sym_atom_intern(sym, ETCH_SYM_MAX, count, list)->self);
    for (uint32_t i = 0; i < count; i++)
        list[i] = sym_scale(sym, list[i], inverse, sym_coef_inv(sym, content));
    etch_expr max = max_of(sym, count, list, rounds - 1);
    return sym_add(sym, base, sym_mul(sym, max, sym_monomial(sym, factor, content)));
}

/* Are all of `args` in the list? */
static bool unchanged(uint32_t count, const etch_expr *args, const etch_expr *list, uint32_t list_count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = 0;
        while (at < list_count && list[at] != args[i])
            at++;
        if (at == list_count)
            return false;
    }
    return count == list_count;
}

static etch_expr max_of(etch_sym *sym, uint32_t count, const etch_expr *args, uint32_t rounds)
{
    sym_scratch_mark mark = sym_scratch_top(sym);
    etch_expr *list = sym_scratch_take(sym, MAX_ARGUMENTS, sizeof *list), result;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        insert_argument(sym, list, &kept, args[i]);
    etch_expr common = common_max_terms(sym, list, kept);
    for (uint32_t i = 0; common->count && i < kept; i++)
        list[i] = sym_sub(sym, list[i], common);
    drop_dominated(sym, list, &kept);
    flatten(sym, list, &kept);
    if (kept == 1)
        result = list[0];
    else if (rounds == 0 || unchanged(count, args, list, kept))
        result = assemble_max(sym, list, kept, rounds);
    else
        result = max_of(sym, kept, list, rounds - 1);
    sym_scratch_release(sym, mark);
    return sym_add(sym, common, result);
}

etch_expr sym_max(etch_sym *sym, uint32_t count, const etch_expr *args)
{
    return max_of(sym, count, args, MAX_ROUNDS);
}

etch_expr sym_min(etch_sym *sym, uint32_t count, const etch_expr *args)
{
    sym_scratch_mark mark = sym_scratch_top(sym);
    etch_expr *opposite = sym_scratch_take(sym, count, sizeof *opposite);
    for (uint32_t i = 0; i < count; i++)
        opposite[i] = sym_neg(sym, args[i]);
    etch_expr result = sym_neg(sym, sym_max(sym, count, opposite));
    sym_scratch_release(sym, mark);
    return result;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

etch_expr etch_floor(etch_sym *sym, etch_expr a)
{
    a = sym_refresh(sym, a);
    return a ? sym_floor(sym, a) : NULL;
}

etch_expr etch_ceil(etch_sym *sym, etch_expr a)
{
    a = sym_refresh(sym, a);
    etch_expr ceiling = a ? sym_memo_get(&sym->ceilings, a) : NULL;
    if (a && !ceiling) {
        ceiling = sym_neg(sym, sym_floor(sym, sym_neg(sym, a)));
        sym_memo_put(sym, &sym->ceilings, a, ceiling);
    }
    return ceiling;
}

etch_expr etch_floor_div(etch_sym *sym, etch_expr a, etch_expr b)
{
    return etch_floor(sym, etch_div(sym, a, b));
}

etch_expr etch_mod(etch_sym *sym, etch_expr a, etch_expr b)
{
    return etch_sub(sym, a, etch_mul(sym, b, etch_floor_div(sym, a, b)));
}

etch_expr etch_max(etch_sym *sym, etch_expr a, etch_expr b)
{
    etch_expr args[] = {sym_refresh(sym, a), sym_refresh(sym, b)};
    return args[0] && args[1] ? sym_max(sym, 2, args) : NULL;
}

etch_expr etch_min(etch_sym *sym, etch_expr a, etch_expr b)
{
    etch_expr args[] = {sym_refresh(sym, a), sym_refresh(sym, b)};
    return args[0] && args[1] ? sym_min(sym, 2, args) : NULL;
}

etch_expr etch_abs(etch_sym *sym, etch_expr a)
{
    return etch_max(sym, a, etch_neg(sym, a));
}

/* For an integer: max(a + 1, 0) - max(a, 0). */
etch_expr etch_iverson(etch_sym *sym, etch_expr a)
{
    a = etch_floor(sym, a);
    etch_expr zero = sym->zero, next = a ? sym_add_int(sym, a, 1) : NULL;
    return etch_sub(sym, etch_max(sym, next, zero), etch_max(sym, a, zero));
}

etch_expr etch_select(etch_sym *sym, etch_expr a, etch_expr then, etch_expr otherwise)
{
    return etch_add(sym, otherwise, etch_mul(sym, etch_iverson(sym, a), etch_sub(sym, then, otherwise)));
}
