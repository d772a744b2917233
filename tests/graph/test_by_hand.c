/* Schedules of the table one by one: their orders written by hand, their formulas with symbols, and which
 * chunks share slots. */
#include "pipes.h"

/* ---- orders written by hand ---------------------------------------------------------------------------- */

/* Forward slots as the microbatch, backward slots with a ' behind it, their second halves with "; chunk 1 and
 * later with a letter; & before what shares the slot. */
static void check_order(etch_arena *arena, const etch_pipe *pipe, uint32_t stage, const char *expected)
{
    const etch_action *slots = etch_actions(arena, pipe, stage);
    etch_buf text = {.arena = arena};
    for (uint64_t i = 0; i < etch_action_count(pipe); i++)
        etch_buf_printf(&text, "%s%u%s%s",
                        !i                  ? ""
                        : slots[i].overlaps ? "&"
                                            : " ",
                        (unsigned)slots[i].microbatch,
                        slots[i].chunk == 0   ? ""
                        : slots[i].chunk == 1 ? "b"
                                              : "c",
                        pass_of(slots[i]) == WEIGHTS ? "\""
                        : pass_of(slots[i]) == BACK  ? "'"
                                                     : "");
    ck_assert_str_eq(text.text, expected);
}

static void orders_by_hand(etch_arena *arena)
{
    const etch_pipe gpipe = {etch_schedule_named("gpipe"), 4, 1, 3, true};
    check_order(arena, &gpipe, 0, "0 1 2 0' 1' 2'");
    check_order(arena, &gpipe, 3, "0 1 2 0' 1' 2'");

    const etch_pipe alone = {etch_schedule_named("one_f_one_b"), 1, 1, 2, true};
    check_order(arena, &alone, 0, "0 0' 1 1'");
    const etch_pipe ofob = {etch_schedule_named("one_f_one_b"), 4, 1, 6, true};
    check_order(arena, &ofob, 0, "0 1 2 3 0' 4 1' 5 2' 3' 4' 5'");
    check_order(arena, &ofob, 1, "0 1 2 0' 3 1' 4 2' 5 3' 4' 5'");
    check_order(arena, &ofob, 3, "0 0' 1 1' 2 2' 3 3' 4 4' 5 5'");
    const etch_pipe few = {etch_schedule_named("one_f_one_b"), 4, 1, 2, true};
    check_order(arena, &few, 0, "0 1 0' 1'");
    check_order(arena, &few, 2, "0 1 0' 1'");
    check_order(arena, &few, 3, "0 0' 1 1'");

    const etch_schedule *interleaved = etch_schedule_named("interleaved");
    const etch_pipe two = {interleaved, 2, 2, 4, true};
    check_order(arena, &two, 0, "0 1 0b 1b 2 0b' 3 1b' 2b 0' 3b 1' 2b' 3b' 2' 3'");
    check_order(arena, &two, 1, "0 1 0b 0b' 1b 1b' 2 0' 3 1' 2b 2b' 3b 3b' 2' 3'");
    const etch_pipe capped = {interleaved, 4, 2, 4, true};
    check_order(arena, &capped, 0, "0 1 2 3 0b 1b 2b 3b 0b' 1b' 2b' 3b' 0' 1' 2' 3'");
    const etch_pipe uneven = {interleaved, 2, 2, 3, true};
    check_order(arena, &uneven, 0, "0 1 0b 1b 2 0b' 1b' 2b 0' 1' 2b' 2'");
    check_order(arena, &uneven, 1, "0 1 0b 0b' 1b 1b' 2 0' 1' 2b 2b' 2'");
    const etch_pipe forward = {interleaved, 2, 3, 3, false};
    check_order(arena, &forward, 1, "0 1 0b 1b 0c 1c 2 2b 2c");

    /* as in the paper's figure 3 */
    const etch_pipe zb = {etch_schedule_named("zb_h1"), 4, 1, 6, true};
    check_order(arena, &zb, 0, "0 1 2 3 0' 0\" 4 1' 1\" 5 2' 2\" 3' 3\" 4' 4\" 5' 5\"");
    check_order(arena, &zb, 1, "0 1 2 0' 3 1' 0\" 4 2' 1\" 5 3' 2\" 4' 3\" 5' 4\" 5\"");
    check_order(arena, &zb, 3, "0 0' 1 1' 2 2' 3 3' 0\" 4 4' 1\" 5 5' 2\" 3\" 4\" 5\"");
    const etch_pipe h2 = {etch_schedule_named("zb_h2"), 3, 1, 6, true};
    check_order(arena, &h2, 0, "0 1 2 3 4 0' 0\" 5 1' 1\" 2' 2\" 3' 3\" 4' 4\" 5' 5\"");
    check_order(arena, &h2, 1, "0 1 2 0' 3 1' 4 2' 0\" 5 3' 1\" 4' 2\" 5' 3\" 4\" 5\"");
    check_order(arena, &h2, 2, "0 0' 1 1' 2 2' 3 3' 4 4' 0\" 5 5' 1\" 2\" 3\" 4\" 5\"");

    const etch_pipe breadth = {etch_schedule_named("breadth_first"), 2, 2, 3, true};
    check_order(arena, &breadth, 0, "0 1 2 0b 1b 2b 0b' 1b' 2b' 0' 1' 2'");
    check_order(arena, &breadth, 1, "0 1 2 0b 1b 2b 0b' 1b' 2b' 0' 1' 2'");
}

/* Two chunks, of which the second comes back, or is of the other end. */
static void orders_of_two_chunks(etch_arena *arena)
{
    const etch_pipe zb_v = {etch_schedule_named("zb_v"), 2, 2, 4, true};
    check_order(arena, &zb_v, 0,
                "0 1 2 0b 0b' 0b\" 1b 1b' 1b\" 3 0' 0\" 2b 2b' 2b\" 1' 1\" 3b 3b' 3b\" 2' 2\" 3' 3\"");
    check_order(arena, &zb_v, 1,
                "0 0b 1 1b 0b' 0b\" 2 0' 0\" 2b 1b' 1b\" 3 1' 1\" 3b 2b' 2b\" 2' 3b' 3' 2\" 3b\" 3\"");
    /* as the repository of DualPipe has it, of 2 ranks and 4 microbatches */
    const etch_pipe dualpipev = {etch_schedule_named("dualpipev"), 2, 2, 4, true};
    check_order(arena, &dualpipev, 0,
                "0 1 2 0b 0b' 0b\" 1b 3&1b'&1b\" 2b&0'&0\" 2b'&2b\" 3b&1'&1\" 3b'&3b\" 2' 2\" 3' 3\"");
    check_order(arena, &dualpipev, 1,
                "0 0b 1 1b 2 0b'&0b\" 2b&0'&0\" 3&1b'&1b\" 3b&1'&1\" 2b'&2b\" 2'&2\" 3b' 3' 3b\" 3\"");
    /* the same from either end */
    const etch_pipe dualpipe = {etch_schedule_named("dualpipe"), 4, 2, 8, true};
    check_order(arena, &dualpipe, 0,
                "0 2 4 1b 1b' 1b\" 3b 6&3b'&3b\" 5b&0'&0\" 5b'&5b\" 7b&2'&2\" 7b'&7b\" 4' 4\" 6' 6\"");
    check_order(arena, &dualpipe, 2,
                "1 0b 3 2b 5 0b'&0b\" 4b&1'&1\" 7&2b'&2b\" 6b&3'&3\" 4b'&4b\" 5'&5\" 6b' 7' 6b\" 7\"");
    check_order(arena, &dualpipe, 3,
                "1 3 5 0b 0b' 0b\" 2b 7&2b'&2b\" 4b&1'&1\" 4b'&4b\" 6b&3'&3\" 6b'&6b\" 5' 5\" 7' 7\"");
}

START_TEST(test_orders_by_hand)
{
    etch_with_arena(orders_by_hand);
    etch_with_arena(orders_of_two_chunks);
}
END_TEST

START_TEST(test_names)
{
    ck_assert_ptr_null(etch_schedule_named("one_f_two_b"));
    ck_assert_ptr_null(etch_schedule_named(""));
    ck_assert_str_eq(etch_schedule_name(etch_schedule_default()), "one_f_one_b");
    const etch_schedule *schedule;
    for (uint32_t i = 0; (schedule = etch_schedule_at(i)) != NULL; i++)
        ck_assert_ptr_eq(etch_schedule_named(etch_schedule_name(schedule)), schedule);
    ck_assert(etch_schedule_has_chunks(etch_schedule_named("interleaved")));
    ck_assert(!etch_schedule_has_chunks(etch_schedule_default()));
}
END_TEST

/* ---- shared slots -------------------------------------------------------------------------------------- */

/* Does a slot go forward through the one chunk and back through the other? */
static bool has_pair(const etch_pipe *pipe, const etch_action *actions, uint32_t forward, uint32_t back)
{
    for (uint64_t i = 0, end; i < etch_action_count(pipe); i = end) {
        end = etch_slot_end(actions, etch_action_count(pipe), i);
        if (end > i + 1 && pass_of(actions[i]) == FORWARD && actions[i].chunk == forward &&
            actions[i + 1].chunk == back)
            return true;
    }
    return false;
}

/* Chunks share slots just where that is said, also of a stage without a number. One stage is no pipeline. */
static void check_pairs(etch_arena *arena, const etch_pipe *pipe)
{
    etch_sym *sym = etch_sym_new(arena);
    const etch_pipe_sizes sizes = sizes_of(sym, pipe);
    bool any[2][2] = {{false}};
    if (pipe->stages == 1 || !etch_schedule_overlaps(pipe->schedule))
        return;
    for (uint32_t stage = 0; stage < pipe->stages; stage++) {
        const etch_action *actions = etch_actions(arena, pipe, stage);
        for (uint32_t pair = 0; pair < 4; pair++) {
            const bool has = has_pair(pipe, actions, pair / 2, pair % 2);
            any[pair / 2][pair % 2] = any[pair / 2][pair % 2] || has;
            require(pipe,
                    etch_schedule_pairs(pipe->schedule, &sizes, number(sym, stage), pair / 2, pair % 2) ==
                        has,
                    "chunks share a slot, or none, and the other is said");
        }
    }
    for (uint32_t pair = 0; pair < 4; pair++)
        require(pipe,
                etch_schedule_pairs(pipe->schedule, &sizes, etch_var(sym, "i"), pair / 2, pair % 2) ==
                    any[pair / 2][pair % 2],
                "chunks share a slot on some stage, or on none, and the other is said");
}

static void all_pairs(etch_arena *arena)
{
    each_pipe(arena, false, check_pairs);
}

START_TEST(test_pairs)
{
    etch_with_arena(all_pairs);
}
END_TEST

/* ---- formulas ------------------------------------------------------------------------------------------ */

static void formulas_with_symbols(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    const etch_pipe_sizes sizes = {etch_var(sym, "pp"), etch_var(sym, "v"), etch_var(sym, "micro")};
    const etch_expr stage = etch_var(sym, "i");
    const struct {
        const char *name, *in_flight, *bubble;
    } rows[] = {
        {"gpipe", "micro", "(pp - 1)/micro"},
        {"one_f_one_b", "min(micro, pp - i)", "(pp - 1)/micro"},
        {"zb_h1", "min(micro, pp - i)", "(2*pp - 1 - min(micro, pp))/(3*micro)"},
        {"zb_h2", "min(micro, 2*(pp - i) - 1)", "(2*pp - 1 - min(micro, 2*pp - 1))/(3*micro)"},
        {"zb_v", "min(2*pp, min(micro, 2*pp - i) + min(micro, i + 1))", "max(0, 2*pp - 1 - micro)/(3*micro)"},
        {"dualpipev", "min(2*pp + 1, min(micro, 2*pp - i) + min(micro, i + 1))", "(pp - 1)/(3*micro)"},
        {"dualpipe",
         "min(pp + 1, min(micro/2, pp - min(i, pp - 1 - i)) + min(micro/2, min(i, pp - 1 - i) + 1))",
         "(pp - 2)/(3*micro)"},
        {"breadth_first", "micro*v", "(pp - 1 + (v - 1)*(pp - min(micro, pp)))/(v*micro)"},
        {"interleaved", "(v - 1)*min(micro, pp) + min(micro, 2*(pp - i - 1) + 1)", "(pp - 1)/(v*micro)"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const etch_schedule *schedule = etch_schedule_named(rows[k].name);
        size_t error_at;
        const etch_expr in_flight =
            etch_expr_parse(sym, rows[k].in_flight, strlen(rows[k].in_flight), &error_at);
        const etch_expr bubble = etch_expr_parse(sym, rows[k].bubble, strlen(rows[k].bubble), &error_at);
        ck_assert_ptr_nonnull(in_flight);
        ck_assert_ptr_nonnull(bubble);
        ck_assert_ptr_eq(etch_in_flight_formula(sym, schedule, &sizes, ETCH_HOLD_FORWARD_TO_INPUTS, stage),
                         in_flight);
        ck_assert_ptr_eq(etch_bubble_formula(sym, schedule, &sizes, true), bubble);
    }
}

START_TEST(test_formulas_with_symbols)
{
    etch_with_arena(formulas_with_symbols);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("by hand");
    ETCH_ADD_TESTS(suite, test_names, test_orders_by_hand, test_pairs, test_formulas_with_symbols);
    return suite;
}
