/* Expressions as a list of operations on integers.
 *
 * An expression is brought over one denominator: a product of powers that divides the whole at the end, so
 * that a division leaves no remainder where the value is an integer. What remains is a sum of products of
 * powers with integer coefficients, and is written in the manner of Horner: the factors that all terms share
 * are taken out; then the factor that most terms have is taken out of these, and so on. floor(R) is one floor
 * division.
 *
 * Equal operations on equal operands are one operation, whichever expression they come from.
 *
 * A sum that did not close becomes a loop. Only what depends on its index is computed within. */
#include <stdlib.h>
#include <string.h>

#include "symbolic/program/program_int.h"

enum { MAX_INSTRUCTIONS = 1000000, MAX_LOOPS = 64, HORNER_DEPTH = 64, HORNER_BUDGET = 20000000 };
enum { LONG_DENOMINATOR = 1000000 /* factors of a denominator, times terms */ };

/* The power of an atom. Divisors have negative exponents until they are taken out. */
typedef struct power {
    /* id */
    uint32_t atom;
    int32_t exp;
} power;

typedef struct term {
    /* an integer */
    sym_coef coef;
    /* by increasing atom, exponents not 0 */
    power *powers;
    uint32_t count;
} term;

/* Where an operation belongs. */
typedef struct scope {
    /* on whose indices it depends, as bits: the i-th from outside */
    uint64_t loops;
    /* the innermost of them, by its number; 0: none */
    uint32_t owner;
} scope;

typedef struct compiler {
    etch_arena *arena;
    /* a context for coefficients */
    etch_sym *numbers;
    etch_operations *out;
    /* instructions by hash, from 1 */
    uint32_t *table;
    uint32_t capacity;
    /* by atom: the instruction that has its value, from 1 */
    uint32_t *node_of;
    /* by atom: 0, but while terms are counted */
    uint32_t *uses;
    /* room for the terms of one expression */
    term *spare;
    uint32_t spare_capacity;
    /* by instruction */
    ETCH_VEC(scope) scopes;
    /* atoms in `node_of`, in the order in which they came there */
    ETCH_VEC(const sym_atom *) known;
    /* the numbers of those that are being compiled */
    uint32_t loops[MAX_LOOPS], loop_depth;
    uint32_t loop_count;
    /* powers that may still be looked at in search of common factors */
    int64_t budget;
} compiler;

static uint32_t emit(compiler *c, const etch_expr e);

/* ---- operations, each once ----------------------------------------------------------------------------- */

static uint64_t hash_of(const compiler *c, const etch_instruction *i)
{
    if (i->op == ETCH_OP_CONSTANT)
        return sym_mix(ETCH_OP_CONSTANT, sym_coef_hash(c->out->constants.at[i->a]));
    return sym_mix(sym_mix(i->op, i->a), i->b);
}

static bool same_instruction(const compiler *c, const etch_instruction *x, const etch_instruction *y)
{
    if (x->op == ETCH_OP_CONSTANT && y->op == ETCH_OP_CONSTANT)
        return sym_coef_equal(c->out->constants.at[x->a], c->out->constants.at[y->a]);
    return x->op == y->op && x->a == y->a && x->b == y->b;
}

/* The slot of an equal instruction, or the free one. */
static uint32_t *slot_of(compiler *c, const etch_instruction *i)
{
    uint32_t at = (uint32_t)(hash_of(c, i) >> 20) & (c->capacity - 1);
    while (c->table[at] && !same_instruction(c, &c->out->code.at[c->table[at] - 1], i))
        at = (at + 1) & (c->capacity - 1);
    return &c->table[at];
}

static void grow_table(compiler *c)
{
    c->capacity = c->capacity ? c->capacity * 2 : 512;
    c->table = ETCH_NEW_ARRAY(c->arena, c->capacity, uint32_t);
    for (uint32_t i = 0; i < c->out->code.count; i++)
        *slot_of(c, &c->out->code.at[i]) = i + 1;
}

/* The scope of what depends on the indices of these loops, which are being compiled. */
static scope scope_of(const compiler *c, uint64_t loops)
{
    return (scope){loops, loops ? c->loops[63 - __builtin_clzll(loops)] : 0};
}

static uint32_t push(compiler *c, etch_instruction next, scope where)
{
    if (c->out->code.count == MAX_INSTRUCTIONS)
        etch_trap(etch_arena_mem(c->arena), ETCH_ELIMIT);
    ETCH_PUSH(c->arena, &c->out->code, next);
    ETCH_PUSH(c->arena, &c->scopes, where);
    return c->out->code.count - 1;
}

static uint32_t instruct(compiler *c, etch_program_op op, uint32_t a, uint32_t b)
{
    bool commutes = op == ETCH_OP_ADD || op == ETCH_OP_MUL || op == ETCH_OP_MAX;
    etch_instruction next = {.op = op, .a = commutes && a > b ? b : a, .b = commutes && a > b ? a : b};
    if (c->out->code.count >= c->capacity / 4 * 3)
        grow_table(c);
    uint32_t *slot = slot_of(c, &next);
    if (*slot)
        return *slot - 1;
    uint64_t loops = op_has_operands(op) ? c->scopes.at[a].loops : 0;
    loops |= op_is_binary(op) ? c->scopes.at[b].loops : 0;
    *slot = push(c, next, scope_of(c, loops)) + 1;
    return *slot - 1;
}

static uint32_t constant(compiler *c, sym_coef value)
{
    uint32_t index = c->out->constants.count, before = c->out->code.count;
    ETCH_PUSH(c->arena, &c->out->constants, value);
    uint32_t node = instruct(c, ETCH_OP_CONSTANT, index, 0);
    if (c->out->code.count == before)
        c->out->constants.count--; /* it was there */
    return node;
}

static bool is_constant(const compiler *c, uint32_t node, sym_coef value)
{
    const etch_instruction *i = &c->out->code.at[node];
    return i->op == ETCH_OP_CONSTANT && sym_coef_equal(c->out->constants.at[i->a], value);
}

static uint32_t product(compiler *c, uint32_t a, uint32_t b)
{
    if (is_constant(c, a, ETCH_SYM_ONE))
        return b;
    return is_constant(c, b, ETCH_SYM_ONE) ? a : instruct(c, ETCH_OP_MUL, a, b);
}

/* ---- sums of products ---------------------------------------------------------------------------------- */

static uint32_t powers_product(compiler *c, const power *powers, uint32_t count)
{
    uint32_t result = constant(c, ETCH_SYM_ONE);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t base = c->node_of[powers[i].atom] - 1, exp = (uint32_t)powers[i].exp;
        uint32_t factor = exp == 1   ? base
                          : exp == 2 ? instruct(c, ETCH_OP_MUL, base, base)
                                     : instruct(c, ETCH_OP_POW, base, exp);
        result = product(c, result, factor);
    }
    return result;
}

/* |coef| * powers */
static uint32_t term_node(compiler *c, const term *t)
{
    uint32_t powers = powers_product(c, t->powers, t->count);
    return product(c, powers, constant(c, sym_coef_abs(c->numbers, t->coef)));
}

/* A sum on its way: a value, or none yet. */
typedef struct running_sum {
    bool any;
    uint32_t node;
} running_sum;

static void add_node(compiler *c, running_sum *sum, uint32_t node, bool negative)
{
    if (sum->any)
        sum->node = instruct(c, negative ? ETCH_OP_SUB : ETCH_OP_ADD, sum->node, node);
    else
        sum->node = negative ? instruct(c, ETCH_OP_SUB, constant(c, ETCH_SYM_ZERO), node) : node;
    sum->any = true;
}

static uint32_t plain_sum(compiler *c, const term *terms, uint32_t count)
{
    running_sum sum = {0};
    for (int negative = 0; negative <= 1; negative++)
        for (uint32_t i = 0; i < count; i++)
            if ((sym_coef_sign(terms[i].coef) < 0) == negative)
                add_node(c, &sum, term_node(c, &terms[i]), negative);
    return sum.node;
}

static int32_t exponent_of(const term *t, uint32_t atom)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (t->powers[i].atom == atom)
            return t->powers[i].exp;
    return 0;
}

/* Removes the powers from every term. */
static void divide_terms(term *terms, uint32_t count, const power *by, uint32_t by_count)
{
    for (uint32_t i = 0; i < count; i++) {
        term *t = &terms[i];
        uint32_t kept = 0, at = 0;
        for (uint32_t k = 0; k < t->count; k++) {
            while (at < by_count && by[at].atom < t->powers[k].atom)
                at++;
            power p = t->powers[k];
            if (at < by_count && by[at].atom == p.atom)
                p.exp -= by[at].exp;
            if (p.exp != 0)
                t->powers[kept++] = p;
        }
        t->count = kept;
    }
}

/* The powers that all terms share. */
static uint32_t common_powers(compiler *c, const term *terms, uint32_t count, power *common)
{
    uint32_t found = 0;
    for (uint32_t k = 0; k < terms[0].count; k++) {
        power p = terms[0].powers[k];
        for (uint32_t i = 1; p.exp != 0 && i < count; i++) {
            int32_t exp = exponent_of(&terms[i], p.atom);
            c->budget -= terms[i].count;
            p.exp = exp < p.exp ? exp : p.exp;
        }
        if (p.exp != 0)
            common[found++] = p;
    }
    return found;
}

/* The atom that is in most terms, in two at least. The first of equals. */
static bool most_used(compiler *c, const term *terms, uint32_t count, uint32_t *best)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < terms[i].count; k++)
            c->uses[terms[i].powers[k].atom]++;
    uint32_t most = 1;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < terms[i].count; k++) {
            uint32_t atom = terms[i].powers[k].atom;
            if (c->uses[atom] > most) {
                most = c->uses[atom];
                *best = atom;
            }
            c->uses[atom] = 0;
            c->budget -= 2;
        }
    return most > 1;
}

/* Moves the terms that have the atom to the front, keeping the order within both parts. */
static uint32_t bring_forward(compiler *c, term *terms, uint32_t count, uint32_t atom)
{
    uint32_t front = 0, others = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (exponent_of(&terms[i], atom) != 0)
            terms[front++] = terms[i];
        else
            c->spare[others++] = terms[i];
    }
    memcpy(terms + front, c->spare, others * sizeof *terms);
    return front;
}

static uint32_t sum_node(compiler *c, term *terms, uint32_t count, int depth);

/* The sum of at least two terms without a factor in common. Uses up the terms. */
static uint32_t mixed_sum(compiler *c, term *terms, uint32_t count, int depth)
{
    running_sum sum = {0};
    uint32_t atom;
    while (count > 1 && c->budget > 0 && most_used(c, terms, count, &atom)) {
        uint32_t front = bring_forward(c, terms, count, atom);
        add_node(c, &sum, sum_node(c, terms, front, depth + 1), false);
        terms += front;
        count -= front;
    }
    for (int negative = 0; negative <= 1; negative++)
        for (uint32_t i = 0; i < count; i++)
            if ((sym_coef_sign(terms[i].coef) < 0) == negative)
                add_node(c, &sum, term_node(c, &terms[i]), negative);
    return sum.node;
}

/* The sum of at least one term. Uses up the terms. */
static uint32_t sum_node(compiler *c, term *terms, uint32_t count, int depth)
{
    if (depth == HORNER_DEPTH || c->budget <= 0 || count == 1)
        return plain_sum(c, terms, count);
    power *common = ETCH_NEW_ARRAY(c->arena, terms[0].count, power);
    uint32_t common_count = common_powers(c, terms, count, common);
    divide_terms(terms, count, common, common_count);
    return product(c, powers_product(c, common, common_count), mixed_sum(c, terms, count, depth));
}

/* ---- expressions --------------------------------------------------------------------------------------- */

static int by_atom(const void *a, const void *b)
{
    uint32_t x = ((const power *)a)->atom, y = ((const power *)b)->atom;
    return x < y ? -1 : x > y;
}

/* Terms of `e` with integer coefficients: those of e times the denominator that is returned. */
static sym_coef integer_terms(compiler *c, etch_expr e, term *terms)
{
    sym_coef common = ETCH_SYM_ONE;
    for (uint32_t i = 0; i < e->count; i++) {
        sym_coef den = sym_coef_denominator(c->numbers, e->terms[i].coef);
        if (!sym_coef_is_one(den))
            common = sym_coef_mul(c->numbers, common,
                                  sym_coef_div(c->numbers, den, sym_coef_gcd(c->numbers, common, den)));
    }
    for (uint32_t i = 0; i < e->count; i++) {
        const sym_mono *mono = e->terms[i].mono;
        term *t = &terms[i];
        t->coef = sym_coef_mul(c->numbers, e->terms[i].coef, common);
        t->powers = ETCH_NEW_ARRAY(c->arena, mono->count, power);
        t->count = mono->count;
        for (uint32_t k = 0; k < mono->count; k++) {
            const sym_atom *atom = mono->at[k].atom;
            /* 1/(sum) stands for its sum, below */
            int32_t exp = atom->kind == ETCH_SYM_RECIP ? -mono->at[k].exp : mono->at[k].exp;
            t->powers[k] = (power){atom->id, exp};
        }
        if (t->count > 1)
            qsort(t->powers, t->count, sizeof *t->powers, by_atom);
    }
    return common;
}

/* The powers by which all terms have to be multiplied so that none has a negative exponent; by increasing
 * atom. */
static term missing_powers(compiler *c, const term *terms, uint32_t count)
{
    ETCH_VEC(power) missing = {0};
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < terms[i].count; k++) {
            power p = {terms[i].powers[k].atom, -terms[i].powers[k].exp};
            uint32_t *place = &c->uses[p.atom]; /* in `missing`, from 1 */
            if (p.exp > 0 && *place == 0) {
                ETCH_PUSH(c->arena, &missing, p);
                *place = missing.count;
            } else if (p.exp > 0 && p.exp > missing.at[*place - 1].exp) {
                missing.at[*place - 1].exp = p.exp;
            }
        }
    for (uint32_t i = 0; i < missing.count; i++)
        c->uses[missing.at[i].atom] = 0;
    if (missing.count > 1)
        qsort(missing.at, missing.count, sizeof *missing.at, by_atom);
    return (term){ETCH_SYM_ONE, missing.at, missing.count};
}

/* t * by */
static void multiply_term(compiler *c, term *t, const term *by)
{
    power *powers = ETCH_NEW_ARRAY(c->arena, t->count + by->count, power);
    uint32_t count = 0, i = 0, k = 0;
    while (i < t->count || k < by->count) {
        bool left = i < t->count && (k == by->count || t->powers[i].atom <= by->powers[k].atom);
        bool right = k < by->count && (i == t->count || by->powers[k].atom <= t->powers[i].atom);
        power p = {left ? t->powers[i].atom : by->powers[k].atom, 0};
        int64_t exp = (int64_t)(left ? t->powers[i++].exp : 0) + (right ? by->powers[k++].exp : 0);
        if (exp > INT32_MAX)
            etch_trap(etch_arena_mem(c->arena), ETCH_ELIMIT);
        p.exp = (int32_t)exp;
        if (p.exp != 0)
            powers[count++] = p;
    }
    t->powers = powers;
    t->count = count;
}

/* The sum of terms that are divided one by one: where one denominator for all would be too long. */
static uint32_t sum_of_quotients(compiler *c, const term *terms, uint32_t count)
{
    running_sum sum = {0};
    for (uint32_t i = 0; i < count; i++) {
        const term *t = &terms[i];
        term parts[2] = {{t->coef, ETCH_NEW_ARRAY(c->arena, t->count, power), 0},
                         {ETCH_SYM_ONE, ETCH_NEW_ARRAY(c->arena, t->count, power), 0}};
        for (uint32_t k = 0; k < t->count; k++) {
            int32_t exp = t->powers[k].exp;
            term *part = &parts[exp < 0];
            part->powers[part->count++] = (power){t->powers[k].atom, exp < 0 ? -exp : exp};
        }
        uint32_t num = term_node(c, &parts[0]), den = term_node(c, &parts[1]);
        uint32_t node = is_constant(c, den, ETCH_SYM_ONE) ? num : instruct(c, ETCH_OP_DIV, num, den);
        add_node(c, &sum, node, sym_coef_sign(t->coef) < 0);
    }
    return sum.node;
}

/* `e` as an integer over an integer: so far as atoms are integers. */
static uint32_t fraction_node(compiler *c, etch_expr e, etch_program_op division)
{
    term *terms = ETCH_NEW_ARRAY(c->arena, e->count, term);
    sym_coef common = integer_terms(c, e, terms);
    term missing = missing_powers(c, terms, e->count);
    uint32_t num, den = constant(c, common);
    if ((uint64_t)e->count * missing.count > LONG_DENOMINATOR) {
        num = sum_of_quotients(c, terms, e->count);
    } else {
        for (uint32_t i = 0; i < e->count; i++)
            multiply_term(c, &terms[i], &missing);
        den = product(c, powers_product(c, missing.powers, missing.count), den);
        num = sum_node(c, terms, e->count, 0);
    }
    return division == ETCH_OP_DIV && is_constant(c, den, ETCH_SYM_ONE) ? num
                                                                        : instruct(c, division, num, den);
}

static uint32_t max_node(compiler *c, const sym_atom *atom)
{
    uint32_t result = emit(c, atom->args[0]);
    for (uint32_t i = 1; i < atom->count; i++)
        result = instruct(c, ETCH_OP_MAX, result, emit(c, atom->args[i]));
    return result;
}

/* Forgets the atoms that were met from `from` on and depend on the index of loop `depth`. */
static void forget_atoms(compiler *c, uint32_t from, uint32_t depth)
{
    uint32_t kept = from;
    for (uint32_t i = from; i < c->known.count; i++) {
        const sym_atom *atom = c->known.at[i];
        if (c->scopes.at[c->node_of[atom->id] - 1].loops >> depth & 1)
            c->node_of[atom->id] = 0;
        else
            c->known.at[kept++] = atom;
    }
    c->known.count = kept;
}

/* Two sums that are equal are one atom: loops need no look at those that were made before. */
static uint32_t loop_node(compiler *c, const sym_atom *sum)
{
    uint32_t count = emit(c, sum->args[0]), depth = c->loop_depth, known = c->known.count;
    if (depth == MAX_LOOPS)
        etch_trap(etch_arena_mem(c->arena), ETCH_ELIMIT);
    c->loops[c->loop_depth++] = ++c->loop_count;
    uint64_t own = (uint64_t)1 << depth;
    uint32_t loop = push(c, (etch_instruction){.op = ETCH_OP_LOOP, .a = count}, scope_of(c, own));
    c->node_of[sum->bound->id] = loop + 1;
    uint32_t value = emit(c, sum->args[1]);
    c->node_of[sum->bound->id] = 0;
    forget_atoms(c, known, depth);
    c->loop_depth--;
    uint64_t loops = (c->scopes.at[count].loops | c->scopes.at[value].loops) & ~own;
    return push(c, (etch_instruction){.op = ETCH_OP_SUM, .a = value, .b = loop}, scope_of(c, loops));
}

static void emit_atoms(compiler *c, etch_expr e);

static uint32_t atom_node(compiler *c, const sym_atom *atom)
{
    switch (atom->kind) {
    case ETCH_SYM_VAR:
        return instruct(c, ETCH_OP_LOAD, atom->index, 0);
    case ETCH_SYM_FLOOR:
        emit_atoms(c, atom->args[0]);
        return fraction_node(c, atom->args[0], ETCH_OP_FLOOR_DIV);
    case ETCH_SYM_MAX:
        return max_node(c, atom);
    case ETCH_SYM_SUM:
        return loop_node(c, atom);
    case ETCH_SYM_POW2:
        return instruct(c, ETCH_OP_POW2, emit(c, atom->args[0]), 0);
    case ETCH_SYM_RECIP:
        return emit(c, atom->args[0]);
    ETCH_SYM_SHOWN_CASES:
        break;
    }
    etch_trap(etch_arena_mem(c->arena), ETCH_EINTERNAL);
}

/* Atoms come before the expression: what refers to them finds them in `node_of`. */
static void emit_atoms(compiler *c, etch_expr e)
{
    for (uint32_t i = 0; i < e->count; i++)
        for (uint32_t k = 0; k < e->terms[i].mono->count; k++) {
            const sym_atom *atom = e->terms[i].mono->at[k].atom;
            if (c->node_of[atom->id] == 0) {
                uint32_t node = atom_node(c, atom);
                c->node_of[atom->id] = node + 1;
                ETCH_PUSH(c->arena, &c->known, atom);
            }
        }
    if (e->count > c->spare_capacity) {
        c->spare_capacity = e->count;
        c->spare = ETCH_NEW_ARRAY(c->arena, e->count, term);
    }
}

/* The instruction that has the value of `e`. */
static uint32_t emit(compiler *c, etch_expr e)
{
    if (e->count == 0)
        return constant(c, ETCH_SYM_ZERO);
    emit_atoms(c, e);
    return fraction_node(c, e, ETCH_OP_DIV);
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

/* Numbers the variables that are loaded, by their order of declaration. */
static void number_variables(compiler *c, const etch_sym *sym, const bool *needed)
{
    etch_operations *out = c->out;
    uint32_t *number = ETCH_NEW_ARRAY(c->arena, sym->vars.count + 1, uint32_t);
    for (uint32_t i = 0; i < out->code.count; i++)
        if (needed[i] && out->code.at[i].op == ETCH_OP_LOAD)
            number[out->code.at[i].a] = 1;
    for (uint32_t i = 0; i < sym->vars.count; i++)
        if (number[i]) {
            ETCH_PUSH(c->arena, &out->variables, sym->vars.at[i]);
            number[i] = out->variables.count - 1;
        }
    for (uint32_t i = 0; i < out->code.count; i++)
        if (needed[i] && out->code.at[i].op == ETCH_OP_LOAD)
            out->code.at[i].a = number[out->code.at[i].a];
}

/* What the formulas need: the others are left-overs such as factors of 1. */
static const bool *needed_operations(compiler *c, uint32_t count)
{
    bool *needed = ETCH_NEW_ARRAY(c->arena, c->out->code.count, bool);
    for (uint32_t i = 0; i < count; i++)
        needed[c->out->outputs[i].instruction] = true;
    for (uint32_t i = c->out->code.count; i-- > 0;) {
        const etch_instruction *in = &c->out->code.at[i];
        if (needed[i] && op_has_operands(in->op))
            needed[in->a] = true;
        if (needed[i] && op_is_binary(in->op))
            needed[in->b] = true;
    }
    return needed;
}

/* Operations in their final order. */
typedef struct ordering {
    compiler *c;
    /* by loop: its first operation; by operation: the next one of its loop; from 1 */
    uint32_t *first, *next;
    /* by operation: where it went */
    uint32_t *place;
    ETCH_VEC(etch_instruction) code;
} ordering;

/* Takes the operations of a loop (0: of none), each sum with its loop before it. */
static void order_loop(ordering *o, uint32_t loop)
{
    for (uint32_t i = o->first[loop]; i; i = o->next[i - 1]) {
        etch_instruction in = o->c->out->code.at[i - 1];
        if (in.op == ETCH_OP_SUM)
            order_loop(o, o->c->scopes.at[in.b].owner);
        if (op_has_operands(in.op))
            in.a = o->place[in.a];
        if (op_is_binary(in.op))
            in.b = o->place[in.b];
        o->place[i - 1] = o->code.count;
        if (in.op == ETCH_OP_SUM)
            o->code.at[in.b].b = o->code.count;
        ETCH_PUSH(o->c->arena, &o->code, in);
    }
}

static void put_in_order(compiler *c, const bool *needed, uint32_t count)
{
    etch_operations *out = c->out;
    ordering o = {.c = c};
    o.first = ETCH_NEW_ARRAY(c->arena, c->loop_count + 1, uint32_t);
    o.next = ETCH_NEW_ARRAY(c->arena, out->code.count, uint32_t);
    o.place = ETCH_NEW_ARRAY(c->arena, out->code.count, uint32_t);
    for (uint32_t i = out->code.count; i-- > 0;) {
        uint32_t *first = &o.first[c->scopes.at[i].owner];
        if (!needed[i])
            continue;
        o.next[i] = *first;
        *first = i + 1;
    }
    order_loop(&o, 0);
    out->code.at = o.code.at;
    out->code.count = o.code.count;
    for (uint32_t i = 0; i < count; i++)
        out->outputs[i].instruction = o.place[out->outputs[i].instruction];
}

static int by_instruction(const void *a, const void *b)
{
    const etch_program_output *x = a, *y = b;
    if (x->instruction != y->instruction)
        return x->instruction < y->instruction ? -1 : 1;
    return x->formula < y->formula ? -1 : 1;
}

void program_operations(const etch_sym *sym, etch_arena *arena, uint32_t count, const etch_expr *exprs,
                        etch_operations *out)
{
    compiler c = {.arena = arena, .numbers = etch_sym_new(arena), .out = out, .budget = HORNER_BUDGET};
    c.node_of = ETCH_NEW_ARRAY(arena, sym->atom_count, uint32_t);
    c.uses = ETCH_NEW_ARRAY(arena, sym->atom_count, uint32_t);
    out->outputs = ETCH_NEW_ARRAY(arena, count, etch_program_output);
    for (uint32_t i = 0; i < count; i++)
        out->outputs[i] = (etch_program_output){emit(&c, exprs[i]), i};
    const bool *needed = needed_operations(&c, count);
    number_variables(&c, sym, needed);
    put_in_order(&c, needed, count);
    qsort(out->outputs, count, sizeof *out->outputs, by_instruction);
}
