/* Algebras: memory, guard, failures, forks; variables and facts. */
#include "session/api/algebra_int.h"
#include "session/core/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- failures ------------------------------------------------------------------------------------------ */

etch_status etch_algebra_status(const etch_algebra *al)
{
    return al->status;
}

const char *etch_algebra_message(const etch_algebra *al)
{
    return al->message;
}

void etch_algebra_clear(etch_algebra *al)
{
    if (al->exhausted || etch_sym_is_frozen(al->sym))
        return;
    al->status = ETCH_OK;
    al->message[0] = '\0';
}

etch_status etch_algebra_fail(etch_algebra *al, etch_status status, const char *message)
{
    if (al->status == ETCH_OK) {
        al->status = status;
        snprintf(al->message, sizeof al->message, "%s", message);
    }
    return status;
}

/* ---- requests ------------------------------------------------------------------------------------------ */

static const etch_formula *adopt_list(etch_sym *sym, etch_arena *arena, size_t count,
                                      const etch_formula *list)
{
    if (!list)
        return NULL;
    etch_formula *own = ETCH_NEW_ARRAY(arena, count, etch_formula);
    for (size_t i = 0; i < count; i++)
        own[i] = etch_sym_adopt(sym, list[i]);
    return own;
}

static etch_status run_body(void *data)
{
    etch_algebra_request *r = data;
    etch_sym *sym = r->algebra->sym;
    if (r->count > UINT32_MAX / 8)
        etch_trap(r->algebra->mem, ETCH_ELIMIT);
    /* what is made for this request alone */
    r->arena = etch_arena_new(r->algebra->mem);
    r->a = etch_sym_adopt(sym, r->a);
    r->b = etch_sym_adopt(sym, r->b);
    r->c = etch_sym_adopt(sym, r->c);
    r->d = etch_sym_adopt(sym, r->d);
    r->list = adopt_list(sym, r->arena, r->count, r->list);
    r->values = adopt_list(sym, r->arena, r->count, r->values);
    etch_status status = r->body(sym, r);
    etch_arena_free(r->arena);
    r->finished = true;
    return status;
}

/* A call was cut short. */
static etch_status cut_short(etch_algebra *al, const etch_algebra_request *r, etch_status status)
{
    const char *limit = etch_sym_limit_reached(al->sym);
    char message[sizeof al->message];
    snprintf(message, sizeof message, "%s",
             limit                   ? limit
             : status == ETCH_ENOMEM ? "memory is out"
             : status == ETCH_ELIMIT ? "bytes of memory that the algebra may hold"
                                     : "a bug of etch");
    if (limit && !r->changes)
        etch_sym_recover(al->sym);
    else
        al->exhausted = true;
    if (al->exhausted)
        al->status = ETCH_OK; /* this failure matters more than those before */
    return etch_algebra_fail(al, status, message);
}

etch_status etch_algebra_run(etch_algebra *al, etch_algebra_request *r)
{
    if (etch_sym_is_frozen(al->sym))
        return ETCH_EINPUT; /* says nothing: others may be reading */
    if (al->exhausted)
        return al->status;
    r->algebra = al;
    etch_status status = etch_guard(al->mem, run_body, r);
    return r->finished ? status : cut_short(al, r, status);
}

etch_formula etch_algebra_make(etch_algebra *al, etch_algebra_request *r)
{
    if (etch_algebra_run(al, r) != ETCH_OK)
        return NULL;
    if (!r->made)
        etch_algebra_fail(al, ETCH_EINPUT, "a division by zero, or an operand without a value");
    return r->made;
}

/* ---- algebras ------------------------------------------------------------------------------------------ */

enum { DEFAULT_MEMORY = 1 << 30 };

typedef struct creation {
    etch_algebra *algebra;
    /* NULL: a fork */
    const etch_algebra_options *options;
    const etch_sym *frozen;
} creation;

static etch_status create(void *data)
{
    const creation *c = data;
    etch_algebra *al = c->algebra;
    al->arena = etch_arena_new(al->mem);
    if (c->frozen) {
        al->sym = etch_sym_fork(c->frozen, al->arena);
        return ETCH_OK;
    }
    const etch_algebra_options *o = c->options;
    const etch_sym_limits limits = {.terms = o->terms,
                                    .exponent = o->exponent,
                                    .digits = o->digits,
                                    .depth = o->depth,
                                    .nesting = o->nesting,
                                    .atoms = o->functions,
                                    .operations = o->operations};
    al->sym = etch_sym_new(al->arena);
    etch_sym_set_limits(al->sym, &limits);
    return ETCH_OK;
}

static etch_status make_algebra(creation *c, size_t memory, etch_algebra **result)
{
    *result = NULL;
    etch_algebra *al = calloc(1, sizeof *al);
    if (!al)
        return ETCH_ENOMEM;
    c->algebra = al;
    al->mem = etch_mem_new(memory);
    etch_status status = al->mem ? etch_guard(al->mem, create, c) : ETCH_ENOMEM;
    if (status != ETCH_OK) {
        etch_algebra_free(al);
        return status;
    }
    *result = al;
    return ETCH_OK;
}

etch_status etch_algebra_new(const etch_algebra_options *options, etch_algebra **algebra)
{
    etch_algebra_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    creation c = {.options = &own};
    const etch_status status = make_algebra(&c, own.memory ? own.memory : DEFAULT_MEMORY, algebra);
    if (!unfit || status != ETCH_OK)
        return status;
    (*algebra)->exhausted = true;
    return etch_algebra_fail(*algebra, ETCH_EINPUT, unfit);
}

void etch_algebra_free(etch_algebra *al)
{
    if (!al)
        return;
    etch_mem_free(al->mem);
    free(al);
}

void etch_algebra_freeze(etch_algebra *al)
{
    if (!etch_sym_is_frozen(al->sym))
        etch_sym_freeze(al->sym);
}

etch_status etch_algebra_fork(const etch_algebra *frozen, etch_algebra **fork)
{
    *fork = NULL;
    if (!etch_sym_is_frozen(frozen->sym) || frozen->exhausted)
        return ETCH_EINPUT;
    creation c = {.frozen = frozen->sym};
    return make_algebra(&c, etch_mem_limit(frozen->mem), fork);
}

/* ---- variables ----------------------------------------------------------------------------------------- */

static etch_status declare(etch_sym *sym, etch_algebra_request *r)
{
    r->made = etch_var(sym, r->text);
    return ETCH_OK;
}

etch_formula etch_formula_variable(etch_algebra *al, const char *name)
{
    return etch_algebra_make(al, &(etch_algebra_request){.body = declare, .changes = true, .text = name});
}

static etch_status set_range(etch_sym *sym, etch_algebra_request *r)
{
    if (!r->a || !etch_var_name(r->a))
        return etch_algebra_fail(r->algebra, ETCH_EINPUT, "not a variable");
    if (r->flag)
        etch_var_real(sym, r->a);
    else
        etch_var_at_least(sym, r->a, r->number);
    return ETCH_OK;
}

etch_status etch_algebra_declare_integer(etch_algebra *al, etch_formula variable, int64_t lower)
{
    etch_algebra_request r = {.body = set_range, .changes = true, .a = variable, .number = lower};
    return etch_algebra_run(al, &r);
}

etch_status etch_algebra_declare_real(etch_algebra *al, etch_formula variable)
{
    etch_algebra_request r = {.body = set_range, .changes = true, .a = variable, .flag = true};
    return etch_algebra_run(al, &r);
}

/* ---- facts --------------------------------------------------------------------------------------------- */

static bool are_integers(etch_sym *sym, const etch_algebra_request *r)
{
    return etch_is_integer(sym, r->a, NULL) == ETCH_YES && etch_is_integer(sym, r->b, NULL) == ETCH_YES;
}

static etch_status assume(etch_sym *sym, etch_algebra_request *r)
{
    if (r->relation == ETCH_REL_TRUE)
        r->b = etch_int(sym, 0);
    if (!r->a || !r->b)
        return etch_algebra_fail(r->algebra, ETCH_EINPUT, "an operand without a value");
    etch_expr one = etch_int(sym, 1);
    switch (r->relation) {
    case ETCH_REL_EQ:
        return etch_assume_equal(sym, r->a, r->b, r->number, &r->other);
    case ETCH_REL_DIVIDES:
        return etch_assume_divides(sym, r->a, r->b, r->number, &r->other);
    case ETCH_REL_GE:
        return etch_assume_at_least(sym, r->a, r->b, r->number, &r->other);
    case ETCH_REL_LE:
        return etch_assume_at_least(sym, r->b, r->a, r->number, &r->other);
    case ETCH_REL_GT:
        if (are_integers(sym, r))
            return etch_assume_at_least(sym, r->a, etch_add(sym, r->b, one), r->number, &r->other);
        break;
    case ETCH_REL_LT:
        if (are_integers(sym, r))
            return etch_assume_at_least(sym, r->b, etch_add(sym, r->a, one), r->number, &r->other);
        break;
    case ETCH_REL_NE:
    case ETCH_REL_TRUE:
        return etch_assume_different(sym, r->a, r->b, r->number, &r->other);
    }
    return etch_algebra_fail(r->algebra, ETCH_EINPUT, "a relation that cannot be assumed");
}

etch_status etch_algebra_assume(etch_algebra *al, etch_relation relation, etch_formula left,
                                etch_formula right, int64_t origin, int64_t *other)
{
    etch_algebra_request r = {.body = assume,
                              .changes = true,
                              .relation = relation,
                              .a = left,
                              .b = right,
                              .number = origin,
                              .other = -1};
    etch_status status = etch_algebra_run(al, &r);
    if (other)
        *other = r.other;
    return status;
}
