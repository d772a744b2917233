/* fuzz_dictionary: prints the words of the language as a dictionary of libFuzzer, from the tables that the
 * program reads them by. */
#include "bundle.h"

#include <stdio.h>

#include "graph/graph.h"
#include "lang/model/blocks.h"
#include "lang/plan/plan_int.h"
#include "lang/syntax/lexer_int.h"

static void word(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    puts("\"");
}

/* A list that NULL ends. */
static void words(const char *(*at)(uint32_t index))
{
    for (uint32_t i = 0; at(i); i++)
        word(at(i));
}

static const char *function_at(uint32_t index)
{
    return etch_value_functions[index];
}

static const char *dtype_at(uint32_t index)
{
    return index < ETCH_DTYPE_COUNT ? etch_dtype_name((etch_dtype)index) : NULL;
}

static const char *dtype_class_at(uint32_t index)
{
    return index < ETCH_DTYPE_CLASSES ? etch_dtype_class_name(index) : NULL;
}

static const char *schedule_at(uint32_t index)
{
    const etch_schedule *schedule = etch_schedule_at(index);
    return schedule ? etch_schedule_name(schedule) : NULL;
}

static void marks_and_keywords(void)
{
#define MARK(name, text) word(text);
#define KEYWORD(name, text, starts) word(text);
#include "lang/syntax/tokens.def"
}

static void ops(void)
{
    const etch_table *table = etch_table_builtin();
    const etch_row *row;
    const etch_keyword_info *keyword;
    for (uint32_t i = 0; (row = etch_row_at(table, i)) != NULL; i++)
        if (etch_row_is_called(row) || etch_optimizer_called(table, etch_row_name(row)))
            word(etch_row_name(row));
    for (uint32_t i = 0; (keyword = etch_keyword_at(i)) != NULL; i++)
        if (keyword->name)
            word(keyword->name);
}

/* What makes an input more than one file, and a file a spec. */
static void bundles(void)
{
    puts("\"etch 1\\x0A\"\n\"\\x0A#file a.etch\\x0Aetch 1\\x0A\"\n\"import \\\"a.etch\\\"\\x0A\"");
    for (int i = 0; i < BUNDLE_OPTIONS; i++)
        printf("\"\\x0A#%s \"\n", bundle_option_name((bundle_option)i));
}

int main(void)
{
    marks_and_keywords();
    words(function_at);
    ops();
    words(dtype_at);
    words(dtype_class_at);
    words(schedule_at);
    words(etch_train_option_at);
    words(etch_infer_option_at);
    words(etch_plan_option_at);
    words(etch_stage_option_at);
    words(etch_zero_option_at);
    words(etch_offload_option_at);
    bundles();
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
