/* Reads "assumptions<TAB>statement" per line, writes what the room answers: "yes", "unknown", "no a=1 b=2"
 * with a witness, "contradiction" for assumptions that cannot be; for tests in other languages.
 *
 * Assumptions are separated by ';': `x from N`, `x real`, a == b, a != b, a >= b, a <= b, d | n. A statement
 * is one of the latter, a > b, a < b, or `integer e`. Every line has a context of its own. */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolic/symbolic.h"

enum { LONGEST_LINE = 1 << 16 };

typedef struct claim {
    char kind; /* '=', '!', '>' at least, 'G' above, '|', 'i' integer */
    etch_expr a, b;
} claim;

static etch_expr parse(etch_sym *sym, const char *text, size_t length)
{
    size_t at;
    etch_expr e = etch_expr_parse(sym, text, length, &at);
    if (!e) {
        fprintf(stderr, "%.*s: error at %zu\n", (int)length, text, at);
        exit(EXIT_FAILURE);
    }
    return e;
}

static claim read_claim(etch_sym *sym, const char *text)
{
    static const struct {
        const char *text;
        char kind;
        bool swapped;
    } relations[] = {{"==", '=', false}, {"!=", '!', false}, {">=", '>', false}, {"<=", '>', true},
                     {"|", '|', false},  {">", 'G', false},  {"<", 'G', true}};
    while (*text == ' ')
        text++;
    if (strncmp(text, "integer ", 8) == 0)
        return (claim){'i', parse(sym, text + 8, strlen(text + 8)), NULL};
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++) {
        const char *found = strstr(text, relations[i].text);
        if (!found)
            continue;
        const char *right = found + strlen(relations[i].text);
        claim c = {relations[i].kind, parse(sym, text, (size_t)(found - text)),
                   parse(sym, right, strlen(right))};
        return relations[i].swapped ? (claim){c.kind, c.b, c.a} : c;
    }
    fprintf(stderr, "%s: no relation\n", text);
    exit(EXIT_FAILURE);
}

/* `x from N`, `x real`; false: it is neither. */
static bool declare(etch_sym *sym, const char *text)
{
    char name[32], kind[8];
    long long lower;
    if (sscanf(text, " %31[a-z_] %7[a-z] %lld", name, kind, &lower) == 3 && strcmp(kind, "from") == 0) {
        etch_var_at_least(sym, etch_var(sym, name), lower);
        return true;
    }
    if (sscanf(text, " %31[a-z_] %7[a-z]", name, kind) == 2 && strcmp(kind, "real") == 0) {
        etch_var_real(sym, etch_var(sym, name));
        return true;
    }
    return false;
}

static etch_status assume(etch_sym *sym, const claim *c)
{
    int64_t other;
    switch (c->kind) {
    case '=':
        return etch_assume_equal(sym, c->a, c->b, 0, &other);
    case '>':
        return etch_assume_at_least(sym, c->a, c->b, 0, &other);
    case '!':
        return etch_assume_different(sym, c->a, c->b, 0, &other);
    default:
        return etch_assume_divides(sym, c->a, c->b, 0, &other);
    }
}

static etch_truth ask(etch_sym *sym, const claim *c, etch_witness *witness)
{
    switch (c->kind) {
    case '=':
        return etch_equal(sym, c->a, c->b, witness);
    case '!':
        return etch_different(sym, c->a, c->b, witness);
    case '>':
        return etch_at_least(sym, c->a, c->b, witness);
    case 'G':
        return etch_above(sym, c->a, c->b, witness);
    case '|':
        return etch_divides(sym, c->a, c->b, witness);
    default:
        return etch_is_integer(sym, c->a, witness);
    }
}

static void answer(etch_arena *arena, char *line)
{
    etch_sym *sym = etch_sym_new(arena);
    char *statement = strchr(line, '\t'), *rest = NULL;
    if (!statement)
        exit(EXIT_FAILURE);
    *statement++ = '\0';
    for (char *text = strtok_r(line, ";", &rest); text; text = strtok_r(NULL, ";", &rest)) {
        if (declare(sym, text))
            continue;
        claim c = read_claim(sym, text);
        if (assume(sym, &c) == ETCH_EINPUT) {
            printf("contradiction\n");
            return;
        }
    }
    claim c = read_claim(sym, statement);
    etch_witness witness = {0};
    etch_truth truth = ask(sym, &c, &witness);
    printf("%s", truth == ETCH_YES ? "yes" : truth == ETCH_NO ? "no" : "unknown");
    for (uint32_t i = 0; truth == ETCH_NO && i < witness.count; i++)
        printf(" %s=%s", etch_var_name(witness.vars[i]), etch_expr_text(sym, witness.values[i]));
    printf("\n");
}

static etch_status each_line(void *data)
{
    etch_mem *mem = data;
    char *line = malloc(LONGEST_LINE);
    if (!line)
        return ETCH_ENOMEM;
    while (fgets(line, LONGEST_LINE, stdin)) {
        etch_arena *arena = etch_arena_new(mem);
        line[strcspn(line, "\n")] = '\0';
        answer(arena, line);
        etch_arena_free(arena);
    }
    free(line);
    return ETCH_OK;
}

int main(void)
{
    etch_mem *mem = etch_mem_new((size_t)1 << 30);
    if (!mem)
        return 3;
    etch_status status = etch_guard(mem, each_line, mem);
    etch_mem_free(mem);
    return (int)status;
}
