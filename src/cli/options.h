/* The options of all commands, one row each. */
#ifndef ETCH_CLI_OPTIONS_H
#define ETCH_CLI_OPTIONS_H

#include "cli_int.h"

typedef enum cli_option_id {
    OPT_CONFIG,
    OPT_PLAN,
    OPT_RUN,
    OPT_STAGE,
    OPT_SET,
    OPT_SWEEP,
    OPT_OVER,
    OPT_PLANS,
    OPT_CONFIGS,
    OPT_WHERE,
    OPT_SELECT,
    OPT_BEST,
    OPT_TOP,
    OPT_PARETO,
    OPT_EXPLAIN,
    OPT_YES,
    OPT_SHARD,
    OPT_RESUME,
    OPT_PLOT,
    OPT_FOR,
    OPT_METHOD,
    OPT_PIPELINE,
    OPT_AFTER,
    OPT_BY,
    OPT_COUNT_BY,
    OPT_WHY,
    OPT_DEFAULTS,
    OPT_BOUND,
    OPT_FORMAT,
    OPT_GROUPS,
    OPT_EAGER,
    OPT_RENDEZVOUS,
    OPT_SEEDS,
    OPT_TEXT,
    OPT_MACHINE,
    OPT_STACK,
    OPT_SLOW,
    OPT_CHECK,
    OPT_STREAMS,
    OPT_TIMES,
    OPT_TIMELINE,
    OPT_REPORT,
    OPT_RANKS,
    OPT_FORM,
    OPT_DIFF,
    OPT_LEADING,
    OPT_GRANULARITY,
    OPT_NAMES,
    OPT_ATTRS,
    OPT_ASTRA_SIM,
    OPT_HUMAN,
    OPT_OUTPUT,
    OPT_NAME,
    OPT_DRY_RUN,
    OPT_FORCE,
    OPT_NO_SYNC,
    OPT_JOBS,
    OPT_JSON,
    OPT_COLOR,
    OPT_QUIET,
    OPT_VERBOSE,
    OPT_HELP,
    OPT_VERSION,
    OPT_COUNT
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

extern const cli_option_row cli_option_rows[OPT_COUNT];

#endif
