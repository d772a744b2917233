#include "exec_made.h"

#include <string.h>

typedef struct operands {
    uint32_t of[EXEC_OPEN + 1];
} operands;

static operands operands_of(const exec_call *call)
{
    operands o = {0};
    for (uint32_t i = 0; i < call->op->in_count; i++)
        o.of[call->ins[i]->made]++;
    return o;
}

static bool is_sum(const exec_call *call)
{
    return strcmp(etch_row_name(call->op->row), "add_cotangents") == 0;
}

/* In a sum, what is not of backward is a term as any other; elsewhere it does not count. */
static exec_made made_of(const exec_call *call)
{
    const operands o = operands_of(call);
    const bool none_of_backward = o.of[EXEC_GIVEN] == call->op->in_count;
    if (o.of[EXEC_MADE] || none_of_backward || (is_sum(call) && o.of[EXEC_GIVEN]))
        return EXEC_MADE;
    return o.of[EXEC_OPEN] ? EXEC_OPEN : EXEC_NOTHING;
}

void exec_note_made(exec_call *call)
{
    for (uint32_t i = 0; i < call->op->out_count && call->op->phase == ETCH_BACKWARD; i++)
        call->outs[i]->made = made_of(call);
}

static int64_t additions(uint32_t terms)
{
    return terms > 1 ? terms - 1 : 0;
}

bool exec_flop_agrees(const exec_call *call, int64_t counted, int64_t said)
{
    const operands o = operands_of(call);
    const exec_made made = made_of(call);
    const uint32_t sure = o.of[EXEC_GIVEN] + o.of[EXEC_MADE];
    if (!call->op->runs)
        return said == counted;
    if (!is_sum(call))
        return (said == counted && made != EXEC_NOTHING) || (said == 0 && made != EXEC_MADE);
    const int64_t all = additions(call->op->in_count), each = all ? counted / all : 0;
    return each * additions(sure) <= said && said <= each * additions(sure + o.of[EXEC_OPEN]);
}
