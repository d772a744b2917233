/* Looking up rows of a table, and describing them. */
#include <string.h>

#include "graph/ir/ir_int.h"

/* ---- rows ------------------------------------------------------------------------------------------- */

const etch_row *etch_row_at(const etch_table *table, uint32_t index)
{
    for (uint32_t f = 0; f < table->count; index -= table->families[f++]->count)
        if (index < table->families[f]->count)
            return &table->families[f]->at[index];
    return NULL;
}

const etch_row *etch_row_named(const etch_table *table, const char *name)
{
    for (uint32_t f = 0; f < table->count; f++)
        for (uint32_t i = 0; i < table->families[f]->count; i++) {
            const etch_row *row = &table->families[f]->at[i];
            if (row->name[0] == name[0] && strcmp(row->name, name) == 0)
                return row;
        }
    return NULL;
}

void etch_graph_use_table(etch_graph *graph, const etch_table *table)
{
    graph->table = table;
    graph->row_of = ETCH_NEW_ARRAY(graph->arena, ETCH_USE_COUNT, const etch_row *);
    for (uint32_t f = 0; f < table->count; f++)
        for (uint32_t i = 0; i < table->families[f]->count; i++) {
            const etch_row *row = &table->families[f]->at[i];
            if (row->use != ETCH_USE_NONE && !graph->row_of[row->use])
                graph->row_of[row->use] = row;
        }
}

const etch_row *etch_row_for(const etch_graph *graph, etch_use use)
{
    return graph->row_of[use];
}

const etch_row *etch_row_called(const etch_table *table, const char *name)
{
    const etch_row *row = etch_row_named(table, name);
    return row && etch_row_is_called(row) ? row : NULL;
}

/* ---- moves ------------------------------------------------------------------------------------------ */

static const struct {
    /* as in queries */
    const char *name;
    /* ETCH_USE_NONE: no op of a graph makes it */
    etch_use use;
} collectives[ETCH_COLLECTIVE_COUNT] = {
    [ETCH_NO_COLLECTIVE] = {"none", ETCH_USE_NONE},
    [ETCH_SLICE] = {"slice_shard", ETCH_USE_SLICE_SHARD},
    [ETCH_REDUCE_SCATTER] = {"reduce_scatter", ETCH_USE_REDUCE_SCATTER},
    [ETCH_ALL_TO_ALL] = {"all_to_all", ETCH_USE_ALL_TO_ALL},
    [ETCH_ALL_REDUCE] = {"all_reduce", ETCH_USE_ALL_REDUCE},
    [ETCH_ALL_GATHER] = {"all_gather", ETCH_USE_ALL_GATHER},
    [ETCH_SEND] = {"send", ETCH_USE_NONE},
    [ETCH_PERMUTE] = {"permute", ETCH_USE_PERMUTE},
};

const etch_row *etch_row_of_collective(const etch_graph *graph, etch_collective collective)
{
    return etch_row_for(graph, collectives[collective].use);
}

const char *etch_collective_name(etch_collective collective)
{
    return (unsigned)collective < ETCH_COLLECTIVE_COUNT ? collectives[collective].name : NULL;
}

/* ---- keywords --------------------------------------------------------------------------------------- */

#define DIMS(word, bit, member)                                    \
    {                                                              \
        word, bit, ETCH_KIND_DIMS, offsetof(etch_attrs, member), 0 \
    }
#define NUMBER(word, bit, member, range)                                 \
    {                                                                    \
        word, bit, ETCH_KIND_NUMBER, offsetof(etch_attrs, member), range \
    }

static const etch_keyword_info keywords[] = {
    DIMS("over", ETCH_KW_OVER, over),
    DIMS(NULL, ETCH_KW_DIM, over),
    DIMS("dot", ETCH_KW_DOT, dot),
    DIMS("to", ETCH_KW_TO, to),
    {"causal", ETCH_KW_CAUSAL, ETCH_KIND_FLAG, offsetof(etch_attrs, causal), 0},
    NUMBER(NULL, ETCH_KW_NUMBER, number, ETCH_ANY_NUMBER),
    NUMBER("window", ETCH_KW_WINDOW, window, ETCH_COUNT),
    NUMBER("cap", ETCH_KW_CAP, cap, ETCH_POSITIVE),
    NUMBER("pairs", ETCH_KW_PAIRS, pairs, ETCH_COUNT_OR_NONE),
    DIMS("kernel", ETCH_KW_KERNEL, kernel),
    NUMBER("stride", ETCH_KW_STRIDE, stride, ETCH_COUNT),
    NUMBER("size", ETCH_KW_SIZE, size, ETCH_COUNT),
    DIMS("state", ETCH_KW_STATE, state),
    NUMBER("chunk", ETCH_KW_CHUNK, chunk, ETCH_COUNT),
    DIMS("slots", ETCH_KW_SLOTS, slots),
    NUMBER("groups", ETCH_KW_GROUPS, groups, ETCH_COUNT_OR_NONE),
    NUMBER("keep", ETCH_KW_KEEP, keep, ETCH_COUNT_OR_NONE),
    NUMBER("limit", ETCH_KW_LIMIT, limit, ETCH_COUNT_OR_NONE),
    DIMS("keep", ETCH_KW_KEPT, kept),
    {"sync", ETCH_KW_SYNC, ETCH_KIND_FLAG, offsetof(etch_attrs, sync), 0},
    {"dtype", ETCH_KW_DTYPE, ETCH_KIND_DTYPE, offsetof(etch_attrs, dtype), 0},
};

const etch_keyword_info *etch_keyword_at(uint32_t index)
{
    return index < sizeof keywords / sizeof keywords[0] ? &keywords[index] : NULL;
}

etch_keyword_field etch_keyword_field_of(const etch_keyword_info *info, etch_attrs *attrs)
{
    void *field = (char *)attrs + info->field;
    return (etch_keyword_field){.dims = info->kind == ETCH_KIND_DIMS ? field : NULL,
                                .flag = info->kind == ETCH_KIND_FLAG ? field : NULL,
                                .number = info->kind == ETCH_KIND_NUMBER ? field : NULL,
                                .dtype = info->kind == ETCH_KIND_DTYPE ? field : NULL};
}

bool etch_keyword_is_said(const etch_keyword_field *field)
{
    if (field->dims)
        return field->dims->count > 0;
    if (field->flag)
        return *field->flag;
    return field->dtype ? *field->dtype != 0 : *field->number != NULL;
}

const etch_keyword_info *etch_keyword_missing(const etch_row *row, const etch_attrs *attrs)
{
    etch_attrs said = *attrs;
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
        etch_keyword_field field = etch_keyword_field_of(&keywords[i], &said);
        bool missing = !field.flag && !etch_keyword_is_said(&field);
        if (missing && (row->needs & keywords[i].bit))
            return &keywords[i];
    }
    return NULL;
}

const char *etch_keyword_text(const etch_keyword_info *info)
{
    return info->name ? info->name : info->kind == ETCH_KIND_DIMS ? "a dim" : "a number";
}

/* ---- operands --------------------------------------------------------------------------------------- */

etch_operands etch_operands_of(etch_arena *arena, const etch_row *row)
{
    etch_operands operands = {0};
    bool optional = false, many = false;
    for (const char *at = row->operands; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        optional = optional || *at == '|';
        many = length > 3 && memcmp(at + length - 3, "...", 3) == 0;
        if (*at != '|')
            operands.names[operands.most++] = etch_copy_text(arena, at, length);
        operands.least = optional ? operands.least : operands.most;
        at += length;
    }
    if (many) /* of the last */
        operands.most = ETCH_MAX_OPERANDS;
    return operands;
}

uint32_t etch_operands_index(const etch_operands *operands, const char *name)
{
    for (uint32_t i = operands->least; i < operands->most; i++)
        if (operands->names[i] && strcmp(operands->names[i], name) == 0)
            return i;
    return UINT32_MAX;
}

/* ---- what a row says -------------------------------------------------------------------------------- */

const char *etch_row_name(const etch_row *row)
{
    return row->name;
}
unsigned etch_row_takes(const etch_row *row)
{
    return row->needs | row->options;
}
bool etch_row_is_index(const etch_row *row, uint32_t slot)
{
    return row->indices >> slot & 1;
}
etch_number_range etch_row_number(const etch_row *row)
{
    return row->number;
}
unsigned etch_row_needs(const etch_row *row)
{
    return row->needs;
}
bool etch_row_is_called(const etch_row *row)
{
    const bool made = row->shape || row->several || row->compose || row->use == ETCH_USE_AVERAGE;
    return made && !row->uncalled;
}

bool etch_row_is_several(const etch_row *row)
{
    return row->several != NULL;
}

static const etch_row *optimizer_named(const etch_table *table, const char *name)
{
    const etch_row *row = name ? etch_row_named(table, name) : NULL;
    return row && row->updates ? row : NULL;
}

const etch_row *etch_optimizer_with_momentum(const etch_table *table, const etch_row *optimizer)
{
    return optimizer_named(table, optimizer->with_momentum);
}

const etch_row *etch_optimizer_with_8_bits(const etch_table *table, const etch_row *optimizer)
{
    return optimizer_named(table, optimizer->with_8_bits);
}

bool etch_optimizer_has_8_bits(const etch_row *optimizer)
{
    return optimizer->state_block > 0;
}

bool etch_optimizer_is_of_matrices(const etch_row *optimizer)
{
    return optimizer->matrices_alone;
}

const etch_row *etch_optimizer_called(const etch_table *table, const char *name)
{
    const etch_row *row = etch_row_named(table, name), *other;
    for (uint32_t i = 0; row && (other = etch_row_at(table, i)) != NULL; i++)
        if (etch_optimizer_with_momentum(table, other) == row ||
            etch_optimizer_with_8_bits(table, other) == row)
            return NULL; /* it is asked for by its argument */
    return row && row->updates ? row : NULL;
}

/* "; over = .., [causal = ..]": what is in brackets may be left out. */
static void describe_keywords(const etch_row *row, etch_buf *out)
{
    const char *before = "; ";
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++) {
        const etch_keyword_info *info = &keywords[i];
        if (!(etch_row_takes(row) & info->bit))
            continue;
        const bool needed = row->needs & info->bit;
        etch_buf_printf(out, "%s%s%s%s", before, needed ? "" : "[", etch_keyword_text(info),
                        needed ? "" : "]");
        before = ", ";
    }
}

/* Each # of the text is the next constant. */
static void describe_flop(const etch_row *row, etch_buf *out)
{
    const uint32_t *constant = row->flop.constants;
    for (const char *at = row->flop.by ? row->flop.by->help : "no FLOP"; *at; at++)
        if (*at == '#')
            etch_buf_printf(out, "%u", *constant++);
        else
            etch_buf_printf(out, "%c", *at);
}

void etch_row_describe(const etch_row *row, etch_buf *out)
{
    etch_buf_printf(out, "%-18s %-22s ", row->name, row->operands);
    if (row->compose)
        etch_buf_puts(out, "FLOP of its parts");
    else
        describe_flop(row, out);
    etch_buf_printf(out, "; %s", row->help);
    describe_keywords(row, out);
    etch_buf_puts(out, "\n");
}
