/* Memory over time for people, and as a table: both are read out of the JSON tree. */
#include "timeline_int.h"
#include "tree_read.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    TEXT = CLI_BYTES_TEXT,
    /* of the tensors at the peak, and of the slots of a stage */
    SHOWN_TENSORS = 12,
    SHOWN_SLOTS = 48,
    BAR = 40
};

/* ---- words --------------------------------------------------------------------------------------------- */

const char *cli_bytes_text(uint64_t bytes, char text[CLI_BYTES_TEXT])
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    uint64_t scale = 1;
    unsigned unit = 0;
    if (bytes < 1000) {
        snprintf(text, TEXT, "%" PRIu64 " B", bytes);
        return text;
    }
    while (unit + 1 < sizeof units / sizeof *units && bytes / scale >= 1000) {
        scale *= 1000;
        unit++;
    }
    for (int digits = 2; digits >= 0; digits--) { /* 999.5 of a unit is 1.00 of the next */
        const uint64_t parts = digits == 2 ? 100 : digits == 1 ? 10 : 1, step = scale / parts;
        const uint64_t whole = bytes / step + (bytes % step >= step - step / 2);
        if (whole >= 1000 && digits > 0)
            continue;
        if (whole >= 1000 && unit + 1 < sizeof units / sizeof *units)
            snprintf(text, TEXT, "1.00 %s", units[unit + 1]);
        else if (digits == 0)
            snprintf(text, TEXT, "%" PRIu64 " %s", whole, units[unit]);
        else
            snprintf(text, TEXT, digits == 2 ? "%" PRIu64 ".%02" PRIu64 " %s" : "%" PRIu64 ".%" PRIu64 " %s",
                     whole / parts, whole % parts, units[unit]);
        break;
    }
    return text;
}

/* "F3", and "F3.1" where stages have chunks: microbatch 3 forward in chunk 1. Backward is B, its halves I
 * and W. */
static const char *slot_text(const json_t *stage, const json_t *slot, char text[TEXT])
{
    const char *direction = cli_tree_text(slot, "direction");
    const char letter = !direction                           ? '?'
                        : strcmp(direction, "forward") == 0  ? 'F'
                        : strcmp(direction, "backward") == 0 ? 'B'
                        : direction[0] == 'i'                ? 'I'
                                                             : 'W';
    const json_t *slots = json_object_get(stage, "slots");
    bool has_chunks = false;
    for (size_t i = 0; i < json_array_size(slots); i++)
        has_chunks = has_chunks || cli_tree_number(json_array_get(slots, i), "chunk") > 0;
    if (has_chunks)
        snprintf(text, TEXT, "%c%" PRIu64 ".%" PRIu64, letter, cli_tree_number(slot, "microbatch"),
                 cli_tree_number(slot, "chunk"));
    else
        snprintf(text, TEXT, "%c%" PRIu64, letter, cli_tree_number(slot, "microbatch"));
    return text;
}

static const json_t *slot_of(const json_t *stage, const json_t *row)
{
    return json_array_get(json_object_get(stage, "slots"), (size_t)cli_tree_number(row, "slot"));
}

static const json_t *peak_of(const json_t *stage)
{
    return json_array_get(json_object_get(stage, "rows"), (size_t)cli_tree_number(stage, "peak"));
}

static uint64_t kind_bytes(const json_t *row, size_t kind)
{
    return (uint64_t)json_integer_value(json_array_get(json_object_get(row, "bytes"), kind));
}

/* ---- plain --------------------------------------------------------------------------------------------- */

static void print_place(const json_t *stage, const json_t *row)
{
    char text[TEXT];
    const char *loop = cli_tree_text(row, "loop");
    printf("%s", slot_text(stage, slot_of(stage, row), text));
    if (loop)
        printf(", %s %" PRIu64, loop, cli_tree_number(row, "iteration"));
}

static void print_peak(const json_t *tree, const json_t *stage)
{
    const json_t *kinds = json_object_get(tree, "kinds"), *row = peak_of(stage);
    char text[TEXT];
    const uint64_t total = cli_tree_number(row, "total");
    printf("stage %" PRIu64 ": %" PRIu64 " bytes (%s) in ", cli_tree_number(stage, "stage"), total,
           cli_bytes_text(total, text));
    print_place(stage, row);
    putchar('\n');
    for (size_t k = 0; k < json_array_size(kinds); k++)
        if (kind_bytes(row, k) > 0)
            printf("  %s %s", json_string_value(json_array_get(kinds, k)),
                   cli_bytes_text(kind_bytes(row, k), text));
    putchar('\n');
}

/* Of each slot the most, beside a bar. */
static void print_slots(const json_t *stage)
{
    const json_t *rows = json_object_get(stage, "rows"), *slots = json_object_get(stage, "slots");
    const uint64_t peak = cli_tree_number(peak_of(stage), "total");
    const size_t count = json_array_size(rows);
    printf("\nstage %" PRIu64 ", the most in each slot\n", cli_tree_number(stage, "stage"));
    for (size_t i = 0, shown = 0; i < count && shown < SHOWN_SLOTS; shown++) {
        const uint64_t slot = cli_tree_number(json_array_get(rows, i), "slot");
        uint64_t most = 0;
        char name[TEXT], text[TEXT];
        for (; i < count && cli_tree_number(json_array_get(rows, i), "slot") == slot; i++) {
            const uint64_t total = cli_tree_number(json_array_get(rows, i), "total");
            most = total > most ? total : most;
        }
        const unsigned length = peak / BAR ? (unsigned)(most / (peak / BAR)) : 0;
        printf("  %-6s %8s  ", slot_text(stage, json_array_get(slots, slot), name),
               cli_bytes_text(most, text));
        for (unsigned k = 0; k < length && k < BAR; k++)
            putchar('#');
        putchar('\n');
    }
    if (json_array_size(slots) > SHOWN_SLOTS)
        printf("  and %zu more: --format csv has all\n", json_array_size(slots) - SHOWN_SLOTS);
}

static void print_alive(const json_t *stage)
{
    const json_t *items = json_object_get(stage, "alive");
    const size_t count = json_array_size(items);
    printf("\nstage %" PRIu64 ", what is there at the peak\n", cli_tree_number(stage, "stage"));
    for (size_t i = 0; i < count && i < SHOWN_TENSORS; i++) {
        const json_t *item = json_array_get(items, i);
        const etch_location at = cli_tree_location(item, "location");
        char text[TEXT];
        printf("  %8s  %-13s %s.%s", cli_bytes_text(cli_tree_number(item, "bytes"), text),
               cli_tree_text(item, "kind"), cli_tree_text(item, "module"), cli_tree_text(item, "tensor"));
        if (at.path)
            printf("  %s:%" PRIu32, at.path, at.line);
        putchar('\n');
    }
    uint64_t rest = 0;
    char text[TEXT];
    for (size_t i = SHOWN_TENSORS; i < count; i++)
        rest += cli_tree_number(json_array_get(items, i), "bytes");
    if (rest > 0)
        printf("  %8s  in %zu more\n", cli_bytes_text(rest, text), count - SHOWN_TENSORS);
}

void cli_print_memory_text(const json_t *tree)
{
    const json_t *stages = json_object_get(tree, "stages");
    const json_t *heaviest = json_array_get(stages, (size_t)cli_tree_number(tree, "heaviest"));
    cli_print_field("model", "%s", cli_tree_text(tree, "model"));
    if (cli_tree_text(tree, "config"))
        cli_print_field("config", "%s", cli_tree_text(tree, "config"));
    if (cli_tree_text(tree, "run"))
        cli_print_field("run", "%s", cli_tree_text(tree, "run"));
    cli_print_field("plan", "%s", cli_tree_text(tree, "plan"));
    for (size_t i = 0; i < json_array_size(stages); i++)
        print_peak(tree, json_array_get(stages, i));
    print_slots(heaviest);
    print_alive(heaviest);
}

/* ---- a table ------------------------------------------------------------------------------------------- */

/* A name in quotes where it needs them. */
static void print_cell(const char *text)
{
    const bool quoted = strpbrk(text, ",\"\n") != NULL;
    if (quoted)
        putchar('"');
    for (; *text; text++)
        printf(*text == '"' ? "\"\"" : "%c", *text);
    if (quoted)
        putchar('"');
}

static void print_table_row(const json_t *stage, const json_t *row, size_t kinds)
{
    const json_t *slot = slot_of(stage, row);
    const char *loop = cli_tree_text(row, "loop");
    printf("%" PRIu64 ",%" PRIu64 ",%s,%" PRIu64 ",%" PRIu64 ",", cli_tree_number(stage, "stage"),
           cli_tree_number(row, "slot"), cli_tree_text(slot, "direction"),
           cli_tree_number(slot, "microbatch"), cli_tree_number(slot, "chunk"));
    print_cell(loop ? loop : "");
    putchar(',');
    if (loop)
        printf("%" PRIu64, cli_tree_number(row, "iteration"));
    for (size_t k = 0; k < kinds; k++)
        printf(",%" PRIu64, kind_bytes(row, k));
    printf(",%" PRIu64 "\n", cli_tree_number(row, "total"));
}

void cli_print_memory_csv(const json_t *tree)
{
    const json_t *stages = json_object_get(tree, "stages"), *kinds = json_object_get(tree, "kinds");
    printf("stage,slot,direction,microbatch,chunk,loop,iteration");
    for (size_t k = 0; k < json_array_size(kinds); k++)
        printf(",%s", json_string_value(json_array_get(kinds, k)));
    printf(",total\n");
    for (size_t i = 0; i < json_array_size(stages); i++) {
        const json_t *stage = json_array_get(stages, i), *rows = json_object_get(stage, "rows");
        for (size_t r = 0; r < json_array_size(rows); r++)
            print_table_row(stage, json_array_get(rows, r), json_array_size(kinds));
    }
}
