/* etch show: the graph of a model, what a plan makes of it, and pictures of pipelines. Each view is one JSON
 * tree; text and DOT are made of the tree, so that they say nothing that programs are not told. */
#include "tree_read.h"

#include <stdio.h>

/* ---- trees ------------------------------------------------------------------------------------------ */

/* How a tree is printed as text, or drawn: as DOT, a pipeline as SVG. False: memory is out. */
typedef bool (*print_fn)(cli_pool *pool, const json_t *tree, bool drawn);

/* Prints a tree (consumed, NULL: memory was out) as it is asked for. */
static etch_status print_tree(const cli_arguments *arguments, json_t *tree, print_fn print)
{
    if (!tree)
        return ETCH_ENOMEM;
    if (arguments->format != ETCH_PLAIN)
        return cli_print_json(tree) ? ETCH_OK : ETCH_ENOMEM;
    cli_pool pool = {0};
    const bool fine = print(&pool, tree, arguments->dot || arguments->svg);
    cli_pool_end(&pool);
    json_decref(tree);
    return fine ? ETCH_OK : ETCH_ENOMEM;
}

static bool print_pipeline(cli_pool *pool, const json_t *tree, bool drawn)
{
    etch_pipeline_report report;
    if (!cli_pipeline_read(pool, tree, &report))
        return false;
    if (drawn)
        return cli_print_pipeline_svg(pool, &report);
    cli_print_pipeline_text(&report);
    return true;
}

static bool print_graph(cli_pool *pool, const json_t *tree, bool dot)
{
    etch_graph_report report;
    return cli_graph_read(pool, tree, &report) &&
           (dot ? cli_print_graph_dot(&report) : cli_print_graph_text(&report));
}

static bool print_plan(cli_pool *pool, const json_t *tree, bool dot)
{
    etch_graph_report graph;
    etch_placement_report report;
    return cli_plan_read(pool, tree, &graph, &report) &&
           (dot ? cli_print_plan_dot(&report) : cli_print_plan_text(&report));
}

/* ---- views ------------------------------------------------------------------------------------------ */

static etch_view_options view_options(const cli_arguments *arguments)
{
    return (etch_view_options){.struct_size = sizeof(etch_view_options),
                               .part = arguments->word_count > 1 ? arguments->words[1] : NULL};
}

static etch_status show_pipeline(const cli_arguments *arguments, etch_session *session)
{
    const etch_pipeline_report *report;
    const etch_status status = etch_session_pipeline(session, &report);
    return status == ETCH_OK ? print_tree(arguments, cli_pipeline_tree(report), print_pipeline) : status;
}

static etch_status show_graph(const cli_arguments *arguments, etch_session *session)
{
    const etch_graph_report *report;
    const etch_view_options options = view_options(arguments);
    const etch_status status = etch_session_graph(session, &options, &report);
    return status == ETCH_OK ? print_tree(arguments, cli_graph_tree(report), print_graph) : status;
}

static etch_status show_plan(const cli_arguments *arguments, etch_session *session)
{
    const etch_placement_report *report;
    const etch_view_options options = view_options(arguments);
    const etch_status status = etch_session_placement(session, &options, &report);
    if (status != ETCH_OK)
        return status;
    json_t *tree = cli_plan_tree(report);
    if (tree && arguments->format == ETCH_PLAIN && !cli_plan_tree_say(tree, report)) {
        json_decref(tree);
        return ETCH_ENOMEM;
    }
    return print_tree(arguments, tree, print_plan);
}

/* ---- passes ----------------------------------------------------------------------------------------- */

static etch_status show_pass(const cli_arguments *arguments, etch_session *session)
{
    const char *text;
    const etch_status status = etch_session_pass(session, arguments->pass, &text);
    if (status == ETCH_OK)
        fputs(text, stdout);
    return status;
}

/* ---- the command ------------------------------------------------------------------------------------ */

static etch_status (*const views[CLI_VIEW_COUNT])(const cli_arguments *arguments, etch_session *session) = {
    [CLI_VIEW_GRAPH] = show_graph,
    [CLI_VIEW_PIPELINE] = show_pipeline,
    [CLI_VIEW_PLAN] = show_plan,
    [CLI_VIEW_PASS] = show_pass,
};

cli_exit cli_show(const cli_arguments *arguments)
{
    if (arguments->view == CLI_VIEW_PIPELINE && (arguments->word_count > 1 || arguments->dot))
        return cli_usage_error(arguments->command, arguments->dot
                                                       ? "--pipeline has no --format dot"
                                                       : "--pipeline is of a whole plan: no module");
    if (arguments->svg && arguments->view != CLI_VIEW_PIPELINE)
        return cli_usage_error(arguments->command, "--format svg is of --pipeline");
    if (arguments->view == CLI_VIEW_PASS &&
        (arguments->word_count > 1 || arguments->dot || arguments->format != ETCH_PLAIN))
        return cli_usage_error(arguments->command, arguments->word_count > 1
                                                       ? "--after is of a whole model: no module"
                                                       : "--after has --format plain only");
    const bool of_plan = arguments->view == CLI_VIEW_GRAPH && arguments->session.plan;
    if (arguments->session.stage && !of_plan)
        return cli_usage_error(arguments->command, "--stage is of what --plan shows");
    etch_status status;
    etch_session *session = cli_open(arguments, &status);
    if (status == ETCH_OK)
        status = views[of_plan ? CLI_VIEW_PLAN : arguments->view](arguments, session);
    return cli_close(arguments, session, status);
}
