/* The table of notations, and how names become identifiers. */
#include <string.h>

#include "symbolic/text/text_int.h"

/* ---- identifiers --------------------------------------------------------------------------------------- */

/* Keywords of C (to C23, and those of <math.h> that its text uses) and of Python (with the functions of
 * its text). */
static const char *const c_keywords[] = {
    "alignas",   "alignof",  "auto",          "bool",   "break",   "case",   "char",   "const",
    "constexpr", "continue", "default",       "do",     "double",  "else",   "enum",   "extern",
    "false",     "float",    "for",           "goto",   "if",      "inline", "int",    "long",
    "nullptr",   "register", "restrict",      "return", "short",   "signed", "sizeof", "static",
    "struct",    "switch",   "static_assert", "true",   "typedef", "typeof", "union",  "thread_local",
    "unsigned",  "void",     "volatile",      "while",  "floor",   "ceil",   "fmax",   "fmin",
    "fabs",      "pow",      "asm",           "NULL",   "SUM",     "NAN",    "pow2",   NULL,
};
static const char *const python_keywords[] = {
    "False", "None",     "True",     "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",      "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",       "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise",    "return", "try",  "while",  "with",   "yield",    "max",
    "min",   "abs",      "Rational", "Max",    "Min",  "Abs",    "Sum",    "pow2",     NULL,
};

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F');
}

static int hex_value(char c)
{
    return c <= '9' ? c - '0' : c - 'A' + 10;
}

/* Is `at` the beginning of _xHH? */
static bool is_escape(const char *at, size_t length)
{
    return length >= 4 && at[0] == '_' && at[1] == 'x' && is_hex(at[2]) && is_hex(at[3]);
}

static bool is_plain_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_one_of(const char *name, const char *const *keywords)
{
    for (; *keywords; keywords++)
        if (name[0] == (*keywords)[0] && strcmp(name, *keywords) == 0)
            return true;
    return false;
}

/* A keyword has its first letter escaped. */
static void write_identifier(const char *name, const char *const *keywords, etch_buf *out)
{
    bool keyword = is_one_of(name, keywords);
    size_t length = strlen(name), plain = 0;
    while (is_plain_character(name[plain]) && !is_escape(name + plain, length - plain))
        plain++;
    if (plain == length && !keyword) {
        sym_put_text(out, name);
        return;
    }
    for (size_t i = 0; i < length; i++) {
        if (is_plain_character(name[i]) && !is_escape(name + i, length - i) && !(keyword && i == 0))
            etch_buf_add(out, name + i, 1);
        else
            etch_buf_printf(out, "_x%02X", (unsigned)(unsigned char)name[i]);
    }
}

size_t sym_unescape(const char *identifier, size_t length, char *out)
{
    size_t written = 0;
    for (size_t i = 0; i < length; i++) {
        bool escape = is_escape(identifier + i, length - i);
        out[written++] =
            escape ? (char)(hex_value(identifier[i + 2]) * 16 + hex_value(identifier[i + 3])) : identifier[i];
        i += escape ? 3 : 0;
    }
    return written;
}

static void plain_name(const char *name, etch_buf *out)
{
    sym_put_text(out, name);
}

static void c_name(const char *name, etch_buf *out)
{
    write_identifier(name, c_keywords, out);
}

static void python_name(const char *name, etch_buf *out)
{
    write_identifier(name, python_keywords, out);
}

/* Single letters are variables of mathematics, with the quotes they may have; the others words. */
static void latex_name(const char *name, etch_buf *out)
{
    bool letter = name[0] != '\0' && strspn(name + 1, "'") == strlen(name + 1);
    sym_put_text(out, letter ? "" : "\\mathrm{");
    for (const char *c = name; *c; c++) {
        if (strchr("_%#&$", *c))
            sym_put_text(out, "\\");
        etch_buf_add(out, c, 1);
    }
    sym_put_text(out, letter ? "" : "}");
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static const sym_notation notations[] = {
    [ETCH_PLAIN] = {.times = "*",
                    .fraction = "",
                    .over = "/",
                    .fraction_end = "",
                    .bracket = {"(", ")"},
                    .brackets_in_fraction = true,
                    .power = {"^", ""},
                    .number_end = "",
                    .mod = " % ",
                    .floor = {"floor(", ")"},
                    .ceil = {"ceil(", ")"},
                    .max = {"max(", ")"},
                    .min = {"min(", ")"},
                    .abs = {"abs(", ")"},
                    .pow2 = {"pow2(", ")"},
                    .sum = {"sum(", ", ", ", ", ", ", ")", false},
                    .undefined = "undefined",
                    .name = plain_name,
                    .assign = "",
                    .assigned = " = ",
                    .end = "\n"},
    [ETCH_LATEX] = {.times = "\\,",
                    .fraction = "\\frac{",
                    .over = "}{",
                    .fraction_end = "}",
                    .bracket = {"\\left(", "\\right)"},
                    .power = {"^{", "}"},
                    .number_end = "",
                    .rules = {ETCH_SYM_ALL_MODS, true},
                    .mod = " \\bmod ",
                    .floor = {"\\left\\lfloor ", " \\right\\rfloor"},
                    .ceil = {"\\left\\lceil ", " \\right\\rceil"},
                    .max = {"\\max\\left(", "\\right)"},
                    .min = {"\\min\\left(", "\\right)"},
                    .abs = {"\\left|", "\\right|"},
                    .pow2 = {"\\operatorname{pow2}\\left(", "\\right)"},
                    .at_least_zero = {"\\left[", " \\ge 0\\right]"},
                    .sum = {"\\sum_{", "=", "}^{", "} ", "", false},
                    .undefined = "\\text{undefined}",
                    .name = latex_name},
    [ETCH_C] = {.times = "*",
                .fraction = "",
                .over = "/",
                .fraction_end = "",
                .bracket = {"(", ")"},
                .brackets_in_fraction = true,
                .number_end = ".0",
                .rules = {ETCH_SYM_NO_MODS, false},
                .floor = {"floor(", ")"},
                .ceil = {"ceil(", ")"},
                .max = {"fmax(", ")"},
                .min = {"fmin(", ")"},
                .abs = {"fabs(", ")"},
                .pow2 = {"pow2(", ")"},
                .two_arguments = true,
                .sum = {"SUM(", ", ", ", ", ", ", ")", false},
                .undefined = "NAN",
                .name = c_name,
                .assign = "const double ",
                .assigned = " = ",
                .end = ";\n"},
    [ETCH_PYTHON] = {.times = "*",
                     .fraction = "",
                     .over = "/",
                     .fraction_end = "",
                     .bracket = {"(", ")"},
                     .brackets_in_fraction = true,
                     .power = {"**", ""},
                     .number_end = "",
                     .rational = "Rational(",
                     /* Mod of SymPy 1.11 takes 1 % x to be 1 - x */
                     .rules = {ETCH_SYM_MODS_BY_NUMBERS, false},
                     .mod = " % ",
                     .max = {"max(", ")"},
                     .min = {"min(", ")"},
                     .abs = {"abs(", ")"},
                     .pow2 = {"pow2(", ")"},
                     .sum = {", (", ", ", ", ", "Sum(", "))", true},
                     .undefined = "undefined",
                     .name = python_name,
                     .assign = "",
                     .assigned = " = ",
                     .end = "\n"},
};

const sym_notation *sym_notation_of(etch_notation notation)
{
    size_t i = (size_t)notation;
    return i < sizeof notations / sizeof *notations ? &notations[i] : NULL;
}
