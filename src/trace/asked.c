/* A rank that is asked for: what the rules are asked with, and what it holds in the end. */
#include "trace/rank_int.h"

#include <stdlib.h>

etch_rule_context etch_rank_context(const etch_rank_job *job, etch_findings *findings)
{
    return (etch_rule_context){.groups = job->groups,
                               .set = job->set,
                               .rank = job->rank,
                               .protocol = job->options->protocol,
                               .rank_count = job->set->rank_count,
                               .findings = findings};
}

void etch_rank_free(etch_rank *rank)
{
    free(rank->groups);
    free(rank->peers);
    if (!rank->shares_tags)
        free(rank->tags);
    *rank = (etch_rank){0};
}
