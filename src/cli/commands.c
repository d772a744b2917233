/* The commands: what they take, and what is said of them. */
#include "cli_int.h"

#include <string.h>

/* clang-format off */
static const cli_command commands[] = {
    {"check", CLI_CHECK, "SPEC", 1, 1, "build everything in a spec, decide its own checks",
     "Builds every model of SPEC, derives what it trains, places every plan with its\n"
     "mesh axes as symbols, lists what the plans demand of values, and proves or\n"
     "refutes the `check` lines of SPEC. Modules that no model calls are read as well,\n"
     "and so are the values of every config; of imported plans it lists what the models\n"
     "lack of them, and those that do not suit the models.\n"
     "\n"
     "With --config or --set these values alone are looked at: assumptions and demands\n"
     "must also hold for them, and sizes and counts be integers that they can be, as far\n"
     "as they are given.\n"
     "With --bound, params and axes take their defaults, everything needs a value, and\n"
     "all that lowering would check is checked.\n"
     "\n"
     "Exit status 1: the spec has errors, or a check line is refuted. 5: a check line\n"
     "could be neither proved nor refuted.\n"},
    {"query", CLI_QUERY, "SPEC EXPR", 2, 2, "a formula, or an exact number",
     "EXPR is arithmetic over params, dims, mesh axes and quantities, which\n"
     "`etch help quantities` lists. Params that nothing binds stay symbols: the value is\n"
     "a formula, or a number when everything is bound. With a config, params that it\n"
     "leaves out take their defaults, which a remark names; --set NAME=NAME leaves one a\n"
     "symbol.\n"
     "\n"
     "  etch query models/llama.etch 'params(model)' --config llama3_8b\n"
     "  etch query models/llama.etch 'flops(forward, of = block)'\n"
     "  etch query models/llama.etch 'comm(step)' --plan megatron --by axis\n"
     "  etch query models/llama.etch 'flops(step)/params(model)'\n"
     "  etch query models/llama.etch 'flops(step)' --count megatron --why\n"
     "  etch query models/llama.etch 'time(step)' --config llama3_8b --plan megatron_sp \\\n"
     "      --set dp=8,tp=8,batch=16,micro=2,seq=8192 --machine h100_sxm\n"},
    {"prove", CLI_PROVE, "SPEC STATEMENT", 2, 2, "a statement, for all values",
     "STATEMENT is A == B, A != B, A >= B, A <= B, A > B, A < B, D | A (D divides A) or\n"
     "integer(A), where A and B are what a query may ask for. It is decided for all\n"
     "values of params and mesh axes that the assumptions of SPEC allow; --set and\n"
     "--config give values to some. SPEC may hold only params and assumptions.\n"
     "\n"
     "Prints `proved`; `refuted`, with the difference and values for which it is false;\n"
     "or `unknown`. It holds when it does wherever both sides are defined: a divisor\n"
     "that may be 0 is printed as a condition.\n"
     "\n"
     "  etch prove models/gpt.etch 'matmul_flops(forward) >= 2*batch*seq*hidden*vocab'\n"
     "  etch prove models/llama.etch 'comm(step, plan = megatron) ==\n"
     "      comm(step, plan = megatron_sp)'\n"
     "\n"
     "Exit status 0: proved. 1: refuted, or the input has errors. 5: unknown.\n"},
    {"import", CLI_IMPORT, "CONFIG", 1, 1, "a config.json of Hugging Face as a spec",
     "CONFIG is the config.json of a published model, `-` for standard input. Prints a spec\n"
     "of a few lines, which imports the file of models/ for its family and binds the\n"
     "params of that file: `config imported`. Every field is one of these: the value of a\n"
     "param; without effect on what is counted; what the file does anyway; or refused, with\n"
     "the reason. `etch help configs` lists the families, and what their fields mean.\n"
     "\n"
     "The other commands take a config as they take a spec, where its name ends with .json,\n"
     "or it comes from a pipe.\n"
     "\n"
     "  etch import config.json\n"
     "  etch import config.json -o model.etch\n"
     "  etch query config.json 'params(model)'\n"},
    {"lower", CLI_LOWER, "SPEC -o DIR", 1, 1, "one configuration to traces of every rank",
     "Binds everything (defaults too; a remark names mesh axes that have no value and\n"
     "are taken to be 1) and writes into DIR a Chakra trace for each rank,\n"
     "<name>.<rank>.et, the communication groups, comm_group.json, and a summary,\n"
     "manifest.json.\n"
     "\n"
     "DIR is created when it is missing. When it holds nothing but an earlier run, that\n"
     "is replaced as a whole once this one succeeds; files of others need --force, and\n"
     "stay. After a failure everything is as it was before; a run that was killed leaves\n"
     "a hidden folder, which the next run removes. Files are on the disk before\n"
     "manifest.json says that they are there.\n"
     "\n"
     "  etch lower models/llama.etch --config llama3_8b --plan megatron_sp \\\n"
     "      --set dp=8,tp=8,batch=16,micro=2,seq=8192 -o out\n"},
    {"sweep", CLI_SWEEP, "SPEC", 1, 1, "quantities of many configurations; the best of them",
     "Computes expressions, as a query does, for all combinations of the values of its axes,\n"
     "and prints a row for each. Axes are params and mesh axes, with values from --over; what\n"
     "has no values takes its default. `--sweep NAME` takes axes, conditions and expressions\n"
     "from a block `sweep NAME { .. }` of SPEC. Options of plans are axes as well, with texts\n"
     "as values, 'plan.schedule = gpipe, zb_h1', and so are numbers of a machine.\n"
     "\n"
     "With --machine M, or --machines, quantities of a run of the step are known: time(step),\n"
     "mfu(step), tokens_per_second(step). Each row that --where leaves is run by itself.\n"
     "\n"
     "--where leaves rows out. An equation over mesh axes is solved: with 'ranks == 64', the\n"
     "ranks of a plan, all axes of its mesh that have no values take those that make 64.\n"
     "Rows that a query refuses, because sizes do not divide, for example, are not printed,\n"
     "but counted by reason; --explain says what a query says of the first of each.\n"
     "\n"
     "--best EXPR prints the row where EXPR is least, --top N the first N; --pareto EXPR,EXPR\n"
     "those that no other row is better than. Ties go to the row that comes first. --lower DIR\n"
     "writes the traces of these.\n"
     "\n"
     "Values are exact, and those of a query; rows do not depend on --jobs. -o FILE appears\n"
     "when all rows are in it. Ctrl-C ends a sweep with the rows that are complete.\n"
     "\n"
     "  etch sweep models/llama.etch --config llama3_8b --plan megatron --set batch=64,seq=4096\n"
     "      --where 'ranks == 64, memory(peak) <= 80 GB' --best 'comm(step)' --top 5\n"},
    {"show", CLI_SHOW, "SPEC [MODULE]", 1, 2, "the graph of a model; what a plan places and moves",
     "Prints the graph of the model, in modules and loops as SPEC has them: tensors with\n"
     "dims and dtype, what each op costs, and where it stands; then the backward pass that\n"
     "is derived, and what is kept for it, with the first op that reads it. MODULE is a\n"
     "module, a loop, a tag or module.tensor, as in `of =` of queries: only this part, the\n"
     "first one of its name. FLOP are those of one iteration of the loops around an op,\n"
     "over all microbatches and the whole job. --format dot is for Graphviz.\n"
     "\n"
     "--plan NAME prints what the plan makes of it: what the collectives of one rank add\n"
     "up to in a step; each of them, how often it happens and what asks for it; why it is\n"
     "there, with what made the tensor as it is, what needs it otherwise, and the lines of\n"
     "the plan behind both; and where every tensor is, forward and backward.\n"
     "\n"
     "--pipeline binds the sizes of the pipeline, defaults too, and prints which\n"
     "microbatch each stage works on when, if every forward slot took 1 and every\n"
     "backward slot 2; the order of the slots, which traces keep; the most microbatches\n"
     "that a stage has in flight; and the bubble: the time that a stage waits, as a\n"
     "fraction of the time that it works. --format svg is a picture of it.\n"
     "\n"
     "  etch show models/llama.etch attention\n"
     "  etch show models/llama.etch mlp --plan megatron_sp\n"
     "  etch show models/gpt.etch --format dot | dot -Tsvg > gpt.svg\n"
     "  etch show SPEC --pipeline --set pp=4,micro=8\n"},
    {"memory", CLI_MEMORY, "SPEC", 1, 1, "what a rank holds along a step, and what is there at the peak",
     "Prints, of each stage, the most that a rank of it holds at a time, when that is, and\n"
     "what it is: weights, grads and what the optimizer keeps, which are there all the time;\n"
     "activations, kept for the backward pass; gathered copies of weights; what collectives\n"
     "and messages have brought; and the rest of what is worked on. Then, of the stage that\n"
     "holds the most, how much there is in each slot, and the tensors that are there at the\n"
     "peak. Binds everything, defaults too. --stage picks one.\n"
     "\n"
     "--format json has a row for every iteration of the loops of each slot, --format csv the\n"
     "same as a table. The peak is memory(peak) of `etch query`, or below it where not all\n"
     "that is kept is there when the most is worked on.\n"
     "\n"
     "  etch memory models/llama.etch --config llama3_8b --plan megatron_pp \\\n"
     "      --set pp=2,dp=2,tp=2,batch=16,micro=4,seq=4096\n"},
    {"verify", CLI_VERIFY, "DIR", 1, 1, "do the traces of all ranks run to the end?",
     "Reads the Chakra traces of all ranks in DIR, of any tool, holds them against every\n"
     "rule that simulators rely on, runs them, and says one of three things: every rank\n"
     "finishes, whatever the timing; every rank finishes if the timing is kind; or which\n"
     "ranks never finish, and who waits for whom. It says so of eager sends, which end by\n"
     "themselves, and of rendezvous, where they wait until their receive is posted; --eager\n"
     "and --rendezvous ask for one of them. Where DIR holds traces of several names,\n"
     "DIR/NAME says which.\n"
     "\n"
     "Exit status 1: errors, or ranks that never finish. 5: it depends on the timing, or on\n"
     "how sends end.\n"
     "\n"
     "  etch verify out\n"
     "  etch verify out --rendezvous --seeds 100\n"},
    {"dump", CLI_DUMP, "TRACE", 1, 1, "what is in Chakra traces",
     "TRACE is a trace, or a folder of traces, of any tool. Without options: how many\n"
     "nodes there are, and what they add up to, by type, by phase, by collective and\n"
     "group. --format json prints a JSON object on a line for each node. --text prints\n"
     "the text form, from which `etch assemble` makes the same bytes again.\n"
     "\n"
     "  etch dump out\n"
     "  etch dump out --ranks 0,8-15\n"
     "  etch dump out/llama.0.et --format json\n"},
    {"assemble", CLI_ASSEMBLE, "TEXT -o DIR", 1, 1, "Chakra traces from their text form",
     "TEXT is a file in the text form of traces, `-` for standard input. DIR must be\n"
     "new or empty; with --force it may hold files of the names that the text has, and\n"
     "is replaced as a whole. The text says what the bytes are, and may describe broken\n"
     "traces.\n"
     "\n"
     "  etch dump out --text > out.txt\n"
     "  etch assemble out.txt -o again\n"},
    {"fit", CLI_FIT, "TABLE --machine M", 1, 1, "the numbers of a machine, or a stack, from measurements",
     "TABLE has tabs or commas between its columns, which its first line names:\n"
     "`us`, microseconds, and those of a kind of kernel. Lines that begin with # are none.\n"
     "\n"
     "  products     m, n, k           y[m,n] = x[m,k] w[k,n]\n"
     "  grouped      m, n, k, groups   the rows of all groups together\n"
     "  attention    batch, queries, keys, heads, kv_heads, head_dim\n"
     "  elementwise  bytes             read and written\n"
     "  collectives  op, ranks, bytes  the largest buffer\n"
     "  systolic     m, n, k           on a device with an array\n"
     "\n"
     "Besides: dtype; value_dim; phase, forward or backward; pairs, causal or all; machine,\n"
     "rows of another one than the device are left out; split, rows that do not say\n"
     "calibration are not fitted. Other columns are not read.\n"
     "\n"
     "  steps        spec, seconds     of a whole step; besides config, plan, run, sets,\n"
     "                                 granularity, as options of `simulate` have them\n"
     "\n"
     "Of steps the two factors of a stack are found, --stack NAME: of attention, and of all\n"
     "else. Paths of specs are from the folder of the table. Rows of another stack, where\n"
     "there is a column `stack`, are left out. All rows of calibration are fitted; errors of\n"
     "rows that are kept out are those of factors from two thirds of them, by turns. A cell\n"
     "with commas stands between quotation marks.\n"
     "\n"
     "Finds the numbers of the formula of a kernel by least squares of the logarithms, from two\n"
     "thirds of the rows. Prints the line for the machine, and the errors: half of the rows, and nine\n"
     "tenths of them, are not further off. Every third row that could be fitted is kept out,\n"
     "and is not known to the fit. With --check the numbers are those that the machine has.\n"
     "--format json has a line for each row as well.\n"
     "\n"
     "  etch fit gemm.csv --machine h100_sxm\n"
     "  etch fit steps.csv --machine h100_sxm --stack ours\n"},
    {"simulate", CLI_SIMULATE, "SPEC|DIR", 1, 1, "how long a step takes on a machine",
     "Runs the step of a plan, node by node, on the devices of a cluster: the one of M, a\n"
     "spec with a device and a cluster or the name of one that comes with etch, or that of\n"
     "SPEC. Binds everything, defaults too.\n"
     "\n"
     "Prints the time of the step and how far from the formulas of kernels it may be, what\n"
     "it would be if all overlapped that may (lower) and if nothing did in a rank (upper),\n"
     "tokens a second, and mfu: the FLOP of products, forward and backward, over what the\n"
     "devices could do at the peak of bf16. Then where the time of each stage goes:\n"
     "computing; exposed to communication over axes, waiting, and idle at the end, where it\n"
     "does not compute. Ranks that work alike are run once. --stack takes the factors that\n"
     "what runs on the machine has, --slow one device that is slower.\n"
     "\n"
     "DIR is a folder of traces, of any tool: they are run as they are, their computations as\n"
     "long as they say, or as products in bf16.\n"
     "\n"
     "--timeline FILE writes the run as events for ui.perfetto.dev, of one rank of each class\n"
     "or of those of --ranks; --report FILE a page about it, for any browser.\n"
     "\n"
     "docs/time.md says what is modelled, and what is not.\n"
     "\n"
     "  etch simulate models/llama.etch --config llama3_8b --plan megatron_sp \\\n"
     "      --set dp=8,tp=8,batch=16,micro=2,seq=8192 --machine h100_sxm\n"},
    {"merge", CLI_MERGE, "PART..", 1, CLI_MANY_WORDS, "a sweep from the parts that --shard has made",
     "Writes what a sweep would have written, from the parts of all its shares, in any order:\n"
     "the same bytes. The best rows, and Pareto fronts, are those of all parts together.\n"
     "Nothing is written if a part is missing, or not finished, or of another sweep.\n"
     "\n"
     "  for i in 1 2 3 4; do etch sweep grid.etch --sweep g --shard $i/4 -o part.$i; done\n"
     "  etch merge part.* -o rows.csv\n"},
    {"solve", CLI_SOLVE, "SPEC STATEMENT", 2, 2, "the largest value for which a statement holds",
     "Finds the largest, or the least, value of a param or mesh axis for which a statement\n"
     "holds, of those that a query does not refuse: 'memory(peak) <= 80 GB' --for batch. What\n"
     "has no value takes its default. Prints the value, the sides of the statement there, and\n"
     "the next value, for which it does not hold.\n"
     "\n"
     "The place where both sides are equal is computed where their difference is linear. Else\n"
     "it is searched by bisection, if the difference is proved to rise or to fall; or all\n"
     "values are looked at, where they are finitely many. Otherwise etch says that it cannot\n"
     "tell, and exits with 5.\n"
     "\n"
     "--for 'tp = 1, 2, 4' takes only these values. Of several --for all but the last have\n"
     "values: the answers that no other is better than are printed, a line each.\n"
     "\n"
     "  etch solve models/llama.etch 'memory(peak) <= 80 GB' --config llama3_8b --plan fsdp\n"
     "      --set dp=8,seq=8192 --for batch\n"},
    {"help", CLI_HELP, "[TOPIC]", 0, 1, "help on a command, on `ops`, `quantities`, `counts`",
     "etch help COMMAND      how to use it\n"
     "etch help ops          the ops of the language, and what each costs\n"
     "etch help quantities   what a query can ask for\n"
     "etch help counts       what may count as FLOP\n"
     "etch help models       the specs of models that come with etch\n"
     "etch help machines     the machines that come with etch, for --machine\n"
     "etch help language     how specs are written\n"
     "etch help plans        the plans that come with etch, and what they need of a model\n"
     "etch help configs      config.json of published models, and the families that they are of\n"
     "etch help astra-sim    traces for ASTRA-sim\n"
     "etch help man          the manual page, for man -l\n"
     "etch help bash         completion for bash; zsh and fish likewise\n"},
};

/* clang-format on */
enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

const cli_command *cli_command_at(size_t i)
{
    return i < COMMAND_COUNT ? &commands[i] : NULL;
}

const cli_command *cli_command_of(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}
