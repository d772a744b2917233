/* A page about the run of a step: one file for any browser, wide or narrow, light or dark, without scripts
 * and without anything from elsewhere. */
#include "report_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light "
    "dark;--paper:#fff;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--waiting:#c9d1d9;"
    "--idle:#eef1f4;--c0:#2f6fb0;--c1:#d9781e;--c2:#3f8f45;--c3:#8a5fb4;--c4:#c23b4e;--c5:#2a9d9d;"
    "--c6:#a58a00;--c7:#8c5a3c}"
    "@media(prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e6e9ec;--soft:#a3adb8;--line:#343b44;"
    "--waiting:#4a535e;--idle:#242a31;--c0:#5a9bdc;--c1:#f0a050;--c2:#66b86c;--c3:#b58fe0;--c4:#ec7083;"
    "--c5:#55c4c4;--c6:#d6bb3c;--c7:#bf8e70}}"
    "*{box-sizing:border-box}body{margin:0 auto;padding:1rem;max-width:72rem;background:var(--paper);"
    "color:var(--ink);font:16px/1.5 system-ui,sans-serif}"
    "h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem}h3{font-size:1rem}"
    "p{margin:.4rem 0}.label,.axis{color:var(--soft);font-size:.875rem}"
    "dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(10rem,1fr));gap:.75rem;margin:1rem 0}"
    "dl div{border:1px solid var(--line);border-radius:6px;padding:.5rem .75rem}"
    "dt{color:var(--soft);font-size:.875rem}dd{margin:0;font-size:1.1rem;overflow-wrap:anywhere}"
    "svg{display:block;width:100%;background:var(--idle)}.bar{height:1.5rem}.area{height:16rem}"
    ".dot,.roof{fill:none;vector-effect:non-scaling-stroke}.dot{stroke-linecap:round}"
    ".roof{stroke:var(--soft);stroke-width:2}"
    ".slot{stroke:var(--paper);stroke-width:1;vector-effect:non-scaling-stroke}"
    ".keys{display:flex;flex-wrap:wrap;gap:.25rem 1rem;font-size:.875rem}"
    ".keys i{display:inline-block;width:.8em;height:.8em;margin-right:.4em;border-radius:2px}"
    ".axis{display:flex;justify-content:space-between}.wide{overflow-x:auto}"
    "table{border-collapse:collapse;font-size:.875rem;white-space:nowrap}"
    "th,td{text-align:left;padding:.25rem .75rem .25rem 0;border-bottom:1px solid var(--line)}"
    ".n{text-align:right;font-variant-numeric:tabular-nums}"
    ".waiting{fill:var(--waiting);background:var(--waiting)}.idle{fill:var(--idle);background:var(--idle)}"
    ".keys .idle{outline:1px solid var(--line)}";

static void put_colors(FILE *out)
{
    for (int i = 0; i < CLI_PAGE_COLORS; i++)
        fprintf(out, ".c%d{fill:var(--c%d);background:var(--c%d)}", i, i, i);
}

static void put_fact(FILE *out, const char *name, const char *value)
{
    fprintf(out, "<div><dt>%s</dt><dd>", name);
    cli_page_text(out, value);
    fputs("</dd></div>", out);
}

static void put_facts(FILE *out, const etch_simulation *s, const etch_memory_report *memory)
{
    const etch_memory_stage *stage = &memory->stages[memory->heaviest];
    char text[2 * CLI_BYTES_TEXT];
    fputs("<dl>", out);
    cli_page_time(s->step, text);
    put_fact(out, "step", text);
    cli_page_time(s->lower, text);
    put_fact(out, "lower bound", text);
    cli_page_time(s->upper, text);
    put_fact(out, "upper bound", text);
    if (s->tokens > 0) {
        snprintf(text, sizeof text, "%" PRIu64, s->tokens_per_second);
        put_fact(out, "tokens a second", text);
    }
    if (s->mfu >= 0) {
        snprintf(text, sizeof text, "%" PRId64 ".%02" PRId64 " %%", s->mfu / 10000, s->mfu / 100 % 100);
        put_fact(out, "mfu", text);
    }
    put_fact(out, "memory of a rank, at most", cli_bytes_text(stage->rows[stage->peak].total, text));
    snprintf(text, sizeof text, "%" PRIu32 " in %zu class%s", s->ranks, s->class_count,
             s->class_count == 1 ? "" : "es");
    put_fact(out, "ranks", text);
    put_fact(out, "machine", s->cluster);
    put_fact(out, "device", s->device);
    put_fact(out, "plan", s->plan);
    if (s->config)
        put_fact(out, "config", s->config);
    fputs("</dl>", out);
}

static void put_head(FILE *out, const etch_simulation *s)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
          "<link rel=\"icon\" href=\"data:,\"><title>",
          out);
    cli_page_text(out, s->model);
    fprintf(out, ": a step</title>\n<style>%s", style);
    put_colors(out);
    fputs("</style></head>\n<body><h1>A step of ", out);
    cli_page_text(out, s->model);
    fputs("</h1>", out);
}

cli_exit cli_write_report(const char *path, const etch_simulation *s, const etch_memory_report *memory)
{
    cli_out_file file;
    if (!cli_out_begin(&file, path))
        return cli_out_end(&file, false);
    FILE *out = file.stream;
    put_head(out, s);
    put_facts(out, s, memory);
    cli_page_bars(out, s);
    cli_page_free(out, s);
    bool fine = cli_page_path(out, s) && cli_page_pipeline(out, s, memory);
    fine = fine && cli_page_memory(out, s, memory) && cli_page_roofline(out, s) && cli_page_work(out, s);
    fputs("<p class=\"label\">Written by etch " ETCH_VERSION
          ". Times are those of formulas: docs/time.md says what is modelled.</p></body></html>\n",
          out);
    if (!fine)
        fprintf(stderr, "etch: %s\n", etch_status_text(ETCH_ENOMEM));
    return cli_out_end(&file, fine);
}
