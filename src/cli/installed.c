/* etch help models, etch help machines: the specs that come with etch. */
#define _XOPEN_SOURCE 700 /* scandir */
#include "cli_int.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_spec(const struct dirent *entry)
{
    return etch_is_spec_name(entry->d_name);
}

/* A line that is too long ends after its last whole word. */
static void cut(char *line, size_t columns)
{
    line[strcspn(line, "\n")] = '\0';
    if (strlen(line) <= columns)
        return;
    line[columns - strlen(" ..") + 1] = '\0';
    char *blank = strrchr(line, ' ');
    strcpy(blank ? blank : line, " ..");
}

/* The first line says in a comment what the spec is. */
static void print_spec(const char *folder, const char *name)
{
    enum { COLUMNS = 79, NAME = 22, LINE = 200 };
    char path[CLI_PATH], line[LINE] = "";
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length > 0 && length < CLI_PATH ? fopen(path, "r") : NULL;
    if (file && !fgets(line, sizeof line, file))
        *line = '\0';
    if (file)
        fclose(file);
    cut(line, COLUMNS - NAME + strlen("# "));
    printf("%-*s%s\n", NAME, name, strncmp(line, "# ", 2) == 0 ? line + 2 : "");
}

cli_exit cli_print_installed(const char *kind)
{
    char folder[CLI_PATH];
    struct dirent **specs;
    const int count = cli_installed_folder(kind, folder) ? scandir(folder, &specs, is_spec, alphasort) : -1;
    if (count < 0) {
        fprintf(stderr, "etch: the %s that come with etch are not installed\n", kind);
        return CLI_IO;
    }
    for (int i = 0; i < count; i++) {
        print_spec(folder, specs[i]->d_name);
        free(specs[i]);
    }
    free(specs);
    return CLI_DONE;
}
