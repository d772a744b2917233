/* The syntax tree of a spec. Every node has the span of its text; names are interned in the session's
 * table, so equal names are equal pointers. Nodes live in the arena of the parse and are never changed
 * afterwards. A tree is complete only when the parse reported no error; otherwise statements are
 * missing, and expressions may be of kind ETCH_AST_BROKEN.
 *
 * No tree is higher than ETCH_AST_DEPTH: a walk may recurse. */
#ifndef ETCH_LANG_SYNTAX_SYNTAX_H
#define ETCH_LANG_SYNTAX_SYNTAX_H

#include "lang/syntax/shelf.h"

#define ETCH_LANGUAGE_MAJOR 1 /* `etch 1` */

enum {
    ETCH_AST_DEPTH = 500,
    ETCH_FILE_LIMIT = 64 * 1024 * 1024,
    ETCH_IMPORT_DEPTH = 64,
    /* words and signs of a spec and of what it imports */
    ETCH_SPEC_TOKENS = 1500000
};

typedef struct etch_ast etch_ast;
typedef struct etch_ast_expr etch_ast_expr;
typedef ETCH_VEC(etch_ast_expr *) etch_ast_exprs;

/* `text` is NULL where an optional name was left out. A qualified name is one text: "attention.wq". */
typedef struct etch_ast_name {
    const char *text;
    etch_span span;
} etch_ast_name;
typedef ETCH_VEC(etch_ast_name) etch_ast_names;

/* ---- expressions ------------------------------------------------------------------------------------- */

typedef enum etch_ast_expr_kind {
    /* after a reported error */
    ETCH_AST_BROKEN,
    /* text: digits */
    ETCH_AST_INTEGER,
    /* text: digits.digits, exact */
    ETCH_AST_REAL,
    /* text: without quotes */
    ETCH_AST_STRING,
    /* truth */
    ETCH_AST_TRUTH,
    /* text: qualified name, also "model" */
    ETCH_AST_NAME,
    /* text(args) */
    ETCH_AST_CALL,
    /* text[renames] */
    ETCH_AST_RENAME,
    /* -left */
    ETCH_AST_NEGATE,
    /* left op right: '+' '-' '*' '/' '%' '^', or 'f' for // */
    ETCH_AST_BINARY,
    /* left op right: '=' (==) 'n' (!=) 'l' (<=) 'g' (>=) '<' '>' '|'; a predicate */
    ETCH_AST_COMPARE,
    /* (items), two or more */
    ETCH_AST_TUPLE,
    /* [items], one or more */
    ETCH_AST_LIST
} etch_ast_expr_kind;

typedef struct etch_ast_arg {
    /* left out: by position */
    etch_ast_name name;
    etch_ast_expr *value;
} etch_ast_arg;
typedef ETCH_VEC(etch_ast_arg) etch_ast_args;

/* One of x[A->B, (C,D)->E]: lists of one or more dims. */
typedef struct etch_ast_rename {
    etch_ast_names from, to;
    etch_span span;
} etch_ast_rename;
typedef ETCH_VEC(etch_ast_rename) etch_ast_renames;

struct etch_ast_expr {
    etch_ast_expr_kind kind;
    /* the sign, or: f //, = ==, n !=, l <=, g >=, i `left in [right]` */
    char op;
    /* 1 for a leaf */
    uint16_t height;
    etch_span span;
    union {
        /* NAME, CALL, RENAME: text and the span of the name alone; INTEGER, REAL, STRING: text */
        etch_ast_name name;
        /* NEGATE, BINARY, COMPARE */
        etch_span op_span;
        bool truth;
    };
    union {
        etch_ast_args args;
        etch_ast_renames renames;
        etch_ast_exprs items;
        struct {
            etch_ast_expr *left, *right;
        };
    };
    /* RENAME: the call whose result it is of; NULL: the tensor of that name */
    etch_ast_expr *called;
};

/* ---- declarations ------------------------------------------------------------------------------------ */

/* `name`, `name = value`, `name ~ value`, `name >= least = value`, `name type = value`: params, dims,
 * options, mesh axes. */
typedef struct etch_ast_def {
    etch_ast_name name;
    /* param x real; else left out */
    etch_ast_name type;
    /* NULL: none */
    etch_ast_expr *least;
    /* NULL: none */
    etch_ast_expr *value;
    /* declared with ~ */
    bool average;
    /* in a device or cluster, `2.9 us`, `3.35 TB/s`: "us", "TB/s"; else left out */
    etch_ast_name unit;
    etch_span span;
} etch_ast_def;
typedef ETCH_VEC(etch_ast_def) etch_ast_defs;

/* What stands after '@': one axis, (a, b), or () with no axis. */
typedef struct etch_ast_mesh {
    etch_ast_names axes;
    etch_span span;
} etch_ast_mesh;

/* One entry of [..., D, S@(cp,tp)]. */
typedef struct etch_ast_axis {
    /* .. */
    bool rest;
    /* has an @ */
    bool placed;
    /* a name in most places; NULL for .. */
    etch_ast_expr *size;
    etch_ast_mesh mesh;
    etch_span span;
} etch_ast_axis;
typedef ETCH_VEC(etch_ast_axis) etch_ast_axes;

/* name, name[axes], name[axes]: type */
typedef struct etch_ast_tensor {
    etch_ast_name name;
    bool shaped;
    etch_ast_axes axes;
    etch_ast_name type;
    etch_span span;
} etch_ast_tensor;
typedef ETCH_VEC(etch_ast_tensor) etch_ast_tensors;

/* ---- statements of modules and models ---------------------------------------------------------------- */

typedef ETCH_VEC(struct etch_ast_stmt) etch_ast_body;

typedef enum etch_ast_stmt_kind {
    /* tensors, tags */
    ETCH_AST_WEIGHT,
    /* dims */
    ETCH_AST_DIM,
    /* instance name = value: the module's name, or its call with parameters only */
    ETCH_AST_INSTANCE,
    /* tensors = value, tags; `tuple` when the left side stands in ( ) */
    ETCH_AST_LET,
    /* repeat count as index { body }; index may be left out */
    ETCH_AST_REPEAT,
    /* arms in order; the test of a last plain else is NULL */
    ETCH_AST_IF
} etch_ast_stmt_kind;

typedef struct etch_ast_arm {
    etch_ast_expr *test;
    etch_ast_body body;
    /* from if or else to the brace */
    etch_span span;
} etch_ast_arm;
typedef ETCH_VEC(etch_ast_arm) etch_ast_arms;

typedef struct etch_ast_stmt {
    etch_ast_stmt_kind kind;
    etch_span span;
    union {
        struct {
            etch_ast_tensors tensors;
            etch_ast_names tags;
            etch_ast_expr *value;
            bool tuple;
        };
        etch_ast_defs dims;
        etch_ast_def instance;
        struct {
            etch_ast_expr *count;
            etch_ast_name index;
            etch_ast_body body;
        };
        etch_ast_arms arms;
    };
} etch_ast_stmt;

/* ---- lines of a plan --------------------------------------------------------------------------------- */

typedef ETCH_VEC(struct etch_ast_line) etch_ast_lines;

typedef enum etch_ast_line_kind {
    /* defs: axes, outermost first, each with a size or none */
    ETCH_AST_MESH,
    /* places: a name for a product of axes */
    ETCH_AST_AXIS,
    /* places: dim @ axes */
    ETCH_AST_SHARD,
    /* what[0], shape */
    ETCH_AST_PIN,
    /* defs */
    ETCH_AST_PAD,
    /* defs */
    ETCH_AST_DTYPES,
    /* defs: key = value */
    ETCH_AST_OPTIONS,
    /* level @ mesh, defs */
    ETCH_AST_ZERO,
    /* what @ mesh, defs */
    ETCH_AST_STAGE,
    /* the value of defs[0] @ mesh, the other defs */
    ETCH_AST_OFFLOAD,
    /* for what { lines } */
    ETCH_AST_SCOPE,
    /* of a device or cluster: what (up to two words), defs */
    ETCH_AST_NUMBERS,
    /* of a device or cluster: what (two words) { lines } */
    ETCH_AST_PART
} etch_ast_line_kind;

typedef struct etch_ast_place {
    etch_ast_name name;
    etch_ast_mesh mesh;
    etch_span span;
} etch_ast_place;
typedef ETCH_VEC(etch_ast_place) etch_ast_places;

typedef struct etch_ast_line {
    etch_ast_line_kind kind;
    etch_span span;
    /* selectors; words */
    etch_ast_names what;
    etch_ast_defs defs;
    union {
        etch_ast_places places;
        etch_ast_axes shape;
        etch_ast_lines lines;
        struct {
            /* digits */
            etch_ast_name level;
            etch_ast_mesh mesh;
        };
    };
} etch_ast_line;

/* ---- items of a file --------------------------------------------------------------------------------- */

typedef enum etch_ast_item_kind {
    /* name: the path; names when `listed`; alias; file */
    ETCH_AST_IMPORT,
    /* use `what` name: "config" or "plan" */
    ETCH_AST_USE,
    /* defs */
    ETCH_AST_PARAM,
    /* defs */
    ETCH_AST_DIMS,
    /* tests */
    ETCH_AST_ASSUME,
    /* defs */
    ETCH_AST_DTYPE,
    /* tests[0] */
    ETCH_AST_CHECK,
    /* name(inputs; defs) -> results body */
    ETCH_AST_MODULE,
    /* the same */
    ETCH_AST_MODEL,
    /* name, defs */
    ETCH_AST_CONFIG,
    /* name or left out, defs */
    ETCH_AST_TRAIN,
    /* name, defs */
    ETCH_AST_INFER,
    /* name, lines */
    ETCH_AST_PARALLEL,
    /* name, defs (values: lists), tests (where) */
    ETCH_AST_SWEEP,
    /* name, lines */
    ETCH_AST_DEVICE,
    /* the same */
    ETCH_AST_CLUSTER
} etch_ast_item_kind;

typedef struct etch_ast_item {
    etch_ast_item_kind kind;
    etch_span span;
    etch_ast_name name;
    etch_ast_defs defs;
    union {
        etch_ast_exprs tests;
        etch_ast_lines lines;
        etch_ast_name what;
        struct {
            etch_ast_names names;
            bool listed;
            etch_ast_name alias;
            /* set by etch_ast_load; NULL when it could not be read */
            etch_ast *file;
        };
        struct {
            etch_ast_tensors inputs, results;
            /* results stand in ( ) */
            bool several;
            etch_ast_body body;
        };
    };
} etch_ast_item;
typedef ETCH_VEC(etch_ast_item) etch_ast_items;

/* One file. */
struct etch_ast {
    const etch_source *source;
    etch_ast_items items;
};

/* All files of a spec, each once, every file after those it imports; the spec itself is the last. */
typedef ETCH_VEC(etch_ast *) etch_ast_files;

/* What a parse works with: all of one session. */
typedef struct etch_ast_context {
    etch_arena *arena;
    etch_names *names;
    etch_diags *diags;
    /* where files are looked for before the disk, and kept; NULL: nowhere */
    etch_shelf *shelf;
    /* folders in which imports are looked for that are not beside their file, a colon between them; may be
     * NULL */
    const char *folders;
    /* words and signs that the files before this one have; NULL: there are none */
    uint32_t *tokens;
} etch_ast_context;

/* Parses one source that holds a file. Never NULL; errors are in the diagnostics. */
etch_ast *etch_ast_parse(const etch_ast_context *context, const etch_source *source);
/* Numbers with units, commas between them: "bandwidth = 900 GB/s, latency = 2 us". False after an error. */
bool etch_ast_parse_numbers(const etch_ast_context *context, const etch_source *source,
                            etch_ast_defs *numbers);
/* Parses text from a command line: an expression or predicate; `NAME = EXPR, ...`. NULL, or false, after
 * an error. */
etch_ast_expr *etch_ast_parse_query(const etch_ast_context *context, const etch_source *source);
bool etch_ast_parse_settings(const etch_ast_context *context, const etch_source *source,
                             etch_ast_defs *settings);
/* The same of options, as plans have them: "schedule = gpipe, recompute = none". */
bool etch_ast_parse_options(const etch_ast_context *context, const etch_source *source,
                            etch_ast_defs *options);

/* Reads and parses the file at `path`, or `text` (not NULL) as if it stood there, and everything it imports.
 * Paths of imports are relative to the importing file. ETCH_EIO when the file at `path` itself cannot be read
 * (a diagnostic says why), ETCH_EINPUT when anything else was reported; `files` then holds what could be
 * read. */
etch_status etch_ast_load(const etch_ast_context *context, const char *path, const char *text,
                          etch_ast_files *files) ETCH_MUST_CHECK;

/* The tree as S-expressions: for tests, and for other parsers to be compared with. */
void etch_ast_dump(const etch_ast *ast, etch_buf *out);
void etch_ast_dump_expr(const etch_ast_expr *expr, etch_buf *out);

#endif
