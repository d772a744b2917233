/* Reading the rows of a view out of its JSON tree. What a tree lacks reads as NULL, none or 0. */
#ifndef ETCH_CLI_TREE_READ_H
#define ETCH_CLI_TREE_READ_H

#include "graph_int.h"

#include <string.h>

/* Memory of the rows: given back at once. */
typedef struct cli_pool {
    struct cli_block *blocks;
    /* memory was out */
    bool failed;
} cli_pool;

/* `count` zeroed objects of `size` bytes; NULL when memory is out. */
void *cli_pool_take(cli_pool *pool, size_t count, size_t size);
void cli_pool_end(cli_pool *pool);

/* Texts live as long as the tree. */
const char *cli_tree_text(const json_t *row, const char *key);
size_t cli_tree_index(const json_t *row, const char *key);
uint64_t cli_tree_number(const json_t *row, const char *key);
bool cli_tree_flag(const json_t *row, const char *key);
etch_location cli_tree_location(const json_t *row, const char *key);
const size_t *cli_tree_indices(cli_pool *pool, const json_t *row, const char *key, size_t *count);

/* The kind of this name; what is none has the number after the last. */
#define CLI_TREE_KIND(kind, name_of)                                               \
    static inline kind kind##_in(const json_t *row, const char *key)               \
    {                                                                              \
        const char *text = cli_tree_text(row, key);                                \
        unsigned i = 0;                                                            \
        while (name_of((kind)i) && !(text && strcmp(name_of((kind)i), text) == 0)) \
            i++;                                                                   \
        return (kind)i;                                                            \
    }

/* The rows of trees. False: memory is out. */
bool cli_graph_read(cli_pool *pool, const json_t *tree, etch_graph_report *report);
bool cli_plan_read(cli_pool *pool, const json_t *tree, etch_graph_report *graph,
                   etch_placement_report *report);
bool cli_pipeline_read(cli_pool *pool, const json_t *tree, etch_pipeline_report *report);
/* Prints it as SVG. False: memory is out, and nothing is printed. */
bool cli_print_pipeline_svg(cli_pool *pool, const etch_pipeline_report *report);

CLI_TREE_KIND(etch_phase, etch_phase_name)
CLI_TREE_KIND(etch_collective, etch_collective_name)

/* Reads the list `key` of the tree: `read(pool, tree, row)` makes a row of it. */
#define CLI_TREE_LIST(pool, tree, key, type, read, rows, count)                  \
    do {                                                                         \
        const json_t *list = json_object_get((tree), (key));                     \
        type *made = cli_pool_take((pool), json_array_size(list), sizeof *made); \
        (count) = made ? json_array_size(list) : 0;                              \
        for (size_t at = 0; at < (count); at++)                                  \
            made[at] = read((pool), (tree), json_array_get(list, at));           \
        (rows) = made;                                                           \
    } while (false)

#endif
