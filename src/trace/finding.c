/* What is wrong with ranks: collected by threads, reported by one. */
#include "trace/verify_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 3, TEXT_BYTES = 512, NAME_BYTES = 80 };

const char *etch_node_text(etch_node_ref node, char text[ETCH_NODE_TEXT])
{
    size_t length = node.name.length;
    if (length > NAME_BYTES)
        for (length = NAME_BYTES; length > 0 && ((unsigned char)node.name.at[length] & 0xc0) == 0x80;)
            length--;
    const char *cut = length < node.name.length ? "..." : "";
    if (length > 0)
        snprintf(text, ETCH_NODE_TEXT, "node %" PRIu64 " '%.*s%s'", node.id, (int)length, node.name.at, cut);
    else
        snprintf(text, ETCH_NODE_TEXT, "node %" PRIu64, node.id);
    return text;
}

bool etch_findings_keep(const etch_findings *findings, etch_severity severity, etch_code code)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < findings->count; i++)
        kept += findings->at[i].code == code && findings->at[i].severity == severity;
    return kept < KEPT;
}

void etch_find(etch_findings *findings, etch_severity severity, etch_code code, etch_node_ref node,
               const char *help, const char *format, ...)
{
    char text[TEXT_BYTES], where[ETCH_NODE_TEXT];
    size_t used = 0;
    va_list args;
    findings->errors += severity == ETCH_ERROR;
    if (!etch_findings_keep(findings, severity, code))
        return;
    if (node.id != ETCH_NO_NODE)
        used = (size_t)snprintf(text, sizeof text, ", %s", etch_node_text(node, where));
    text[used++] = ':';
    text[used++] = ' ';
    va_start(args, format);
    vsnprintf(text + used, sizeof text - used, format, args);
    va_end(args);
    char *copy = malloc(strlen(text) + 1);
    findings->at = etch_reserve(findings->at, findings->count, &findings->capacity, sizeof *findings->at,
                                &findings->out_of_memory);
    if (!copy || findings->out_of_memory) {
        free(copy);
        findings->out_of_memory = true;
        return;
    }
    memcpy(copy, text, strlen(text) + 1);
    findings->at[findings->count++] = (etch_finding){severity, code, copy, help};
}

void etch_findings_free(etch_findings *findings)
{
    for (uint32_t i = 0; i < findings->count; i++)
        free(findings->at[i].text);
    free(findings->at);
    *findings = (etch_findings){0};
}

/* ---- reporting ----------------------------------------------------------------------------------------- */

/* A finding of one rank, and of how many more. */
typedef struct entry {
    const etch_finding *finding;
    uint32_t rank;
} entry;

static int compare_findings(const etch_finding *a, const etch_finding *b)
{
    if (a->severity != b->severity)
        return a->severity < b->severity ? -1 : 1;
    if (a->code != b->code)
        return a->code < b->code ? -1 : 1;
    return strcmp(a->text, b->text);
}

static int by_finding(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = compare_findings(x->finding, y->finding);
    return order != 0 ? order : x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* A finding and the ranks that have it: `count` entries from `first` on. */
typedef struct run {
    const entry *first;
    uint32_t count;
} run;

/* Errors first, then in the order of ranks. */
static int by_weight(const void *a, const void *b)
{
    const run *x = a, *y = b;
    if (x->first->finding->severity != y->first->finding->severity)
        return x->first->finding->severity < y->first->finding->severity ? -1 : 1;
    if (x->first->rank != y->first->rank)
        return x->first->rank < y->first->rank ? -1 : 1;
    return compare_findings(x->first->finding, y->first->finding);
}

static void report_run(const run *r, etch_diags *diags)
{
    const etch_finding *finding = r->first->finding;
    const etch_span nowhere = {0, 0};
    etch_diag *(*const report[])(etch_diags *, etch_code, etch_span, const char *, ...) = {
        [ETCH_ERROR] = etch_error, [ETCH_WARNING] = etch_warning, [ETCH_REMARK] = etch_remark};
    etch_diag *diag = report[finding->severity](diags, finding->code, nowhere, "rank %u%s",
                                                (unsigned)r->first->rank, finding->text);
    if (r->count == 2)
        etch_note(diag, nowhere, "the same on rank %u", (unsigned)r->first[1].rank);
    else if (r->count > 2)
        etch_note(diag, nowhere, "the same on %u other ranks, the next is %u", (unsigned)(r->count - 1),
                  (unsigned)r->first[1].rank);
    if (finding->help)
        etch_help(diag, "%s", finding->help);
}

void etch_findings_report(const etch_findings *by_rank, uint32_t rank_count, etch_arena *arena,
                          etch_diags *diags)
{
    size_t count = 0, run_count = 0;
    for (uint32_t rank = 0; rank < rank_count; rank++)
        count += by_rank[rank].count;
    entry *entries = ETCH_NEW_ARRAY(arena, count, entry);
    run *runs = ETCH_NEW_ARRAY(arena, count, run);
    count = 0;
    for (uint32_t rank = 0; rank < rank_count; rank++)
        for (uint32_t i = 0; i < by_rank[rank].count; i++)
            entries[count++] = (entry){&by_rank[rank].at[i], rank};
    if (count > 0)
        qsort(entries, count, sizeof *entries, by_finding);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && compare_findings(entries[i].finding, entries[i - 1].finding) == 0)
            runs[run_count - 1].count++;
        else
            runs[run_count++] = (run){&entries[i], 1};
    }
    if (run_count > 0)
        qsort(runs, run_count, sizeof *runs, by_weight);
    for (size_t i = 0; i < run_count; i++)
        report_run(&runs[i], diags);
}
