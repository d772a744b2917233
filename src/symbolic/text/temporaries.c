/* Several expressions as assignments. Opaque atoms and denominators that would be written more than once
 * are assigned to temporaries first. */
#include <string.h>

#include "symbolic/text/text_int.h"

/* An atom that has a name, or the atom whose argument has one: 1/(sum). */
typedef struct temporary {
    const sym_atom *atom;
    sym_name *name;
    /* of its definition; NULL: it is not needed */
    const char *text;
} temporary;

typedef struct assigner {
    sym_printer p;
    /* sums */
    sym_memo visited;
    /* of atoms: once, or more often */
    sym_memo uses;
    /* of atoms and sums */
    sym_memo names;
    const char *prefix;
    /* what one needs stands before it */
    ETCH_VEC(temporary) temporaries;
} assigner;

static const char once, more;

/* ---- counting uses ------------------------------------------------------------------------------------- */

static void count_uses(assigner *a, etch_expr e);

static void count_atom(assigner *a, const sym_atom *atom)
{
    bool known = sym_memo_get(&a->uses, atom);
    sym_memo_put(a->p.sym, &a->uses, atom, known ? &more : &once);
    /* what is inside a sum over an index may depend on it */
    for (uint32_t i = 0; !known && atom->kind != ETCH_SYM_SUM && i < atom->count; i++)
        count_uses(a, atom->args[i]);
}

/* Every sum is written once, and in it its denominator once. */
static void count_uses(assigner *a, etch_expr e)
{
    const sym_atom *denominator = NULL;
    if (!(e->flags & ETCH_SYM_HAS_OPAQUE) || sym_memo_get(&a->visited, e))
        return;
    sym_memo_put(a->p.sym, &a->visited, e, e);
    for (uint32_t i = 0; i < e->count; i++) {
        const sym_mono *mono = e->terms[i].mono;
        for (uint32_t j = 0; j < mono->count; j++) {
            const sym_atom *atom = mono->at[j].atom;
            if (atom->kind == ETCH_SYM_RECIP)
                denominator = atom;
            else if (atom->kind != ETCH_SYM_VAR)
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

static sym_name *give_name(assigner *a, const void *key, const char *text)
{
    sym_name *name = ETCH_NEW(a->p.sym->arena, sym_name);
    name->text = text;
    sym_memo_put(a->p.sym, &a->names, key, name);
    return name;
}

static void name_all(assigner *a, etch_expr e);

/* The temporaries that an atom needs, then its own. What 1/(sum) is called by is the sum. */
static void name_atom(assigner *a, const sym_atom *atom)
{
    const void *key = atom->kind == ETCH_SYM_RECIP ? (const void *)atom->args[0] : atom;
    if (sym_memo_get(&a->names, key))
        return;
    for (uint32_t i = 0; i < atom->count; i++)
        name_all(a, atom->args[i]);
    if (sym_memo_get(&a->uses, atom) != &more)
        return;
    const char *text = etch_text(a->p.sym->arena, "%s%u", a->prefix, (unsigned)a->temporaries.count + 1);
    ETCH_PUSH(a->p.sym->arena, &a->temporaries, (temporary){atom, give_name(a, key, text), NULL});
}

static void name_all(assigner *a, etch_expr e)
{
    if (!(e->flags & ETCH_SYM_HAS_OPAQUE) || sym_memo_get(&a->visited, e))
        return;
    sym_memo_put(a->p.sym, &a->visited, e, e);
    for (uint32_t i = 0; i < e->count; i++) {
        const sym_mono *mono = e->terms[i].mono;
        for (uint32_t j = 0; j < mono->count; j++)
            if (mono->at[j].atom->kind != ETCH_SYM_VAR)
                name_atom(a, mono->at[j].atom);
    }
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static void write_assignment(const assigner *a, const char *name, const char *value, etch_buf *out)
{
    etch_buf_puts(out, a->p.n->assign);
    etch_buf_puts(out, name);
    etch_buf_puts(out, a->p.n->assigned);
    etch_buf_puts(out, value);
    etch_buf_puts(out, a->p.n->end);
}

/* An empty text to write to from here on. */
static etch_buf *fresh_text(assigner *a)
{
    etch_buf *text = ETCH_NEW(a->p.sym->arena, etch_buf);
    text->arena = a->p.sym->arena;
    etch_buf_puts(text, "");
    a->p.out = text;
    return text;
}

/* Roots behind may refer to those before; temporaries may not. */
static const char *roots_text(assigner *a, uint32_t count, const etch_expr *roots, const char *const *names)
{
    etch_buf all = {.arena = a->p.sym->arena};
    ETCH_VEC(sym_name *) given = {0};
    etch_buf_puts(&all, "");
    for (uint32_t i = 0; i < count; i++) {
        etch_buf *value = fresh_text(a);
        if (roots[i])
            sym_print_sum(&a->p, roots[i]);
        else
            etch_buf_puts(value, a->p.n->undefined);
        etch_buf *name = fresh_text(a);
        a->p.n->name(names[i], name);
        write_assignment(a, name->text, value->text, &all);
        if (roots[i] && roots[i]->count > 1 && !sym_memo_get(&a->names, roots[i]))
            ETCH_PUSH(a->p.sym->arena, &given, give_name(a, roots[i], name->text));
    }
    for (uint32_t i = 0; i < given.count; i++)
        given.at[i]->hidden = true;
    return all.text;
}

/* The definitions of those temporaries that are used, by roots or by later ones. */
static void define_temporaries(assigner *a)
{
    for (uint32_t i = a->temporaries.count; i-- > 0;) {
        temporary *t = &a->temporaries.at[i];
        if (!t->name->used)
            continue;
        etch_buf *text = fresh_text(a);
        t->name->hidden = true;
        sym_print_definition(&a->p, t->atom);
        t->text = text->text;
    }
}

void etch_exprs_write(etch_sym *sym, uint32_t count, const etch_expr *roots, const char *const *names,
                      etch_notation notation, etch_form form, etch_buf *out)
{
    const sym_notation *n = sym_notation_of(notation);
    assigner a = {.p = {.sym = sym, .n = n && n->assign ? n : sym_notation_of(ETCH_PLAIN)}, .prefix = "t"};
    a.p.style = (sym_style){.form = form, .rules = a.p.n->rules, .names = &a.names};
    while (is_taken(&a, count, names))
        a.prefix = etch_text(sym->arena, "%s_", a.prefix);
    for (uint32_t i = 0; i < count; i++)
        if (roots[i])
            count_uses(&a, roots[i]);
    sym_memo_clear(&a.visited);
    for (uint32_t i = 0; i < count; i++)
        if (roots[i])
            name_all(&a, roots[i]);
    const char *assignments = roots_text(&a, count, roots, names);
    define_temporaries(&a);
    for (uint32_t i = 0; i < a.temporaries.count; i++)
        if (a.temporaries.at[i].text)
            write_assignment(&a, a.temporaries.at[i].name->text, a.temporaries.at[i].text, out);
    etch_buf_puts(out, assignments);
}
