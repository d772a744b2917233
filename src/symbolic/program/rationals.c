/* One configuration in rational numbers of any size, up to a limit on their length. */
#include <stdlib.h>
#include <string.h>

#include "symbolic/program/program_int.h"

enum { MOST_LIMBS = 5200 /* 100,000 digits */ };
enum { MOST_BITS = MOST_LIMBS * 64 };

typedef struct rational {
    mpq_t value;
    /* of what is no number: undefined or too long; else integer */
    etch_value_kind kind;
} rational;

struct etch_rationals {
    /* of what GMP takes */
    etch_mem *mem;
    /* memory ran out in a run, and took what the registers had */
    bool failed;
    /* constants and variables as operands */
    rational operands[2];
    uint32_t count;
    rational registers[];
};

static etch_status begin_registers(void *data)
{
    etch_rationals *r = data;
    sym_gmp_begin(r->mem);
    mpq_inits(r->operands[0].value, r->operands[1].value, NULL);
    for (uint32_t i = 0; i < r->count; i++)
        mpq_init(r->registers[i].value);
    sym_gmp_end();
    return ETCH_OK;
}

static void end_registers(etch_rationals *r)
{
    sym_gmp_begin(r->mem);
    mpq_clears(r->operands[0].value, r->operands[1].value, NULL);
    for (uint32_t i = 0; i < r->count; i++)
        mpq_clear(r->registers[i].value);
    sym_gmp_end();
}

etch_rationals *program_rationals_new(const etch_program *program)
{
    etch_rationals *r = malloc(sizeof *r + program->register_count * sizeof *r->registers);
    if (!r)
        return NULL;
    r->mem = etch_mem_new(SIZE_MAX);
    r->count = program->register_count;
    r->failed = !r->mem || etch_guard(r->mem, begin_registers, r) != ETCH_OK;
    if (!r->failed)
        return r;
    program_rationals_free(r);
    return NULL;
}

void program_rationals_free(etch_rationals *r)
{
    if (!r)
        return;
    if (!r->failed)
        end_registers(r);
    etch_mem_free(r->mem);
    free(r);
}

static void set_word(mpz_ptr to, int64_t value)
{
    mp_limb_t limb = value < 0 ? -(mp_limb_t)value : (mp_limb_t)value;
    mpz_t view;
    mpz_set(to, mpz_roinit_n(view, &limb, value < 0 ? -1 : value > 0));
}

static const rational *operand_of(const etch_program *p, uint32_t index, const etch_configuration *at,
                                  etch_rationals *r, int side)
{
    const etch_instruction *in = &p->code[index];
    if (op_has_operands(in->op))
        return &r->registers[in->place];
    rational *to = &r->operands[side];
    to->kind = ETCH_VALUE_INTEGER;
    mpz_set_ui(mpq_denref(to->value), 1);
    if (in->op == ETCH_OP_CONSTANT) {
        const etch_program_constant *constant = &p->constants[in->a];
        mpz_t view;
        if (constant->size == 0)
            set_word(mpq_numref(to->value), constant->small);
        else
            mpz_set(mpq_numref(to->value), mpz_roinit_n(view, constant->limbs, constant->size));
        return to;
    }
    set_word(mpq_numref(to->value), column_value(&at->columns[in->a], at->at));
    set_word(mpq_denref(to->value), column_denominator(&at->columns[in->a], at->at));
    mpq_canonicalize(to->value);
    return to;
}

static size_t bits_of(mpq_srcptr value)
{
    size_t num = mpz_sizeinbase(mpq_numref(value), 2), den = mpz_sizeinbase(mpq_denref(value), 2);
    return num > den ? num : den;
}

static etch_value_kind raise(mpq_ptr to, mpq_srcptr base, uint32_t exp)
{
    /* a number of b bits is at least 2^(b-1) */
    if ((bits_of(base) - 1) * exp > MOST_BITS)
        return ETCH_VALUE_TOO_LONG;
    mpz_pow_ui(mpq_numref(to), mpq_numref(base), exp);
    mpz_pow_ui(mpq_denref(to), mpq_denref(base), exp);
    return ETCH_VALUE_INTEGER;
}

static bool is_power_of_two(mpq_srcptr a)
{
    return mpq_sgn(a) > 0 && mpz_cmp_ui(mpq_denref(a), 1) == 0 && mpz_popcount(mpq_numref(a)) == 1;
}

static etch_value_kind execute(const etch_instruction *in, const rational *a, const rational *b, mpq_ptr to)
{
    if (a->kind != ETCH_VALUE_INTEGER || b->kind != ETCH_VALUE_INTEGER)
        return a->kind > b->kind ? a->kind : b->kind;
    switch ((etch_program_op)in->op) {
    case ETCH_OP_ADD:
        mpq_add(to, a->value, b->value);
        break;
    case ETCH_OP_SUB:
        mpq_sub(to, a->value, b->value);
        break;
    case ETCH_OP_MUL:
        mpq_mul(to, a->value, b->value);
        break;
    case ETCH_OP_MAX:
        mpq_set(to, mpq_cmp(a->value, b->value) >= 0 ? a->value : b->value);
        break;
    case ETCH_OP_POW:
        return raise(to, a->value, in->b);
    case ETCH_OP_POW2:
        mpq_set_ui(to, is_power_of_two(a->value), 1);
        break;
    default:
        if (mpq_sgn(b->value) == 0)
            return ETCH_VALUE_UNDEFINED;
        mpq_div(to, a->value, b->value);
        if (in->op == ETCH_OP_FLOOR_DIV) {
            mpz_fdiv_q(mpq_numref(to), mpq_numref(to), mpq_denref(to));
            mpz_set_ui(mpq_denref(to), 1);
        }
    }
    return bits_of(to) > MOST_BITS ? ETCH_VALUE_TOO_LONG : ETCH_VALUE_INTEGER;
}

/* False when memory is out. */
static bool describe(const rational *value, etch_outcome *o)
{
    *o = (etch_outcome){.kind = value->kind};
    if (value->kind != ETCH_VALUE_INTEGER)
        return true;
    bool is_integer = mpz_cmp_ui(mpq_denref(value->value), 1) == 0;
    if (is_integer && mpz_fits_slong_p(mpq_numref(value->value))) {
        o->value = mpz_get_si(mpq_numref(value->value));
        return true;
    }
    o->kind = is_integer ? ETCH_VALUE_LARGE : ETCH_VALUE_RATIONAL;
    /* digits of both, their signs, the stroke and the end */
    size_t size =
        mpz_sizeinbase(mpq_numref(value->value), 10) + mpz_sizeinbase(mpq_denref(value->value), 10) + 3;
    o->text = malloc(size);
    if (o->text)
        mpq_get_str(o->text, 10, value->value);
    return o->text;
}

static void set_small(rational *to, unsigned long value)
{
    mpq_set_ui(to->value, value, 1);
    to->kind = ETCH_VALUE_INTEGER;
}

/* The instruction that follows a loop's begin or end; sets the values of both. */
static uint32_t step_loop(const etch_program *p, uint32_t at, const etch_configuration *c, etch_rationals *r,
                          uint32_t *rounds)
{
    bool begins = p->code[at].op == ETCH_OP_LOOP;
    uint32_t loop = begins ? at : p->code[at].b, end = p->code[loop].b;
    const rational *count = operand_of(p, p->code[loop].a, c, r, 0);
    rational *index = &r->registers[p->code[loop].place], *sum = &r->registers[p->code[end].place];
    if (begins) {
        set_small(index, 0);
        set_small(sum, 0);
        if (count->kind != ETCH_VALUE_INTEGER)
            sum->kind = count->kind;
    } else {
        const etch_instruction addition = {.op = ETCH_OP_ADD};
        set_small(index, mpz_get_ui(mpq_numref(index->value)) + 1);
        sum->kind = execute(&addition, sum, operand_of(p, p->code[end].a, c, r, 1), sum->value);
    }
    if (sum->kind != ETCH_VALUE_INTEGER || mpq_cmp(index->value, count->value) >= 0)
        return end + 1;
    if (mpq_cmp_ui(count->value, ETCH_MOST_LOOPED, 1) > 0 || ++*rounds > ETCH_MOST_LOOPED) {
        sum->kind = ETCH_VALUE_TOO_LONG;
        return end + 1;
    }
    return loop + 1;
}

/* False when memory is out. */
static bool write_outcomes(const etch_program *p, const etch_configuration *at, etch_rationals *r,
                           uint32_t done, uint32_t *written, etch_outcome *outcomes)
{
    bool described = true;
    for (; *written < p->formula_count && p->outputs[*written].instruction == done; ++*written) {
        etch_outcome *o = &outcomes[p->outputs[*written].formula];
        described = describe(operand_of(p, done, at, r, 0), o) && described;
    }
    return described;
}

typedef struct rational_run {
    const etch_program *program;
    const etch_configuration *at;
    etch_rationals *r;
    etch_outcome *outcomes;
    /* there was memory for the texts */
    bool described;
} rational_run;

static etch_status run_instructions(void *data)
{
    rational_run *run = data;
    const etch_program *program = run->program;
    const etch_configuration *at = run->at;
    etch_rationals *r = run->r;
    uint32_t written = 0, rounds = 0;
    sym_gmp_begin(r->mem);
    for (uint32_t i = 0, next; i < program->instruction_count; i = next) {
        const etch_instruction *in = &program->code[i];
        next = i + 1;
        if (in->op == ETCH_OP_LOOP || in->op == ETCH_OP_SUM) {
            next = step_loop(program, i, at, r, &rounds);
        } else if (op_has_operands(in->op)) {
            const rational *a = operand_of(program, in->a, at, r, 0);
            const rational *b = op_is_binary(in->op) ? operand_of(program, in->b, at, r, 1) : a;
            r->registers[in->place].kind = execute(in, a, b, r->registers[in->place].value);
        }
        /* the end of a loop is passed when the loop is left, also when there was no round */
        run->described = write_outcomes(program, at, r, next - 1, &written, run->outcomes) && run->described;
    }
    sym_gmp_end();
    return ETCH_OK;
}

bool program_run_rationals(const etch_program *program, const etch_configuration *at, etch_rationals *r,
                           etch_outcome *outcomes)
{
    rational_run run = {program, at, r, outcomes, true};
    memset(outcomes, 0, program->formula_count * sizeof *outcomes);
    r->failed = etch_guard(r->mem, run_instructions, &run) != ETCH_OK;
    const bool done = !r->failed && run.described;
    for (uint32_t f = 0; !done && f < program->formula_count; f++)
        free(outcomes[f].text);
    return done;
}
