/* etch memory: what a rank of each stage holds along a step, and what is there when it is most. Text and
 * tables are made of the JSON tree. */
#include "graph_int.h"

cli_exit cli_memory(const cli_arguments *arguments)
{
    etch_status status;
    etch_session *session = cli_open(arguments, &status);
    const etch_memory_report *report = NULL;
    if (status == ETCH_OK)
        status = etch_session_memory(session, &report);
    json_t *tree = report ? cli_memory_tree(report) : NULL;
    if (report && !tree)
        status = ETCH_ENOMEM;
    else if (tree && arguments->format == ETCH_JSON)
        status = cli_print_json(tree) ? ETCH_OK : ETCH_ENOMEM;
    else if (tree) {
        if (arguments->of_rows)
            cli_print_memory_csv(tree);
        else
            cli_print_memory_text(tree);
        json_decref(tree);
    }
    return cli_close(arguments, session, status);
}
