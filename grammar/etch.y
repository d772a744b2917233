/* The grammar of etch.ebnf for Bison: an oracle that the tests compile. The parser in src/lang is written by hand;
 * this one is generated, has its own scanner (tests/lang/oracle.c) and must accept and reject the same texts.
 * It has no conflict. The value of an expression is how deep it is nested, or a block how deep blocks are. */
%define api.pure full
%define api.prefix {oracle_}
%define api.value.type {int}
%define parse.error simple
%expect 0
%param {struct oracle *oracle}

%code requires {
struct oracle;
}
%code {
#include "oracle.h"

#define NEST(inner) oracle_nest(oracle, inner)
#define DEEPER(a, b) ((a) > (b) ? (a) : (b))
}

%token END_ "end of statement" NAME INTEGER REAL STRING BAD
%token AS "as" ASSUME "assume" AXIS "axis" CHECK "check" CLUSTER "cluster" CONFIG "config" DEVICE "device"
%token DIM "dim" DTYPE "dtype" ELSE "else"
%token ETCH "etch" FALSE_ "false" FOR "for" IF "if" IMPORT "import" INFER "infer" MESH "mesh" MODEL "model"
%token MODULE "module" PAD "pad" PARALLEL "parallel" PARAM "param" PIN "pin" REPEAT "repeat" SHARD "shard"
%token STAGE "stage" SWEEP "sweep" TAG "tag" TRAIN "train" TRUE_ "true" USE "use" WEIGHT "weight"
%token WHERE "where" ZERO "zero"
%token ARROW "->" EQUAL "==" UNEQUAL "!=" LESS_EQUAL "<=" MORE_EQUAL ">=" FLOOR "//" REST ".."

%start text

%%

/* ---- a file ---- */

text: version items end ;
end: %empty | END_ ;
version: ETCH INTEGER { oracle_check_version(oracle, $2); } ;
items: %empty | items END_ item ;

item: import | use | params | dims | assume | dtype | check
    | module | model | config | train | infer | parallel | sweep | device | cluster ;

import: IMPORT STRING | IMPORT STRING '(' names ')' | IMPORT STRING AS NAME ;
use: USE CONFIG NAME | USE NAME NAME { oracle_check_plan(oracle, $2); } ;
params: PARAM param_list ;
param_list: param | param_list ',' param ;
param: NAME param_range param_default ;
param_range: %empty | MORE_EQUAL expr | NAME ;
param_default: %empty | '=' expr ;
dims: DIM dim_list ;
dim_list: dim | dim_list ',' dim ;
dim: NAME '=' expr | NAME '~' expr ;
assume: ASSUME predicates ;
dtype: DTYPE bindings ;
check: CHECK predicate ;

module: MODULE NAME signature body ;
model: MODEL NAME signature body ;
config: CONFIG NAME options_block ;
train: TRAIN options_block | TRAIN NAME options_block ;
infer: INFER NAME options_block ;
parallel: PARALLEL NAME plan_block ;
sweep: SWEEP NAME '{' end '}' | SWEEP NAME '{' end sweep_lines end '}' ;
sweep_lines: sweep_line | sweep_lines END_ sweep_line ;
sweep_line: bindings | WHERE conditions ;
conditions: condition | conditions ',' condition ;
condition: expr unit | expr relation expr unit | expr member ;
device: DEVICE NAME machine ;
cluster: CLUSTER NAME machine ;
machine: '{' end '}' | '{' end machine_lines end '}' ;
machine_lines: machine_line | machine_lines END_ machine_line ;
machine_line: numbers_line | NAME NAME '{' end '}' | NAME NAME '{' end numbers_lines end '}' ;
numbers_lines: numbers_line | numbers_lines END_ numbers_line ;
numbers_line: numbers | NAME numbers | NAME NAME numbers ;
numbers: number | numbers ',' number ;
number: option_name '=' option_value unit ;
unit: %empty | NAME | NAME '/' NAME ;

bindings: binding | bindings ',' binding ;
binding: NAME '=' expr ;
options: option | options ',' option ;
option: option_name '=' option_value ;
option_value: expr | WEIGHT ;
option_name: NAME | keyword ;
keyword: plan_keyword | other_keyword ;
plan_keyword: AXIS | DTYPE | FOR | MESH | PAD | PIN | SHARD | STAGE | ZERO ;
other_keyword: AS | ASSUME | CHECK | CLUSTER | CONFIG | DEVICE | DIM | ELSE | ETCH | FALSE_ | IF | IMPORT | INFER
             | MODEL | MODULE | PARALLEL | PARAM | REPEAT | SWEEP | TAG | TRAIN | TRUE_ | USE | WEIGHT | WHERE ;
options_block: '{' end '}' | '{' end option_lines end '}' ;
option_lines: options | option_lines END_ options ;
names: NAME | names ',' NAME ;

/* ---- modules and models ---- */

signature: '(' formals ')' ARROW results ;
formals: %empty | tensors | tensors ';' param_list ;
results: tensor | '(' tensors ')' ;
tensors: tensor | tensors ',' tensor ;
tensor: NAME | NAME shape | NAME shape ':' NAME ;
shape: '[' ']' | '[' axes ']' ;
axes: axis | axes ',' axis ;
axis: REST | expr | expr '@' mesh_axes ;
mesh_axes: NAME | '(' ')' | '(' names ')' ;

body: '{' end '}' { $$ = NEST(0); } | '{' end statements end '}' { $$ = NEST($3); } ;
statements: statement | statements END_ statement { $$ = DEEPER($1, $3); } ;
statement: weights { $$ = 0; } | dims { $$ = 0; } | instance | let { $$ = 0; } | repeat | if ;
weights: WEIGHT tensors tags ;
instance: NAME NAME '=' path { oracle_check_instance(oracle, $1); $$ = 0; }
        | NAME NAME '=' path '(' ')' { oracle_check_instance(oracle, $1); $$ = NEST(0); }
        | NAME NAME '=' path '(' arguments ')' { oracle_check_instance(oracle, $1); $$ = NEST($6); } ;
let: tensor '=' expr tags | '(' tensors ')' '=' expr tags ;
repeat: REPEAT expr body { $$ = $3; } | REPEAT expr AS NAME body { $$ = $5; } ;
if: IF predicate body { $$ = $3; }
  | IF predicate body ELSE body { $$ = DEEPER($3, $5); }
  | IF predicate body ELSE if { $$ = DEEPER($3, $5); } ;
tags: %empty | TAG names ;

/* ---- plans ---- */

plan_block: '{' end '}' { $$ = NEST(0); } | '{' end plan_lines end '}' { $$ = NEST($3); } ;
plan_lines: plan_line | plan_lines END_ plan_line { $$ = DEEPER($1, $3); } ;
plan_line: MESH '[' mesh_list ']' { $$ = 0; }
         | AXIS axis_names { $$ = 0; }
         | SHARD places { $$ = 0; }
         | PIN path shape { $$ = 0; }
         | PAD bindings { $$ = 0; }
         | DTYPE bindings { $$ = 0; }
         | ZERO INTEGER '@' mesh_axes more_options { $$ = 0; }
         | STAGE selectors '@' mesh_axes more_options { $$ = 0; }
         | NAME expr '@' mesh_axes more_options { oracle_check_offload(oracle, $1); $$ = 0; }
         | FOR selectors plan_block { $$ = $3; }
         | plan_options { $$ = 0; } ;
more_options: %empty | ',' options ;
plan_options: plan_option | plan_options ',' option ;
plan_option: plan_option_name '=' option_value ;
plan_option_name: NAME | other_keyword ;
mesh_list: mesh_axis | mesh_list ',' mesh_axis ;
mesh_axis: NAME | NAME '=' expr ;
axis_names: axis_name | axis_names ',' axis_name ;
axis_name: NAME '=' mesh_axes ;
places: place | places ',' place ;
place: NAME '@' mesh_axes ;
selectors: path | '(' paths ')' ;
paths: path | paths ',' path ;
path: NAME { $$ = oracle_length(oracle, $1); } | path '.' NAME { $$ = oracle_path(oracle, $1, $3); } ;

/* ---- expressions ---- */

predicates: predicate | predicates ',' predicate ;
predicate: expr | expr relation expr | expr member ;
member: NAME '[' exprs ']' { oracle_check_member(oracle, $1); } ;
relation: '|' | EQUAL | UNEQUAL | LESS_EQUAL | MORE_EQUAL | '<' | '>' ;

expr: sum { $$ = $1; } ;
sum: term { $$ = $1; } | sum sum_mark term { $$ = NEST(DEEPER($1, $3)); } ;
sum_mark: '+' | '-' ;
term: unary | term term_mark unary { $$ = NEST(DEEPER($1, $3)); } ;
term_mark: '*' | '/' | FLOOR | '%' ;
unary: '-' unary { $$ = NEST($2); } | power ;
power: primary | primary '^' unary { $$ = NEST(DEEPER($1, $3)); } ;
primary: INTEGER { $$ = 0; } | REAL { $$ = 0; } | STRING { $$ = 0; } | TRUE_ { $$ = 0; } | FALSE_ { $$ = 0; }
       | '(' expr ')' { $$ = NEST($2); }
       | '(' expr ',' exprs ')' { $$ = NEST(DEEPER($2, $4)); }
       | '[' exprs ']' { $$ = NEST($2); }
       | MODEL behind { $$ = $2; }
       | PAD call { $$ = $2; }
       | path behind { $$ = $2; } ;
behind: %empty { $$ = 0; } | call { $$ = $1; } | renaming { $$ = NEST(0); } ;
call: '(' ')' { $$ = NEST(0); }
    | '(' arguments ')' { $$ = NEST($2); }
    | '(' ')' renaming { $$ = NEST(0); }
    | '(' arguments ')' renaming { $$ = NEST($2); } ;
renaming: '[' renames ']' ;
exprs: expr | exprs ',' expr { $$ = DEEPER($1, $3); } ;
arguments: argument | arguments ',' argument { $$ = DEEPER($1, $3); } ;
argument: expr | option_name '=' expr { $$ = $3; } ;
renames: rename | renames ',' rename ;
rename: group ARROW group ;
group: NAME | '(' names ')' ;

%%

void oracle_error(struct oracle *oracle, const char *message)
{
    (void)message;
    oracle_refuse(oracle);
}
