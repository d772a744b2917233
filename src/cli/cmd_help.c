/* etch help: everything here is read off the tables of commands, options, ops and quantities. */
#include "cli_int.h"

#include <stdio.h>
#include <string.h>

static const char quantity_notes[] =
    "\n"
    "P is forward, recompute, backward, sync (gradient reduction), optimizer, or step:\n"
    "all of them; dgrad and wgrad are the parts of backward, wgrad what makes gradients of\n"
    "weights and nothing else. X is `model`, or a module of it. FLOP are those of the whole\n"
    "job, the global batch and one step, unless the quantity is of one rank. Quantities of\n"
    "a rank need a plan. What is saved is that of one microbatch: saved(model), or of the\n"
    "values that the backward pass of a part reads, saved(of = M). memory(C) is the most that\n"
    "a rank of a stage holds at a time. time, tokens_per_second, mfu, hfu, days,\n"
    "device_hours, cost, goodput and energy are those of a run of the step, on the machine of\n"
    "--machine or of the spec.\n"
    "\n"
    "  of = M          one call of a module, one iteration of a loop, or one execution\n"
    "                  of what computes a tensor, named by its tag or as module.tensor;\n"
    "                  over the global batch\n"
    "  op = NAME       only ops, or collectives, of this name\n"
    "  axis = A, (A,B) only collectives over exactly these mesh axes\n"
    "  buffers = true  with tables that are no parameters: weight t[N] tag buffer\n"
    "  plan =, run =   instead of --plan, --run\n"
    "  count = PRESET, causal = full, ...\n"
    "                  what counts as FLOP, instead of --count: `etch help counts`\n"
    "\n"
    "  flops(forward, of = block)\n"
    "  comm(step, op = all_gather, axis = tp)\n"
    "  flops(step)/params(model)\n";

static const char count_notes[] =
    "\n"
    "`--count LIST` holds for all FLOP of a query or proof: a preset, items, or a preset and\n"
    "then items that differ from it. In an expression they are arguments of a quantity.\n"
    "\n"
    "  etch query SPEC 'flops(step)' --count megatron\n"
    "  etch query SPEC 'flops(forward)' --count causal=full,elementwise=no\n"
    "  etch query SPEC 'flops(step, count = megatron, causal = full)/flops(step)'\n";

cli_exit cli_help_overview(void)
{
    printf("etch: exact cost formulas and Chakra traces of a model and its parallel plan\n\n");
    const cli_command *command;
    for (size_t i = 0; (command = cli_command_at(i)) != NULL; i++) {
        char usage[64];
        snprintf(usage, sizeof usage, "etch %s %s", command->name, command->words);
        printf("  %-26s %s\n", usage, command->summary);
    }
    printf("\nOptions of check, query, prove, lower, show and simulate, which may stand anywhere:\n");
    cli_print_options(CLI_SPEC, true);
    printf("\n`etch help COMMAND` says what else a command takes.\n");
    printf("\nExit status: 0 done, 1 the input has errors or a statement is refuted, 2 usage,\n"
           "3 input/output or memory, 4 a limit or cancelled, 5 could not be decided,\n"
           "70 a bug of etch.\n");
    return CLI_DONE;
}

cli_exit cli_help_command(const cli_command *command)
{
    printf("usage: etch %s %s [options]\n\n%s\n\n", command->name, command->words, command->summary);
    printf("%s\nOptions:\n", command->details);
    cli_print_options(command->bit, false);
    return CLI_DONE;
}

static cli_exit print_table(etch_status (*describe)(char **text), const char *notes)
{
    char *text;
    etch_status status = describe(&text);
    if (status == ETCH_OK)
        printf("%s%s", text, notes);
    else
        fprintf(stderr, "etch: %s\n", etch_status_text(status));
    etch_text_free(text);
    return cli_exit_of(status);
}

static const struct {
    const char *name;
    void (*print)(void);
} shells[] = {{"bash", cli_print_bash}, {"zsh", cli_print_zsh}, {"fish", cli_print_fish}};
enum { SHELLS = sizeof shells / sizeof *shells };

static cli_exit refuse_topic(const cli_command *help, const char *topic)
{
    enum { MOST = 64 };
    const char *names[MOST] = {"ops", "quantities", "counts", "models", "machines", "man"};
    size_t count = 6;
    for (size_t i = 0; i < SHELLS; i++)
        names[count++] = shells[i].name;
    for (size_t i = 0; cli_command_at(i) && count < MOST; i++)
        names[count++] = cli_command_at(i)->name;
    for (const cli_topic *page = cli_topics; page->name && count < MOST; page++)
        names[count++] = page->name;
    const char *near = etch_suggest(topic, names, count);
    if (near)
        return cli_usage_error(help, "there is no help on '%s'; did you mean '%s'?", topic, near);
    return cli_usage_error(help, "there is no help on '%s'", topic);
}

cli_exit cli_help(const cli_arguments *arguments)
{
    if (arguments->word_count == 0)
        return cli_help_overview();
    const char *topic = arguments->words[0];
    if (strcmp(topic, "ops") == 0)
        return print_table(etch_describe_ops, "");
    if (strcmp(topic, "quantities") == 0)
        return print_table(etch_describe_quantities, quantity_notes);
    if (strcmp(topic, "counts") == 0)
        return print_table(etch_describe_counts, count_notes);
    if (strcmp(topic, "models") == 0 || strcmp(topic, "machines") == 0)
        return cli_print_installed(topic);
    if (strcmp(topic, "man") == 0)
        return cli_print_manual();
    for (const cli_topic *page = cli_topics; page->name; page++)
        if (strcmp(topic, page->name) == 0) {
            fwrite(page->text, 1, page->length, stdout);
            return CLI_DONE;
        }
    for (size_t i = 0; i < SHELLS; i++)
        if (strcmp(topic, shells[i].name) == 0) {
            shells[i].print();
            return CLI_DONE;
        }
    const cli_command *command = cli_command_of(topic);
    if (command)
        return cli_help_command(command);
    return refuse_topic(arguments->command, topic);
}
