/* etch verify: do the traces of all ranks run to the end? */
#include "cli_int.h"

#include <inttypes.h>
#include <stdio.h>

static const char *say(etch_verdict_kind verdict)
{
    static const char *const texts[ETCH_VERDICT_COUNT] = {
        [ETCH_VERDICT_NONE] = "broken rules leave nothing to say",
        [ETCH_VERDICT_ALWAYS] = "every rank finishes, whatever the timing",
        [ETCH_VERDICT_BY_TIMING] = "every rank finishes under nominal durations, and may not under others",
        [ETCH_VERDICT_STALLS] = "not every rank finishes",
        [ETCH_VERDICT_BY_PROTOCOL] = "every rank finishes where sends are eager, and not under rendezvous"};
    return texts[verdict];
}

static void print_marks(const etch_verification *v)
{
    uint32_t ready = 0, in_flight = 0;
    for (uint32_t i = 0; i < v->ranks; i++) {
        ready = v->marks[i].ready > ready ? v->marks[i].ready : ready;
        in_flight = v->marks[i].in_flight > in_flight ? v->marks[i].in_flight : in_flight;
    }
    cli_print_field("ready", "%" PRIu32 " nodes of a rank at most", ready);
    cli_print_field("in flight", "%" PRIu32 " microbatches of a rank at most", in_flight);
}

static void print_plain(const etch_verification *v)
{
    if (v->programs == 0)
        cli_print_field("ranks", "%" PRIu32, v->ranks);
    else
        cli_print_field("ranks", "%" PRIu32 " with %" PRIu32 " different program%s", v->ranks, v->programs,
                        v->programs == 1 ? "" : "s");
    cli_print_field("groups", "%" PRIu32, v->groups);
    cli_print_field("nodes",
                    "%" PRIu64 ": %" PRIu64 " compute, %" PRIu64 " collective, %" PRIu64 " send, %" PRIu64
                    " receive, %" PRIu64 " memory",
                    v->nodes, v->computations, v->collectives, v->sends, v->receives, v->memory);
    cli_print_field("bytes", "%" PRIu64, v->bytes);
    if (v->marks)
        print_marks(v);
    const bool both = v->eager != ETCH_VERDICT_COUNT && v->rendezvous != ETCH_VERDICT_COUNT;
    if (both && v->verdict != ETCH_VERDICT_NONE && v->sends > 0)
        cli_print_field("sends", "eager: %s, under rendezvous: %s", etch_verdict_name(v->eager),
                        etch_verdict_name(v->rendezvous));
    cli_print_field("verdict", "%s: %s", etch_verdict_name(v->verdict), say(v->verdict));
}

static json_t *marks_json(const etch_verification *v, bool *failed)
{
    if (!v->marks)
        return json_null();
    json_t *rows = json_array();
    for (uint32_t i = 0; i < v->ranks; i++) {
        json_t *row = json_object();
        cli_json_set(row, "ready", json_integer((json_int_t)v->marks[i].ready), failed);
        cli_json_set(row, "in_flight", json_integer((json_int_t)v->marks[i].in_flight), failed);
        cli_json_append(rows, row, failed);
    }
    return rows;
}

static bool print_json(const etch_verification *v)
{
    bool failed = false;
    json_t *root = json_object(), *nodes = json_object();
    const struct {
        const char *name;
        uint64_t count;
    } kinds[] = {{"all", v->nodes},  {"compute", v->computations}, {"collective", v->collectives},
                 {"send", v->sends}, {"receive", v->receives},     {"memory", v->memory}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        cli_json_set(nodes, kinds[i].name, json_integer((json_int_t)kinds[i].count), &failed);
    cli_json_set(root, "schema", json_string("etch-verify/1"), &failed);
    cli_json_set(root, "verdict", cli_json_text(etch_verdict_name(v->verdict)), &failed);
    cli_json_set(root, "eager", cli_json_text(etch_verdict_name(v->eager)), &failed);
    cli_json_set(root, "rendezvous", cli_json_text(etch_verdict_name(v->rendezvous)), &failed);
    cli_json_set(root, "ranks", json_integer((json_int_t)v->ranks), &failed);
    cli_json_set(root, "programs", json_integer((json_int_t)v->programs), &failed);
    cli_json_set(root, "groups", json_integer((json_int_t)v->groups), &failed);
    cli_json_set(root, "stalled", json_integer((json_int_t)v->stalled), &failed);
    cli_json_set(root, "nodes", nodes, &failed);
    cli_json_set(root, "bytes", json_integer((json_int_t)v->bytes), &failed);
    cli_json_set(root, "marks", marks_json(v, &failed), &failed);
    return cli_print_json(root) && !failed;
}

static etch_protocol protocol_of(const cli_arguments *arguments)
{
    if (arguments->eager == arguments->rendezvous)
        return ETCH_PROTOCOL_BOTH;
    return arguments->eager ? ETCH_PROTOCOL_EAGER : ETCH_PROTOCOL_RENDEZVOUS;
}

cli_exit cli_verify(const cli_arguments *arguments)
{
    const etch_session_options none = {.struct_size = sizeof none};
    const etch_verification_options options = {.struct_size = sizeof options,
                                               .path = arguments->words[0],
                                               .groups = arguments->groups,
                                               .threads = arguments->output.threads,
                                               .protocol = protocol_of(arguments),
                                               .seeds = (uint32_t)arguments->seeds};
    etch_session *session;
    const etch_verification *result = NULL;
    etch_status status = etch_session_open(&none, &session);
    if (status == ETCH_OK)
        status = etch_session_verify(session, &options, &result);
    if (result && arguments->format == ETCH_PLAIN)
        print_plain(result);
    else if (result && !print_json(result))
        status = ETCH_ENOMEM;
    return cli_close(arguments, session, status);
}
