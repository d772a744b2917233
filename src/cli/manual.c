/* The manual page: the tables of commands and options once more, for man(1). */
#include "cli_int.h"

#include <stdio.h>
#include <string.h>

/* Text as man(7) takes it: a backslash and a hyphen are escaped, and no line begins with a dot or a quote. */
static void put(const char *text)
{
    bool begins = true;
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        begins = *text == '\n';
    }
}

/* Lines that stay as they are. */
static void put_lines(const char *text)
{
    puts(".nf");
    put(text);
    puts(".fi");
}

static void put_commands(void)
{
    const cli_command *command;
    puts(".SH COMMANDS");
    for (size_t i = 0; (command = cli_command_at(i)) != NULL; i++) {
        printf(".SS etch %s ", command->name);
        put(command->words);
        putchar('\n');
        put_lines(command->details);
    }
}

static void put_takers(unsigned commands)
{
    const cli_command *command;
    const char *separator = "Of ";
    for (size_t i = 0; (command = cli_command_at(i)) != NULL; i++)
        if (commands & command->bit) {
            printf("%s%s", separator, command->name);
            separator = ", ";
        }
    puts(".");
}

static void put_options(void)
{
    cli_option option;
    puts(".SH OPTIONS");
    for (size_t i = 0; cli_option_at(i, &option); i++) {
        puts(".TP");
        fputs(".B ", stdout);
        if (option.letter)
            printf("\\-%c, ", option.letter);
        put(option.text);
        putchar('\n');
        put(option.help);
        puts(".");
        put_takers(option.commands);
    }
}

cli_exit cli_print_manual(void)
{
    puts(
        ".TH ETCH 1 \"\" \"etch " ETCH_VERSION "\"\n"
        ".SH NAME\n"
        "etch \\- exact cost formulas and Chakra traces of a model and its parallel plan\n"
        ".SH SYNOPSIS\n"
        ".B etch\n"
        ".I COMMAND\n"
        "[arguments] [options]\n"
        ".SH DESCRIPTION\n"
        "etch reads one text spec of a model, a forward pass with named dimensions, and of its parallel "
        "plan.\n"
        "It gives exact formulas of parameters, FLOP, bytes, communication and memory, and Chakra execution\n"
        "traces of every rank.");
    put_commands();
    put_options();
    puts(".SH EXIT STATUS\n"
         "0 done; 1 the input has errors, or a check is refuted; 2 wrong usage; 3 input, output or memory;\n"
         "4 a limit, or cancelled; 5 could not be decided; 70 a bug of etch.\n"
         ".SH FILES\n"
         ".TP\n"
         ".I DIR/NAME.RANK.et\n"
         "the trace of a rank, Chakra in protobuf\n"
         ".TP\n"
         ".I DIR/comm_group.json\n"
         "which ranks communicate with each other\n"
         ".TP\n"
         ".I DIR/manifest.json\n"
         "what was lowered, and what it adds up to\n"
         ".SH ENVIRONMENT\n"
         ".TP\n"
         ".I ETCH_PATH\n"
         "folders, joined by colons, in which a spec is looked for that is named without a folder and is not "
         "in\n"
         "the current one; after them come the installed models");
    return CLI_DONE;
}
