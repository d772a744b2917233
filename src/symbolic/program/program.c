/* Programs: from a list of operations to one block of memory. */
#include <stdlib.h>
#include <string.h>

#include "symbolic/program/program_int.h"

enum { COMPILE_MEMORY = 1 << 30 };

/* ---- registers ----------------------------------------------------------------------------------------- */

typedef struct liveness {
    etch_arena *arena;
    const etch_operations *o;
    /* by instruction: the one after which nothing reads its value */
    uint32_t *last;
    /* around the instruction at hand, from outside */
    ETCH_VEC(uint32_t) loops;
} liveness;

/* What a loop reads of what was computed before it has to stay until its last round. */
static void use(liveness *l, uint32_t value, uint32_t at)
{
    for (uint32_t i = 0; i < l->loops.count; i++)
        if (value < l->loops.at[i]) {
            at = l->o->code.at[l->loops.at[i]].b;
            break;
        }
    if (l->last[value] < at)
        l->last[value] = at;
}

static const uint32_t *last_uses(etch_arena *arena, const etch_operations *o)
{
    liveness l = {.arena = arena, .o = o};
    l.last = ETCH_NEW_ARRAY(arena, o->code.count, uint32_t);
    for (uint32_t i = 0; i < o->code.count; i++) {
        const etch_instruction *in = &o->code.at[i];
        l.last[i] = i;
        if (in->op == ETCH_OP_LOOP)
            ETCH_PUSH(arena, &l.loops, i);
        if (op_has_operands(in->op))
            use(&l, in->a, i);
        if (op_is_binary(in->op))
            use(&l, in->b, i);
        if (in->op == ETCH_OP_SUM)
            l.loops.count--;
    }
    return l.last;
}

typedef struct register_file {
    etch_arena *arena;
    ETCH_VEC(uint32_t) unused;
    uint32_t count;
    /* by instruction: the first value that ends there; by value: the next; from 1 */
    uint32_t *ending, *also;
} register_file;

static uint32_t take_register(register_file *r)
{
    return r->unused.count > 0 ? r->unused.at[--r->unused.count] : r->count++;
}

/* Gives every operation a register that holds nothing else until the last use of its value. A result never
 * takes the place of an operand of its own: an operation can be repeated. A sum has its register from the
 * beginning of its loop on. Returns how many there are. */
static uint32_t place_results(etch_arena *arena, etch_operations *o)
{
    const uint32_t *last = last_uses(arena, o);
    register_file r = {.arena = arena};
    r.ending = ETCH_NEW_ARRAY(arena, o->code.count, uint32_t);
    r.also = ETCH_NEW_ARRAY(arena, o->code.count, uint32_t);
    for (uint32_t i = o->code.count; i-- > 0;) {
        r.also[i] = r.ending[last[i]];
        r.ending[last[i]] = i + 1;
    }
    for (uint32_t i = 0; i < o->code.count; i++) {
        etch_instruction *in = &o->code.at[i];
        if (op_has_operands(in->op) && in->op != ETCH_OP_SUM)
            in->place = take_register(&r);
        if (in->op == ETCH_OP_LOOP)
            o->code.at[in->b].place = take_register(&r);
        for (uint32_t v = r.ending[i]; v; v = r.also[v - 1])
            if (op_has_operands(o->code.at[v - 1].op))
                ETCH_PUSH(arena, &r.unused, o->code.at[v - 1].place);
    }
    return r.count;
}

/* ---- one block ----------------------------------------------------------------------------------------- */

/* The parts of a program behind its header, aligned for any of them. */
typedef struct layout {
    size_t code, constants, variables, limbs, outputs, text, total;
} layout;

static size_t limb_count(sym_coef value)
{
    if (sym_coef_is_small(value))
        return 0;
    return (size_t)(value.big->num_size < 0 ? -value.big->num_size : value.big->num_size);
}

static layout lay_out(const etch_operations *o, uint32_t count)
{
    layout l = {.code = (sizeof(etch_program) + 15) & ~(size_t)15};
    l.constants = l.code + ((o->code.count * sizeof(etch_instruction) + 15) & ~(size_t)15);
    l.variables = l.constants + ((o->constants.count * sizeof(etch_program_constant) + 15) & ~(size_t)15);
    l.limbs = l.variables + o->variables.count * sizeof(char *);
    l.outputs = l.limbs;
    for (uint32_t i = 0; i < o->constants.count; i++)
        l.outputs += limb_count(o->constants.at[i]) * sizeof(mp_limb_t);
    l.text = l.total = l.outputs + count * sizeof(etch_program_output);
    for (uint32_t i = 0; i < o->variables.count; i++)
        l.total += strlen(o->variables.at[i]->name) + 1;
    return l;
}

static void copy_constants(const etch_operations *o, etch_program_constant *to, mp_limb_t *limbs)
{
    for (uint32_t i = 0; i < o->constants.count; i++) {
        sym_coef value = o->constants.at[i];
        if (sym_coef_is_small(value)) {
            to[i] = (etch_program_constant){.small = value.num};
            continue;
        }
        to[i] = (etch_program_constant){.size = value.big->num_size, .limbs = limbs};
        memcpy(limbs, value.big->num, limb_count(value) * sizeof *limbs);
        limbs += limb_count(value);
    }
}

static etch_program *assemble(const etch_operations *o, uint32_t registers, uint32_t count)
{
    layout l = lay_out(o, count);
    char *block = malloc(l.total);
    if (!block)
        return NULL;
    etch_program *program = (etch_program *)(void *)block;
    etch_instruction *code = (etch_instruction *)(void *)(block + l.code);
    etch_program_constant *constants = (etch_program_constant *)(void *)(block + l.constants);
    const char **variables = (const char **)(void *)(block + l.variables);
    etch_program_output *outputs = (etch_program_output *)(void *)(block + l.outputs);
    char *text = block + l.text;
    memcpy(code, o->code.at, o->code.count * sizeof *code);
    memcpy(outputs, o->outputs, count * sizeof *outputs);
    copy_constants(o, constants, (mp_limb_t *)(void *)(block + l.limbs));
    for (uint32_t i = 0; i < o->variables.count; i++) {
        size_t size = strlen(o->variables.at[i]->name) + 1;
        variables[i] = memcpy(text, o->variables.at[i]->name, size);
        text += size;
    }
    *program = (etch_program){.instruction_count = o->code.count,
                              .register_count = registers,
                              .variable_count = o->variables.count,
                              .constant_count = o->constants.count,
                              .formula_count = count,
                              .code = code,
                              .constants = constants,
                              .variables = variables,
                              .outputs = outputs};
    return program;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

typedef struct compilation {
    const etch_sym *sym;
    uint32_t count;
    const etch_expr *exprs;
    etch_mem *mem;
    etch_program *program;
} compilation;

static etch_status compile(void *data)
{
    compilation *c = data;
    etch_arena *arena = etch_arena_new(c->mem);
    etch_operations o = {0};
    program_operations(c->sym, arena, c->count, c->exprs, &o);
    uint32_t registers = place_results(arena, &o);
    c->program = assemble(&o, registers, c->count);
    return c->program ? ETCH_OK : ETCH_ENOMEM;
}

etch_status etch_compile(const etch_sym *sym, uint32_t count, const etch_expr *exprs, etch_program **program)
{
    *program = NULL;
    if (count == 0)
        return ETCH_EINPUT;
    for (uint32_t i = 0; i < count; i++)
        if (!exprs[i] || sym_is_foreign(sym, exprs[i]))
            return ETCH_EINPUT;
    compilation c = {.sym = sym, .count = count, .exprs = exprs, .mem = etch_mem_new(COMPILE_MEMORY)};
    if (!c.mem)
        return ETCH_ENOMEM;
    etch_status status = etch_guard(c.mem, compile, &c);
    etch_mem_free(c.mem);
    *program = c.program;
    return status;
}

void etch_program_free(etch_program *program)
{
    free(program);
}

size_t etch_program_formulas(const etch_program *program)
{
    return program->formula_count;
}

size_t etch_program_variables(const etch_program *program)
{
    return program->variable_count;
}

const char *etch_program_variable(const etch_program *program, size_t index)
{
    return index < program->variable_count ? program->variables[index] : NULL;
}

size_t etch_program_instructions(const etch_program *program)
{
    return program->instruction_count;
}

size_t etch_program_registers(const etch_program *program)
{
    return program->register_count;
}
