/* Counting conventions as options and queries name them. */
#include "session/core/core.h"

#include <string.h>

typedef struct reading {
    etch_session *session;
    /* of the word in work */
    etch_span span;
} reading;

static bool refuse_preset(const reading *r, const char *name)
{
    const char *names[8];
    size_t count = 0;
    for (; count < sizeof names / sizeof *names && etch_count_preset_name(count); count++)
        names[count] = etch_count_preset_name(count);
    etch_diag *diag = etch_error(r->session->diags, ETCH_E_QUERY_COUNT, r->span,
                                 "there is no counting convention '%.80s'", name);
    const char *near = etch_nearest(name, names, count);
    if (near)
        etch_help(diag, "did you mean '%s'?", near);
    etch_help(diag, "`etch help counts` lists presets, and what else may be said: causal=full");
    return false;
}

static bool set_preset(const reading *r, etch_count *count, const char *name)
{
    for (size_t i = 0; etch_count_preset_name(i); i++)
        if (strcmp(etch_count_preset_name(i), name) == 0) {
            *count = etch_count_of_preset(i);
            return true;
        }
    return refuse_preset(r, name);
}

static bool refuse_item(const reading *r, const char *name)
{
    const char *names[ETCH_COUNT_ITEMS];
    for (size_t i = 0; i < ETCH_COUNT_ITEMS; i++)
        names[i] = etch_count_item_name(i);
    etch_diag *diag = etch_error(r->session->diags, ETCH_E_QUERY_COUNT, r->span,
                                 "conventions do not speak of '%.80s'", name);
    const char *near = etch_nearest(name, names, ETCH_COUNT_ITEMS);
    if (near)
        etch_help(diag, "did you mean '%s'?", near);
    etch_help(diag, "`etch help counts` lists what they speak of");
    return false;
}

static bool refuse_value(const reading *r, size_t item, const char *value)
{
    etch_buf values = {.arena = r->session->arena};
    for (size_t i = 0; etch_count_value_name(item, i); i++)
        etch_buf_printf(&values, "%s%s", i ? ", " : "", etch_count_value_name(item, i));
    etch_diag *diag = etch_error(r->session->diags, ETCH_E_QUERY_COUNT, r->span, "'%s' cannot be '%.80s'",
                                 etch_count_item_name(item), value);
    etch_help(diag, "it is one of %s", values.text);
    return false;
}

static bool set_item(const reading *r, etch_count *count, const char *name, const char *value)
{
    size_t item = 0;
    while (item < ETCH_COUNT_ITEMS && strcmp(etch_count_item_name(item), name) != 0)
        item++;
    if (item == ETCH_COUNT_ITEMS)
        return refuse_item(r, name);
    for (size_t i = 0; etch_count_value_name(item, i); i++)
        if (strcmp(etch_count_value_name(item, i), value) == 0) {
            count->at[item] = (unsigned char)i;
            return true;
        }
    return refuse_value(r, item, value);
}

/* One of the texts of a list: a preset, or ITEM=VALUE. Items add to the preset, which so comes first. */
static bool set_word(const reading *r, etch_count *count, const char *word, bool first)
{
    const char *equals = strchr(word, '=');
    if (equals)
        return set_item(r, count, etch_copy_text(r->session->arena, word, (size_t)(equals - word)),
                        equals + 1);
    if (first)
        return set_preset(r, count, word);
    etch_diag *diag = etch_error(r->session->diags, ETCH_E_QUERY_COUNT, r->span,
                                 "'%.80s' stands behind the first word of a count", word);
    etch_help(diag, "a preset comes first, then what differs from it: megatron,causal=full");
    return false;
}

bool etch_session_read_count(etch_session *session, const char *list, etch_count *count)
{
    const reading r = {.session = session};
    *count = (etch_count){0};
    for (bool first = true; list; first = false) {
        const size_t length = strcspn(list, ",");
        if (!set_word(&r, count, etch_copy_text(session->arena, list, length), first))
            return false;
        list = list[length] ? list + length + 1 : NULL;
    }
    return true;
}

bool etch_quantity_count(etch_session *session, const etch_quantity *q, etch_count *count)
{
    *count = session->count;
    for (uint32_t i = 0; i < q->count_words; i++) {
        const etch_count_word *word = &q->counts[i];
        const reading r = {session, word->span};
        if (word->item ? !set_item(&r, count, word->item, word->value) : !set_preset(&r, count, word->value))
            return false;
    }
    return true;
}

const etch_op_roles *etch_compiled_op_roles(etch_session *session, etch_compiled *p)
{
    if (!p->op_roles)
        p->op_roles = etch_op_roles_of(p->training, session->arena);
    return p->op_roles;
}
