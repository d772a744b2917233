/* A second reading of the grammar: grammar/etch.y, compiled by Bison, and a scanner of its own. It shares
 * nothing with src/lang. */
#ifndef ETCH_TEST_LANG_ORACLE_H
#define ETCH_TEST_LANG_ORACLE_H

#include <stdbool.h>
#include <stddef.h>

/* Is the text a spec, by the grammar alone? */
bool oracle_accepts(const char *text, size_t length);

/* ---- for the generated parser -------------------------------------------------------------------------- */

typedef struct oracle oracle;

int oracle_lex(int *value, oracle *o);
void oracle_error(oracle *o, const char *message);
void oracle_refuse(oracle *o);
/* Tokens that have a text are numbered; these are questions about them. */
void oracle_check_version(oracle *o, int integer);
void oracle_check_plan(oracle *o, int name);
void oracle_check_member(oracle *o, int name);
void oracle_check_instance(oracle *o, int name);
void oracle_check_offload(oracle *o, int name);
int oracle_length(oracle *o, int name);
int oracle_path(oracle *o, int length, int name); /* length of path.name */
/* One level around something so deep; refuses more than 500. */
int oracle_nest(oracle *o, int inner);

#endif
