/* Completion for shells, made of the tables of commands and options. */
#include "cli_int.h"

#include <stdio.h>
#include <string.h>

static size_t name_length(const cli_option *option)
{
    return strcspn(option->text, " ");
}

static void put_commands(const char *separator)
{
    const cli_command *command;
    for (size_t i = 0; (command = cli_command_at(i)) != NULL; i++)
        printf("%s%s", i ? separator : "", command->name);
}

static void put_options(unsigned bit)
{
    cli_option option;
    for (size_t i = 0; cli_option_at(i, &option); i++)
        if (option.commands & bit)
            printf(" %.*s", (int)name_length(&option), option.text);
}

void cli_print_bash(void)
{
    const cli_command *command;
    puts("# Completion of etch for bash.\n"
         "_etch()\n"
         "{\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} command= i\n"
         "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "        case ${COMP_WORDS[i]} in\n"
         "        -*) ;;\n"
         "        *) command=${COMP_WORDS[i]}; break ;;\n"
         "        esac\n"
         "    done\n"
         "    local words=\n"
         "    case $command in");
    for (size_t i = 0; (command = cli_command_at(i)) != NULL; i++) {
        printf("    %s) words=\"", command->name);
        put_options(command->bit);
        puts("\" ;;");
    }
    fputs("    *) words=\"", stdout);
    put_commands(" ");
    puts("\" ;;\n"
         "    esac\n"
         "    if [[ -z $command || $word == -* ]]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "    else\n"
         "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
         "    fi\n"
         "}\n"
         "complete -o filenames -F _etch etch");
}

/* A text in single quotes, without what ends them or means something to _describe. */
static void put_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\n')
            putchar(' ');
        else if (text[i] != '\'' && text[i] != ':')
            putchar(text[i]);
}

void cli_print_zsh(void)
{
    const cli_command *command;
    cli_option option;
    puts("#compdef etch\n"
         "# Completion of etch for zsh.\n"
         "local -a commands options\n"
         "commands=(");
    for (size_t i = 0; (command = cli_command_at(i)) != NULL; i++) {
        printf("    '%s:", command->name);
        put_plain(command->summary, strlen(command->summary));
        puts("'");
    }
    puts(")\n"
         "if (( CURRENT == 2 )); then\n"
         "    _describe command commands\n"
         "    return\n"
         "fi\n"
         "case $words[2] in");
    for (size_t i = 0; (command = cli_command_at(i)) != NULL; i++) {
        printf("%s)\n    options=(\n", command->name);
        for (size_t k = 0; cli_option_at(k, &option); k++)
            if (option.commands & command->bit) {
                printf("        '%.*s:", (int)name_length(&option), option.text);
                put_plain(option.help, strlen(option.help));
                puts("'");
            }
        puts("    )\n    ;;");
    }
    puts("esac\n"
         "if [[ $PREFIX == -* ]]; then\n"
         "    _describe option options\n"
         "else\n"
         "    _files\n"
         "fi");
}

void cli_print_fish(void)
{
    const cli_command *command;
    cli_option option;
    puts("# Completion of etch for fish.");
    for (size_t i = 0; (command = cli_command_at(i)) != NULL; i++) {
        printf("complete -c etch -n __fish_use_subcommand -f -a %s -d '", command->name);
        put_plain(command->summary, strlen(command->summary));
        puts("'");
    }
    for (size_t k = 0; cli_option_at(k, &option); k++) {
        fputs("complete -c etch -n '__fish_seen_subcommand_from", stdout);
        for (size_t i = 0; (command = cli_command_at(i)) != NULL; i++)
            if (option.commands & command->bit)
                printf(" %s", command->name);
        printf("' -l %.*s", (int)name_length(&option) - 2, option.text + 2);
        if (option.letter)
            printf(" -s %c", option.letter);
        if (option.text[name_length(&option)])
            fputs(" -r", stdout);
        fputs(" -d '", stdout);
        put_plain(option.help, strlen(option.help));
        puts("'");
    }
}
