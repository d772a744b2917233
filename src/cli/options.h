/* The options of all commands, one row each. */
#ifndef ETCH_CLI_OPTIONS_H
#define ETCH_CLI_OPTIONS_H

#include "cli_int.h"

typedef enum cli_option_id {
    CLI_OPT_CONFIG,
    CLI_OPT_PLAN,
    CLI_OPT_RUN,
    CLI_OPT_STAGE,
    CLI_OPT_SET,
    CLI_OPT_SWEEP,
    CLI_OPT_OVER,
    CLI_OPT_PLANS,
    CLI_OPT_CONFIGS,
    CLI_OPT_RUNS,
    CLI_OPT_MACHINES,
    CLI_OPT_WHERE,
    CLI_OPT_SELECT,
    CLI_OPT_BEST,
    CLI_OPT_TOP,
    CLI_OPT_PARETO,
    CLI_OPT_EXPLAIN,
    CLI_OPT_EVERY_ROW,
    CLI_OPT_YES,
    CLI_OPT_SHARD,
    CLI_OPT_RESUME,
    CLI_OPT_PLOT,
    CLI_OPT_LOWER,
    CLI_OPT_VERIFY,
    CLI_OPT_FOR,
    CLI_OPT_METHOD,
    CLI_OPT_PIPELINE,
    CLI_OPT_AFTER,
    CLI_OPT_BY,
    CLI_OPT_COUNT_BY,
    CLI_OPT_WHY,
    CLI_OPT_DEFAULTS,
    CLI_OPT_BOUND,
    CLI_OPT_FORMAT,
    CLI_OPT_GROUPS,
    CLI_OPT_EAGER,
    CLI_OPT_RENDEZVOUS,
    CLI_OPT_SEEDS,
    CLI_OPT_TEXT,
    CLI_OPT_MACHINE,
    CLI_OPT_STACK,
    CLI_OPT_SLOW,
    CLI_OPT_CHECK,
    CLI_OPT_STREAMS,
    CLI_OPT_TIMES,
    CLI_OPT_TIMELINE,
    CLI_OPT_REPORT,
    CLI_OPT_RANKS,
    CLI_OPT_FORM,
    CLI_OPT_DIFF,
    CLI_OPT_LEADING,
    CLI_OPT_GRANULARITY,
    CLI_OPT_NAMES,
    CLI_OPT_ATTRS,
    CLI_OPT_ASTRA_SIM,
    CLI_OPT_HUMAN,
    CLI_OPT_OUTPUT,
    CLI_OPT_NAME,
    CLI_OPT_DRY_RUN,
    CLI_OPT_FORCE,
    CLI_OPT_LINK,
    CLI_OPT_ZSTD,
    CLI_OPT_NO_SYNC,
    CLI_OPT_JOBS,
    CLI_OPT_JSON,
    CLI_OPT_COLOR,
    CLI_OPT_QUIET,
    CLI_OPT_VERBOSE,
    CLI_OPT_HELP,
    CLI_OPT_VERSION,
    CLI_OPT_COUNT
} cli_option_id;

typedef struct cli_option_row {
    const char *name;
    /* 0: none */
    char letter;
    /* NULL: takes none */
    const char *argument;
    /* which take it */
    unsigned commands;
    const char *help;
} cli_option_row;

extern const cli_option_row cli_option_rows[CLI_OPT_COUNT];

#endif
