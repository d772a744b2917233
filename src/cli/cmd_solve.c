/* etch solve: the largest, or least, value for which a statement holds. */
#include "cli_int.h"

#include <stdio.h>
#include <string.h>

/* What the sides are to each other where the statement does not hold. */
static const char *relation_of(const etch_solution *s, bool holds)
{
    static const char *const pairs[][2] = {{"<=", ">"}, {"<", ">="}, {">=", "<"}, {">", "<="}, {"==", "!="}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(s->relation, pairs[i][0]) == 0)
            return pairs[i][!holds];
    return "";
}

static void print_point(const etch_solution *s, const char *name, const etch_solution_point *p, bool holds)
{
    printf("%-9s %s = %s: %s = %s %s %s\n", name, s->names[0], p->values[0], s->left, p->left,
           relation_of(s, holds), p->right);
}

static void print_one(const etch_solution *s, const etch_solution_row *row)
{
    const char *kind = etch_solution_kind_name(row->kind);
    const bool equation = row->kind == ETCH_SOLUTION_EQUAL;
    if (row->answer)
        print_point(s, kind, row->answer, true);
    else if (row->kind == ETCH_SOLUTION_EVERY)
        cli_print_field(kind, "%s", s->names[0]);
    else if (equation)
        cli_print_field(kind, "nowhere, but between these two");
    for (size_t i = 0; i < row->answer_count; i++)
        print_point(s, equation ? "" : "holds", &row->answers[i], !equation);
    if (row->fails)
        print_point(s, "fails", row->fails, false);
    cli_print_field("method", "%s", etch_solving_name(row->method));
}

/* ---- several names: a table ---------------------------------------------------------------------------- */

/* Cells of a row: the values, kind, what the left side is; the value that fails, and the left side there. */
static const char *cell_at(const etch_solution *s, const etch_solution_row *row, size_t column)
{
    const etch_solution_point *first = row->answer         ? row->answer
                                       : row->answer_count ? row->answers
                                                           : row->fails;
    const size_t names = s->name_count;
    if (column + 1 < names)
        return first ? first->values[column] : "";
    if (column == names - 1)
        return row->answer ? row->answer->values[column] : row->kind == ETCH_SOLUTION_EVERY ? "every" : "";
    if (column == names)
        return row->answer ? row->answer->left : "";
    if (column == names + 1)
        return row->fails ? row->fails->values[names - 1] : "";
    return column == names + 2 ? (row->fails ? row->fails->left : "") : etch_solving_name(row->method);
}

static const char *head_at(const etch_solution *s, size_t column)
{
    const size_t names = s->name_count;
    if (column < names)
        return s->names[column];
    return column == names + 1 ? "fails" : column == names + 3 ? "method" : s->left;
}

static void print_table(const etch_solution *s)
{
    const size_t columns = s->name_count + 4;
    for (size_t i = 0; i <= s->row_count; i++) {
        for (size_t k = 0; k < columns; k++) {
            size_t width = strlen(head_at(s, k));
            for (size_t r = 0; r < s->row_count; r++) {
                const size_t own = strlen(cell_at(s, &s->rows[r], k));
                width = own > width ? own : width;
            }
            const char *text = i == 0 ? head_at(s, k) : cell_at(s, &s->rows[i - 1], k);
            printf("%s%*s", k ? "  " : "", (int)width, text);
        }
        putchar('\n');
    }
}

static void print_plain(const etch_solution *s)
{
    if (s->name_count == 1)
        print_one(s, &s->rows[0]);
    else
        print_table(s);
}

static json_t *json_of_point(const etch_solution *s, const etch_solution_point *p, bool *failed)
{
    if (!p)
        return json_null();
    json_t *point = json_object(), *values = json_object();
    for (size_t i = 0; i < s->name_count; i++)
        cli_json_set(values, s->names[i], cli_json_text(p->values[i]), failed);
    cli_json_set(point, "values", values, failed);
    cli_json_set(point, "left", cli_json_text(p->left), failed);
    cli_json_set(point, "right", cli_json_text(p->right), failed);
    return point;
}

static json_t *json_of_row(const etch_solution *s, const etch_solution_row *row, bool *failed)
{
    json_t *object = json_object(), *answers = json_array();
    for (size_t i = 0; i < row->answer_count; i++)
        cli_json_append(answers, json_of_point(s, &row->answers[i], failed), failed);
    cli_json_set(object, "kind", cli_json_text(etch_solution_kind_name(row->kind)), failed);
    cli_json_set(object, "method", cli_json_text(etch_solving_name(row->method)), failed);
    cli_json_set(object, "answer", json_of_point(s, row->answer, failed), failed);
    cli_json_set(object, "fails", json_of_point(s, row->fails, failed), failed);
    cli_json_set(object, "answers", answers, failed);
    return object;
}

static bool print_json(const etch_solution *s)
{
    bool failed = false;
    json_t *root = json_object(), *names = json_array(), *rows = json_array();
    for (size_t i = 0; i < s->name_count; i++)
        cli_json_append(names, cli_json_text(s->names[i]), &failed);
    for (size_t i = 0; i < s->row_count; i++)
        cli_json_append(rows, json_of_row(s, &s->rows[i], &failed), &failed);
    cli_json_set(root, "schema", json_string("etch-solve/1"), &failed);
    cli_json_set(root, "statement", cli_json_text(s->statement), &failed);
    cli_json_set(root, "for", names, &failed);
    cli_json_set(root, "rows", rows, &failed);
    return cli_print_json(root) && !failed;
}

cli_exit cli_solve(const cli_arguments *arguments)
{
    etch_status status = ETCH_OK;
    etch_session *machine = arguments->machine ? cli_open_machine(arguments, &status) : NULL;
    if (status != ETCH_OK)
        return cli_close(arguments, machine, status);
    etch_session *session = cli_open(arguments, &status);
    etch_solve_options options = arguments->solve;
    const etch_solution *solution = NULL;
    options.machine = machine;
    options.struct_size = sizeof options;
    options.names = arguments->over;
    options.threads = arguments->output.threads;
    if (status == ETCH_OK)
        status = etch_session_solve(session, arguments->words[1], &options, &solution);
    if (solution && arguments->format == ETCH_PLAIN)
        print_plain(solution);
    else if (solution && !print_json(solution))
        status = ETCH_ENOMEM;
    etch_session_close(machine);
    return cli_close(arguments, session, status);
}
