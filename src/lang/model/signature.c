/* What a call looks like, for messages: of a module as its spec says it, of an op by its row. */
#include <string.h>

#include "lang/model/model_int.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Up to the body, on one line, without comments. */
const char *etch_module_signature(etch_spec *spec, const etch_ast_item *item)
{
    const etch_source *source = etch_source_at(spec->diags, item->name.span, NULL, NULL);
    if (!source)
        return item->name.text;
    etch_buf out = {.arena = spec->arena};
    const char *at = source->text + (item->name.span.start - source->base);
    const char *end = source->text + source->length;
    bool gap = false;
    for (; at < end && *at != '{'; at++) {
        if (*at == '#')
            at += strcspn(at, "\n");
        if (at == end || is_blank(*at)) {
            gap = true;
            continue;
        }
        etch_buf_puts(&out, gap ? " " : "");
        etch_buf_add(&out, at, 1);
        gap = false;
    }
    return out.text;
}

const char *etch_row_signature(etch_spec *spec, const etch_row *row)
{
    const etch_operands operands = etch_operands_of(spec->arena, row);
    etch_buf out = {.arena = spec->arena};
    const etch_keyword_info *info;
    etch_buf_printf(&out, "%s(", etch_row_name(row));
    for (uint32_t i = 0; i < operands.least; i++)
        etch_buf_printf(&out, "%s%s", i ? ", " : "", operands.names[i]);
    for (uint32_t i = 0; (info = etch_keyword_at(i)) != NULL; i++)
        if (etch_row_needs(row) & info->bit)
            etch_buf_printf(&out, info->name ? "%s%s = ..." : "%s%s", operands.least ? ", " : "",
                            etch_keyword_text(info));
    for (uint32_t i = operands.least; i < operands.most && operands.names[i]; i++)
        etch_buf_printf(&out, ", %s = ...", operands.names[i]);
    etch_buf_puts(&out, ")");
    return out.text;
}

const char *etch_calls_itself(const etch_builder *b, const etch_symbol *module)
{
    uint32_t first = b->calls.count;
    while (first > 0 && b->calls.at[first - 1] != module)
        first--;
    if (first == 0)
        return NULL;
    etch_buf out = {.arena = b->spec->arena};
    for (uint32_t i = first - 1; i < b->calls.count; i++)
        etch_buf_printf(&out, "%s -> ", b->calls.at[i]->name);
    etch_buf_puts(&out, module->name);
    return out.text;
}
