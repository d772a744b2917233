/* Evaluation of a batch.
 *
 * Configurations are taken in blocks. A block is computed with checked integers of 64 bits; those of its
 * configurations that fail, together with integers of 128 bits; those that fail again, one by one with
 * fractions, and at last with numbers that have all the room they need. */
#include <stdlib.h>
#include <string.h>

#include "symbolic/program/program_int.h"

enum { BLOCK = ETCH_PROGRAM_BLOCK };

/* Memory of blocks of one width. */
typedef struct block_memory {
    void *registers, *operands, *singles, *variables;
    /* values of variables that are not used where the caller has them */
    void *gathered;
} block_memory;

struct etch_workspace {
    /* for which there is room */
    size_t instructions, registers, variables, formulas;
    block_memory words, wides;
    etch_word_fraction *fractions;
    /* by formula */
    etch_outcome *outcomes;
    /* of the program at hand; NULL: not needed yet */
    etch_rationals *rationals;
    /* that did not fit into results */
    etch_outcome *numbers;
    size_t number_count, number_capacity;
    /* what etch_workspace_number gave last */
    char *text;
};

/* ---- workspaces ---------------------------------------------------------------------------------------- */

etch_status etch_workspace_new(etch_workspace **workspace)
{
    *workspace = calloc(1, sizeof **workspace);
    return *workspace ? ETCH_OK : ETCH_ENOMEM;
}

static void forget_numbers(etch_workspace *w)
{
    for (size_t i = 0; i < w->number_count; i++)
        free(w->numbers[i].text);
    w->number_count = 0;
    free(w->text);
    w->text = NULL;
}

static void free_memory(block_memory *m)
{
    free(m->registers);
    free(m->operands);
    free(m->singles);
    free(m->variables);
    free(m->gathered);
    *m = (block_memory){0};
}

static void free_room(etch_workspace *w)
{
    free_memory(&w->words);
    free_memory(&w->wides);
    free(w->fractions);
    free(w->outcomes);
    w->fractions = NULL;
    w->outcomes = NULL;
    w->instructions = w->registers = w->variables = w->formulas = 0;
}

void etch_workspace_free(etch_workspace *w)
{
    if (!w)
        return;
    forget_numbers(w);
    free(w->numbers);
    free_room(w);
    free(w);
}

static void *room_for(size_t count, size_t size)
{
    return count < SIZE_MAX / size ? malloc((count + 1) * size) : NULL;
}

static bool has_room(const etch_workspace *w, const etch_program *p)
{
    return w->instructions >= p->instruction_count && w->registers >= p->register_count &&
           w->variables >= p->variable_count && w->formulas >= p->formula_count;
}

static bool make_room(etch_workspace *w, const etch_program *p)
{
    if (has_room(w, p))
        return true;
    free_room(w);
    size_t instructions = p->instruction_count, registers = p->register_count, variables = p->variable_count;
    w->words = (block_memory){.registers = room_for(registers, BLOCK * sizeof(int64_t)),
                              .operands = room_for(instructions, sizeof(words_operand)),
                              .singles = room_for(instructions, sizeof(int64_t)),
                              .variables = room_for(variables, sizeof(int64_t *))};
    w->wides = (block_memory){.registers = room_for(registers, BLOCK * sizeof(sym_wide)),
                              .operands = room_for(instructions, sizeof(wides_operand)),
                              .singles = room_for(instructions, sizeof(sym_wide)),
                              .variables = room_for(variables, sizeof(sym_wide *)),
                              .gathered = room_for(variables, BLOCK * sizeof(sym_wide))};
    w->fractions = room_for(instructions, sizeof *w->fractions);
    w->outcomes = room_for(p->formula_count, sizeof *w->outcomes);
    if (!w->words.registers || !w->words.operands || !w->words.singles || !w->words.variables ||
        !w->wides.registers || !w->wides.operands || !w->wides.singles || !w->wides.variables ||
        !w->wides.gathered || !w->fractions || !w->outcomes)
        return false;
    w->instructions = instructions;
    w->registers = registers;
    w->variables = variables;
    w->formulas = p->formula_count;
    return true;
}

/* ---- a batch ------------------------------------------------------------------------------------------- */

typedef enum readiness { NOT_TRIED, READY, USELESS } readiness;

typedef struct batch {
    const etch_program *program;
    size_t count;
    const etch_column *columns;
    int64_t *values;
    unsigned char *kinds;
    etch_workspace *work;
    words_block words;
    wides_block wides;
    /* is what all configurations share computed? */
    readiness wides_ready;
    /* where the block at hand begins */
    size_t from;
    /* configurations that are computed with integers of 128 bits, */
    size_t places[BLOCK];
    /* and which of them fail */
    unsigned char at_wides[BLOCK];
    bool out_of_memory;
} batch;

static bool keep_number(etch_workspace *w, const etch_outcome *number, int64_t *index)
{
    if (w->number_count == w->number_capacity) {
        size_t capacity = w->number_capacity ? w->number_capacity * 2 : 64;
        etch_outcome *grown = realloc(w->numbers, capacity * sizeof *grown);
        if (!grown) {
            free(number->text);
            return false;
        }
        w->numbers = grown;
        w->number_capacity = capacity;
    }
    *index = (int64_t)w->number_count;
    w->numbers[w->number_count++] = *number;
    return true;
}

static void store(batch *b, uint32_t formula, size_t at, const etch_outcome *o)
{
    int64_t *value = &b->values[formula * b->count + at];
    b->kinds[formula * b->count + at] = (unsigned char)o->kind;
    *value = o->kind == ETCH_VALUE_INTEGER ? o->value : 0;
    if (o->kind == ETCH_VALUE_LARGE || o->kind == ETCH_VALUE_RATIONAL)
        b->out_of_memory |= !keep_number(b->work, o, value);
}

/* ---- integers of 64 bits ------------------------------------------------------------------------------- */

static void write_words(void *data, uint32_t formula, words_operand values)
{
    const batch *b = data;
    int64_t *to = b->values + formula * b->count + b->from;
    for (size_t i = 0; i < b->words.count; i++)
        to[i] = values.at[values.same ? 0 : i];
    memset(b->kinds + formula * b->count + b->from, ETCH_VALUE_INTEGER, b->words.count);
}

static void run_words(batch *b, unsigned char *failed)
{
    for (uint32_t v = 0; v < b->program->variable_count; v++) {
        const etch_column *column = &b->columns[v];
        if (column->same)
            continue;
        b->words.variables[v] = column->values + b->from;
        for (size_t i = 0; column->denominators && i < b->words.count; i++)
            failed[i] |= column->denominators[b->from + i] != 1;
    }
    words_run(&b->words, failed);
}

/* ---- integers of 128 bits ------------------------------------------------------------------------------ */

static void write_wides(void *data, uint32_t formula, wides_operand values)
{
    batch *b = data;
    for (size_t i = 0; i < b->wides.count; i++) {
        sym_wide value = values.at[values.same ? 0 : i];
        etch_outcome o = {.kind = ETCH_VALUE_INTEGER, .value = (int64_t)value};
        if (o.value != value)
            o = (etch_outcome){.kind = ETCH_VALUE_LARGE, .num = value, .den = 1};
        if (!b->at_wides[i])
            store(b, formula, b->places[i], &o);
    }
}

/* The configurations of `places`. */
static void run_wides(batch *b, size_t count)
{
    sym_wide *to = b->work->wides.gathered;
    memset(b->at_wides, 0, count);
    for (uint32_t v = 0; v < b->program->variable_count; v++, to += BLOCK) {
        const etch_column *column = &b->columns[v];
        b->wides.variables[v] = to;
        for (size_t i = 0; !column->same && i < count; i++) {
            to[i] = column->values[b->places[i]];
            b->at_wides[i] |= column_denominator(column, b->places[i]) != 1;
        }
    }
    b->wides.count = count;
    wides_run(&b->wides, b->at_wides);
}

/* ---- one by one ---------------------------------------------------------------------------------------- */

static void run_alone(batch *b, size_t at)
{
    etch_workspace *w = b->work;
    etch_configuration c = {b->columns, at};
    if (!program_run_fractions(b->program, &c, w->fractions, w->outcomes)) {
        if (!w->rationals)
            w->rationals = program_rationals_new(b->program);
        if (!w->rationals || !program_run_rationals(b->program, &c, w->rationals, w->outcomes)) {
            b->out_of_memory = true;
            return;
        }
    }
    for (uint32_t f = 0; f < b->program->formula_count; f++)
        store(b, f, at, &w->outcomes[f]);
}

/* ---- all ----------------------------------------------------------------------------------------------- */

static void run_failed(batch *b, size_t count)
{
    if (b->wides_ready == NOT_TRIED)
        b->wides_ready = wides_singles(&b->wides) ? READY : USELESS;
    if (b->wides_ready == READY)
        run_wides(b, count);
    for (size_t i = 0; i < count && !b->out_of_memory; i++)
        if (b->wides_ready == USELESS || b->at_wides[i])
            run_alone(b, b->places[i]);
}

static void run_all(batch *b)
{
    bool fits = words_singles(&b->words);
    for (; b->from < b->count && !b->out_of_memory; b->from += BLOCK) {
        unsigned char failed[BLOCK] = {0};
        size_t failures = 0;
        b->words.count = b->count - b->from < BLOCK ? b->count - b->from : BLOCK;
        if (fits)
            run_words(b, failed);
        for (size_t i = 0; i < b->words.count; i++)
            if (!fits || failed[i])
                b->places[failures++] = b->from + i;
        if (failures > 0)
            run_failed(b, failures);
    }
}

static bool denominators_are_positive(const etch_program *program, size_t count, const etch_column *columns)
{
    for (uint32_t v = 0; v < program->variable_count; v++)
        for (size_t i = 0; columns[v].denominators && i < (columns[v].same ? 1 : count); i++)
            if (columns[v].denominators[i] <= 0)
                return false;
    return true;
}

etch_status etch_program_evaluate(const etch_program *program, size_t count, const etch_column *columns,
                                  int64_t *values, unsigned char *kinds, etch_workspace *workspace)
{
    etch_workspace *w = workspace;
    forget_numbers(w);
    if (count == 0)
        return ETCH_OK;
    if (!denominators_are_positive(program, count, columns))
        return ETCH_EINPUT;
    if (!make_room(w, program))
        return ETCH_ENOMEM;
    batch b = {
        .program = program, .count = count, .columns = columns, .values = values, .kinds = kinds, .work = w};
    b.words = (words_block){program,
                            columns,
                            0,
                            w->words.operands,
                            w->words.singles,
                            w->words.registers,
                            w->words.variables,
                            write_words,
                            &b,
                            NULL};
    b.wides = (wides_block){program,
                            columns,
                            0,
                            w->wides.operands,
                            w->wides.singles,
                            w->wides.registers,
                            w->wides.variables,
                            write_wides,
                            &b,
                            NULL};
    run_all(&b);
    program_rationals_free(w->rationals);
    w->rationals = NULL;
    return b.out_of_memory ? ETCH_ENOMEM : ETCH_OK;
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

static const etch_outcome *number_at(const etch_workspace *w, int64_t number)
{
    return number >= 0 && (uint64_t)number < w->number_count ? &w->numbers[number] : NULL;
}

/* Writes the digits so that they end before `end`; returns where they begin. */
static char *write_wide(char *end, sym_wide value)
{
    bool negative = value < 0;
    do {
        int digit = (int)(value % 10);
        *--end = (char)('0' + (digit < 0 ? -digit : digit));
        value /= 10;
    } while (value != 0);
    if (negative)
        *--end = '-';
    return end;
}

const char *etch_workspace_number(etch_workspace *w, int64_t number)
{
    enum { ROOM = 96 }; /* two numbers of 40 characters and a stroke */
    const etch_outcome *o = number_at(w, number);
    if (!o || o->text)
        return o ? o->text : NULL;
    char text[ROOM], *at = text + ROOM - 1;
    *at = '\0';
    if (o->den != 1) {
        at = write_wide(at, o->den);
        *--at = '/';
    }
    at = write_wide(at, o->num);
    free(w->text);
    size_t size = (size_t)(text + ROOM - at);
    w->text = malloc(size);
    return w->text ? memcpy(w->text, at, size) : NULL;
}

bool etch_workspace_fraction(const etch_workspace *w, int64_t number, int64_t *numerator,
                             int64_t *denominator)
{
    const etch_outcome *o = number_at(w, number);
    if (!o || o->text || o->num > INT64_MAX || o->num < INT64_MIN || o->den > INT64_MAX)
        return false;
    *numerator = (int64_t)o->num;
    *denominator = (int64_t)o->den;
    return true;
}
