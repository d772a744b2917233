/* Random schedules of a stage line: those of the table, and orders that are listed. */
#include "exec_random.h"

#include "exec_env.h"

/* ---- orders ------------------------------------------------------------------------------------------- */

/* Second halves that a stage has still to do: each some actions later, or in the end. */
typedef struct later {
    etch_action at[64];
    uint32_t count;
} later;

static void put_action(etch_buf *text, char letter, const etch_action *action)
{
    const bool begins = text->length == 0 || text->text[text->length - 1] == ';';
    etch_buf_printf(text, "%s%c%u.%u", begins ? "" : ",", letter, (uint32_t)action->microbatch,
                    action->chunk);
}

static void put_later(etch_buf *text, later *l, uint32_t which)
{
    put_action(text, 'W', &l->at[which]);
    l->at[which] = l->at[--l->count];
}

/* Backward in halves where the dice say so. Nothing waits for the second one. */
static void put_stage(etch_buf *text, exec_dice *dice, const etch_pipe *pipe, uint32_t stage, bool halves)
{
    enum { MOST = sizeof(((later *)NULL)->at) / sizeof(etch_action) };
    const etch_action *actions = etch_actions(text->arena, pipe, stage);
    later l = {.count = 0};
    for (uint64_t i = 0; i < etch_action_count(pipe); i++) {
        const bool goes_back = actions[i].kind != ETCH_ACTION_FORWARD;
        const bool splits = goes_back && halves && l.count < MOST && exec_roll(dice, 3);
        put_action(text, !goes_back ? 'F' : splits ? 'I' : 'B', &actions[i]);
        if (splits)
            l.at[l.count++] = actions[i];
        if (l.count > 0 && exec_roll(dice, 2))
            put_later(text, &l, exec_roll(dice, l.count));
    }
    while (l.count > 0)
        put_later(text, &l, exec_roll(dice, l.count));
}

/* The order of a schedule without halves, each stage with halves of its own. */
static const char *random_order(etch_arena *arena, exec_dice *dice, uint32_t stages, uint32_t microbatches)
{
    static const char *const bases[] = {"one_f_one_b", "one_f_one_b", "gpipe", "interleaved"};
    const char *base = bases[exec_roll(dice, sizeof bases / sizeof *bases)];
    const bool halves = exec_roll(dice, 4) > 0;
    const etch_schedule *schedule = etch_schedule_named(base);
    const etch_pipe pipe = {.schedule = schedule,
                            .stages = stages,
                            .chunks = etch_schedule_has_chunks(schedule) ? 2 : 1,
                            .microbatches = microbatches,
                            .trains = true};
    etch_buf text = {.arena = arena};
    for (uint32_t stage = 0; stage < stages; stage++) {
        if (stage > 0)
            etch_buf_puts(&text, ";");
        put_stage(&text, dice, &pipe, stage, halves);
    }
    return etch_text(arena, "list=%s", text.text);
}

/* ---- the entry point ---------------------------------------------------------------------------------- */

const char *exec_random_schedule(const exec_model *m, exec_dice *dice, uint32_t stages)
{
    static const char *const schedules[] = {
        "gpipe", "one_f_one_b", "one_f_one_b", "interleaved virtual=1",   "interleaved virtual=2",
        "zb_h1", "zb_h1",       "zb_h2",       "interleaved virtual=2",   "breadth_first virtual=1",
        "zb_v",  "zb_v",        "dualpipev",   "breadth_first virtual=2", "dualpipe"};
    enum { TABLE = sizeof schedules / sizeof *schedules, ORDERS = 3 };
    const uint32_t at = exec_roll(dice, TABLE + ORDERS);
    return at < TABLE ? schedules[at] : random_order(m->arena, dice, stages, exec_integer(m->train.micro));
}
