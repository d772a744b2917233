/* Several expressions as assignments. Opaque atoms and denominators that would be written more than once are assigned to
 * temporaries first. */
#include <string.h>

#include "symbolic/print_int.h"

typedef struct assigner {
    sym_printer p;
    sym_memo visited; /* sums */
    sym_memo uses;    /* of atoms: once, or more often */
    sym_memo names;   /* of atoms and sums */
    const char *prefix;
    uint32_t count;
} assigner;

static const char once, more;

/* ---- counting uses ------------------------------------------------------------------------------------- */

static void count_uses(assigner *a, etch_expr e);

static void count_atom(assigner *a, const sym_atom *atom)
{
    bool known = sym_memo_get(&a->uses, atom);
    sym_memo_put(a->p.sym, &a->uses, atom, known ? &more : &once);
    /* what is inside a sum over an index may depend on it */
    for (uint32_t i = 0; !known && atom->kind != SYM_SUM && i < atom->count; i++)
        count_uses(a, atom->args[i]);
}

/* Every sum is written once, and in it its denominator once. */
static void count_uses(assigner *a, etch_expr e)
{
    const sym_atom *denominator = NULL;
    if (!(e->flags & SYM_HAS_OPAQUE) || sym_memo_get(&a->visited, e))
        return;
    sym_memo_put(a->p.sym, &a->visited, e, e);
    for (uint32_t i = 0; i < e->count; i++) {
        const sym_mono *mono = e->terms[i].mono;
        for (uint32_t j = 0; j < mono->count; j++) {
            const sym_atom *atom = mono->at[j].atom;
            if (atom->kind == SYM_RECIP)
                denominator = atom;
            else if (atom->kind != SYM_VAR)
                count_atom(a, atom);
        }
    }
    if (denominator)
        count_atom(a, denominator);
}

/* ---- names --------------------------------------------------------------------------------------------- */

/* Is `name` the prefix and digits? */
static bool is_temporary(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 && name[length] &&
           strspn(name + length, "0123456789") == strlen(name + length);
}

static bool is_taken(const assigner *a, uint32_t count, const char *const *names)
{
    for (uint32_t i = 0; i < count; i++)
        if (is_temporary(names[i], a->prefix))
            return true;
    for (uint32_t i = 0; i < a->p.sym->vars.count; i++)
        if (a->p.sym->vars.at[i]->name && is_temporary(a->p.sym->vars.at[i]->name, a->prefix))
            return true;
    return false;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void begin(assigner *a, const char *name)
{
    etch_buf_puts(a->p.out, a->p.n->assign);
    etch_buf_puts(a->p.out, name);
    etch_buf_puts(a->p.out, a->p.n->assigned);
}

static void define_all(assigner *a, etch_expr e);

/* The temporaries that an atom needs, then its own. What 1/(sum) is called by is the sum. */
static void define(assigner *a, const sym_atom *atom)
{
    const void *key = atom->kind == SYM_RECIP ? (const void *)atom->args[0] : atom;
    const char *uses = sym_memo_get(&a->uses, atom);
    if (sym_memo_get(&a->names, key))
        return;
    for (uint32_t i = 0; i < atom->count; i++)
        define_all(a, atom->args[i]);
    if (uses != &more)
        return;
    const char *name = etch_text(a->p.sym->arena, "%s%u", a->prefix, (unsigned)++a->count);
    begin(a, name);
    sym_print_definition(&a->p, atom);
    etch_buf_puts(a->p.out, a->p.n->end);
    sym_memo_put(a->p.sym, &a->names, key, name);
}

static void define_all(assigner *a, etch_expr e)
{
    if (!(e->flags & SYM_HAS_OPAQUE) || sym_memo_get(&a->visited, e))
        return;
    sym_memo_put(a->p.sym, &a->visited, e, e);
    for (uint32_t i = 0; i < e->count; i++) {
        const sym_mono *mono = e->terms[i].mono;
        for (uint32_t j = 0; j < mono->count; j++)
            if (mono->at[j].atom->kind != SYM_VAR)
                define(a, mono->at[j].atom);
    }
}

static void write_root(assigner *a, etch_expr root, const char *wanted)
{
    etch_buf identifier = {.arena = a->p.sym->arena};
    a->p.n->name(wanted, &identifier);
    const char *name = identifier.text;
    begin(a, name);
    if (root)
        sym_print_sum(&a->p, root);
    else
        etch_buf_puts(a->p.out, a->p.n->undefined);
    etch_buf_puts(a->p.out, a->p.n->end);
    if (root && root->count > 1 && !sym_memo_get(&a->names, root))
        sym_memo_put(a->p.sym, &a->names, root, name);
}

void etch_exprs_write(etch_sym *sym, uint32_t count, const etch_expr *roots, const char *const *names,
                      etch_notation notation, etch_form form, etch_buf *out)
{
    const sym_notation *n = sym_notation_of(notation);
    assigner a = {
        .p = {.sym = sym, .n = n && n->assign ? n : sym_notation_of(ETCH_PLAIN), .form = form, .out = out},
        .prefix = "t"};
    a.p.names = &a.names;
    while (is_taken(&a, count, names))
        a.prefix = etch_text(sym->arena, "%s_", a.prefix);
    for (uint32_t i = 0; i < count; i++)
        if (roots[i])
            count_uses(&a, roots[i]);
    sym_memo_clear(&a.visited);
    for (uint32_t i = 0; i < count; i++)
        if (roots[i])
            define_all(&a, roots[i]);
    for (uint32_t i = 0; i < count; i++)
        write_root(&a, roots[i], names[i]);
}
