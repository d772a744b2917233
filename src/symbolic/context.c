/* Contexts, their tables and scratch memory, and variables. */
#include <string.h>

#include "symbolic/symbolic_int.h"

enum { FIRST_CAPACITY = 64, FIRST_MEMO = 32, FIRST_RECENT = 64, MOST_RECENT = 1 << 15 };
enum { SCRATCH_CHUNK = 16 << 10 };

/* ---- limits -------------------------------------------------------------------------------------------- */

static uint32_t limit_or(uint32_t given, uint32_t standard, uint32_t most)
{
    uint32_t limit = given ? given : standard;
    return limit < most ? limit : most;
}

void etch_sym_set_limits(etch_sym *sym, const etch_sym_limits *limits)
{
    static const etch_sym_limits standard = {0};
    const etch_sym_limits given = limits ? *limits : standard;
    sym->limits = (etch_sym_limits){
        .terms = limit_or(given.terms, 200000, UINT32_MAX / 8),
        .exponent = limit_or(given.exponent, 1000000, 1 << 30),
        .digits = limit_or(given.digits, 100000, 1000000000),
        .depth = limit_or(given.depth, 100, 400),
        .nesting = limit_or(given.nesting, 500, 2000),
        .atoms = limit_or(given.atoms, 100000, 1 << 28),
        .operations = given.operations ? given.operations : UINT64_C(10000000000),
    };
    /* a word holds 19 digits and a bit */
    sym->most_limbs = sym->limits.digits / 19 + 1;
    sym->operations_left = sym->limits.operations;
    sym->limit_reached = NULL;
}

uint64_t etch_sym_operations(const etch_sym *sym)
{
    return sym->limits.operations - sym->operations_left;
}

const char *etch_sym_limit_reached(const etch_sym *sym)
{
    return sym->limit_reached;
}

void sym_limit_of(etch_sym *sym, const char *what, uint64_t limit)
{
    sym->limit_reached = etch_text(sym->arena, "%s: %llu", what, (unsigned long long)limit);
    etch_trap(etch_arena_mem(sym->arena), ETCH_ELIMIT);
}

void etch_sym_charge(etch_sym *sym, uint64_t operations)
{
    sym_count_work(sym, operations);
}

void etch_sym_end_at_limit(etch_sym *sym, const char *what, uint64_t limit)
{
    sym_limit_of(sym, what, limit);
}

void sym_limit(etch_sym *sym)
{
    sym_limit_of(sym, "words of coefficients at a time", ETCH_SYM_MAX_WORK);
}

/* ---- tables -------------------------------------------------------------------------------------------- */

static void table_place(sym_table *table, struct sym_slot slot)
{
    uint32_t at = sym_home_of(slot.hash, table->capacity);
    while (table->slots[at].node)
        at = (at + 1) & (table->capacity - 1);
    table->slots[at] = slot;
}

static uint32_t doubled(etch_sym *sym, uint32_t capacity, uint32_t first)
{
    if (capacity > UINT32_MAX / 4)
        sym_limit(sym);
    return capacity ? capacity * 2 : first;
}

/* Most contexts end small, and moving what a table holds is a large part of their work. */
static uint32_t quadrupled(etch_sym *sym, uint32_t capacity)
{
    enum { SMALL = 1 << 15 };
    return doubled(sym, capacity > 0 && capacity < SMALL ? capacity * 2 : capacity, FIRST_CAPACITY);
}

void sym_table_add(etch_sym *sym, sym_table *table, sym_node *node)
{
    if (table->count >= table->capacity / 4 * 3) {
        sym_table old = *table;
        uint32_t capacity = quadrupled(sym, old.capacity);
        table->slots = ETCH_NEW_ARRAY(sym->arena, capacity, struct sym_slot);
        table->capacity = capacity;
        for (uint32_t i = 0; i < old.capacity; i++)
            if (old.slots[i].node)
                table_place(table, old.slots[i]);
    }
    table_place(table, (struct sym_slot){node->hash, node});
    table->count++;
}

void sym_table_add_missed(etch_sym *sym, sym_table *table, sym_node *node, uint32_t probe)
{
    if (table->count >= table->capacity / 4 * 3) {
        sym_table_add(sym, table, node);
        return;
    }
    uint32_t at = (sym_home_of(node->hash, table->capacity) + probe) & (table->capacity - 1);
    table->slots[at] = (struct sym_slot){node->hash, node};
    table->count++;
}

/* ---- memos --------------------------------------------------------------------------------------------- */

/* The slot of `key`, or the free one where it belongs. Addresses decide where; nothing ever walks the
 * slots in order. */
static struct sym_memo_slot *memo_slot(const sym_memo *memo, const void *key)
{
    uint32_t at = sym_home_of((uint64_t)(uintptr_t)key >> 4, memo->capacity);
    while (memo->slots[at].key && memo->slots[at].key != key)
        at = (at + 1) & (memo->capacity - 1);
    return &memo->slots[at];
}

const void *sym_memo_get(const sym_memo *memo, const void *key)
{
    return memo->count ? memo_slot(memo, key)->value : NULL;
}

void sym_memo_put(etch_sym *sym, sym_memo *memo, const void *key, const void *value)
{
    if (memo->count >= memo->capacity / 4 * 3) {
        sym_memo old = *memo;
        uint32_t capacity = doubled(sym, old.capacity, FIRST_MEMO);
        memo->slots = ETCH_NEW_ARRAY(sym->arena, capacity, struct sym_memo_slot);
        memo->capacity = capacity;
        for (uint32_t i = 0; i < old.capacity; i++)
            if (old.slots[i].key)
                *memo_slot(memo, old.slots[i].key) = old.slots[i];
    }
    struct sym_memo_slot *slot = memo_slot(memo, key);
    memo->count += !slot->key;
    slot->key = key;
    slot->value = value;
}

void sym_memo_clear(sym_memo *memo)
{
    if (memo->count)
        memset(memo->slots, 0, memo->capacity * sizeof *memo->slots);
    memo->count = 0;
}

/* ---- recent results ------------------------------------------------------------------------------------ */

static struct sym_recent_slot *recent_slot(const etch_sym *sym, sym_operation operation, etch_expr a,
                                           etch_expr b)
{
    uint64_t hash = sym_mix((uint64_t)a->id << 2 | operation, b->id);
    return &sym->recent.slots[sym_home_of(hash, sym->recent.capacity)];
}

etch_expr sym_recent_get(const etch_sym *sym, sym_operation operation, etch_expr a, etch_expr b)
{
    if (!sym->recent.capacity)
        return NULL;
    const struct sym_recent_slot *slot = recent_slot(sym, operation, a, b);
    return slot->a == a && slot->b == b->id && slot->operation == operation ? slot->result : NULL;
}

void sym_recent_put(etch_sym *sym, sym_operation operation, etch_expr a, etch_expr b, etch_expr result)
{
    sym_recent *recent = &sym->recent;
    if (recent->capacity < MOST_RECENT && recent->capacity < sym->poly_count) {
        recent->capacity = recent->capacity ? recent->capacity * 4 : FIRST_RECENT;
        recent->slots = ETCH_NEW_ARRAY(sym->arena, recent->capacity, struct sym_recent_slot);
    }
    *recent_slot(sym, operation, a, b) = (struct sym_recent_slot){operation, b->id, a, result};
}

/* ---- scratch ------------------------------------------------------------------------------------------- */

typedef struct sym_scratch_chunk {
    struct sym_scratch_chunk *older, *newer;
    size_t size;
    _Alignas(16) char bytes[];
} sym_scratch_chunk;

sym_scratch_mark sym_scratch_top(const etch_sym *sym)
{
    return (sym_scratch_mark){sym->scratch, sym->scratch_used};
}

void sym_scratch_release(etch_sym *sym, sym_scratch_mark mark)
{
    sym->scratch = mark.chunk;
    sym->scratch_used = mark.used;
}

void sym_scratch_reset(etch_sym *sym)
{
    while (sym->scratch->older)
        sym->scratch = sym->scratch->older;
    sym->scratch_used = 0;
    if (sym->limbs_in_scratch)
        sym->limbs_left = 0;
    sym->limbs_in_scratch = false;
}

/* Moves on to a chunk with room for `bytes`: the next one when it is large enough, or a new one. */
static void scratch_advance(etch_sym *sym, size_t bytes)
{
    sym_scratch_chunk *next = sym->scratch->newer;
    if (!next || next->size < bytes) {
        size_t size = bytes > SCRATCH_CHUNK ? bytes : SCRATCH_CHUNK;
        sym_scratch_chunk *chunk = etch_alloc(sym->arena, sizeof *chunk + size);
        chunk->size = size;
        chunk->older = sym->scratch;
        chunk->newer = next;
        if (next)
            next->older = chunk;
        sym->scratch->newer = chunk;
        next = chunk;
    }
    sym->scratch = next;
    sym->scratch_used = 0;
}

void *sym_scratch_take(etch_sym *sym, size_t count, size_t size)
{
    if (count > SIZE_MAX / 2 / size)
        sym_limit(sym);
    size_t bytes = (count * size + 15) & ~(size_t)15;
    if (sym->scratch->size - sym->scratch_used < bytes)
        scratch_advance(sym, bytes);
    void *place = sym->scratch->bytes + sym->scratch_used;
    sym->scratch_used += bytes;
    return memset(place, 0, bytes);
}

/* ---- contexts and variables ---------------------------------------------------------------------------- */

etch_sym *etch_sym_new(etch_arena *arena)
{
    etch_sym *sym = ETCH_NEW(arena, etch_sym);
    sym->arena = arena;
    sym->epoch = 1;
    etch_sym_set_limits(sym, NULL);
    sym->scratch = etch_alloc(arena, sizeof *sym->scratch + SCRATCH_CHUNK);
    sym->scratch->size = SCRATCH_CHUNK;
    sym->unit = sym_mono_of(sym, NULL, 0);
    sym->zero = sym_terms_finish(sym, sym_terms_new(sym));
    sym->one = sym_constant(sym, ETCH_SYM_ONE);
    return sym;
}

etch_expr etch_var(etch_sym *sym, const char *name)
{
    uint64_t hash = 0;
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        hash = sym_mix(hash, (unsigned char)name[i]);
    uint32_t probe = 0;
    for (sym_node *node; (node = sym_table_next(&sym->atoms, hash, &probe));) {
        const sym_atom *atom = (const sym_atom *)node;
        if (atom->kind == ETCH_SYM_VAR && atom->name && strcmp(atom->name, name) == 0)
            return atom->self;
    }
    return sym_atom_new_var(sym, etch_copy_text(sym->arena, name, length), 1)->self;
}

void etch_var_at_least(etch_sym *sym, etch_expr var, int64_t lower)
{
    sym_atom *atom = var ? sym_atom_of(var) : NULL;
    if (!atom || atom->kind != ETCH_SYM_VAR)
        return;
    atom->lower = atom->declared_lower = lower;
    atom->is_real = false;
    sym_new_epoch(sym);
}

void etch_var_real(etch_sym *sym, etch_expr var)
{
    sym_atom *atom = var ? sym_atom_of(var) : NULL;
    if (!atom || atom->kind != ETCH_SYM_VAR)
        return;
    atom->lower = atom->declared_lower = 0;
    atom->is_real = true;
    sym_new_epoch(sym);
}

const char *etch_var_name(etch_expr a)
{
    const sym_atom *atom = a ? sym_atom_of(a) : NULL;
    return atom && atom->kind == ETCH_SYM_VAR ? atom->name : NULL;
}

/* ---- constants ----------------------------------------------------------------------------------------- */

etch_expr etch_int(etch_sym *sym, int64_t value)
{
    const bool small = value >= 0 && value < ETCH_SYM_SMALL;
    if (small && sym->small[value])
        return sym->small[value];
    etch_expr constant = sym_constant(sym, sym_coef_of(sym, value, 1));
    if (small && !sym->frozen)
        sym->small[value] = constant;
    return constant;
}

etch_expr etch_ratio(etch_sym *sym, int64_t num, int64_t den)
{
    return den == 0 ? NULL : sym_constant(sym, sym_coef_of(sym, num, den));
}

etch_expr etch_number(etch_sym *sym, const char *text, size_t length)
{
    sym_coef value;
    return sym_coef_parse(sym, text, length, &value) ? sym_constant(sym, value) : NULL;
}

bool etch_is_constant(etch_expr a)
{
    return a && sym_is_constant(a);
}

bool etch_is_zero(etch_expr a)
{
    return a && a->count == 0;
}

bool etch_is_integer_constant(etch_expr a)
{
    return etch_is_constant(a) && sym_coef_is_integer(sym_constant_of(a));
}

bool etch_to_i64(etch_expr a, int64_t *value)
{
    if (!etch_is_integer_constant(a))
        return false;
    sym_coef c = sym_constant_of(a);
    if (sym_coef_is_small(c)) {
        *value = c.num;
        return true;
    }
    /* of the numbers that are stored as large ones only INT64_MIN is in range */
    if (c.big->num_size != -1 || c.big->num[0] != (mp_limb_t)1 << 63)
        return false;
    *value = INT64_MIN;
    return true;
}

bool etch_to_u64(etch_expr a, uint64_t *value)
{
    if (!etch_is_integer_constant(a) || sym_coef_sign(sym_constant_of(a)) < 0)
        return false;
    sym_coef c = sym_constant_of(a);
    if (sym_coef_is_small(c))
        *value = (uint64_t)c.num;
    else if (c.big->num_size == 1)
        *value = c.big->num[0];
    else
        return false;
    return true;
}

int etch_constant_compare(etch_sym *sym, etch_expr a, etch_expr b)
{
    (void)sym;
    return sym_coef_compare(sym_constant_of(a), sym_constant_of(b));
}

bool etch_constants_hold(etch_sym *sym, etch_relation relation, etch_expr a, etch_expr b)
{
    const int order = etch_constant_compare(sym, a, b);
    switch (relation) {
    case ETCH_REL_EQ:
        return order == 0;
    case ETCH_REL_NE:
        return order != 0;
    case ETCH_REL_LE:
        return order <= 0;
    case ETCH_REL_LT:
        return order < 0;
    case ETCH_REL_GE:
        return order >= 0;
    case ETCH_REL_GT:
        return order > 0;
    case ETCH_REL_DIVIDES:
    case ETCH_REL_TRUE:
        break;
    }
    return false;
}
