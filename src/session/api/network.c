/* Networks: models that a program builds through include/etch/builder.h. Each function is a guarded request,
 * so that a limit never jumps over frames of the program. */
#include "session/api/api.h"

#include <string.h>

#include "etch/builder.h"

struct etch_network {
    etch_session *session;
    etch_site *site;
    etch_graph *graph;
    /* when it is not ETCH_OK, every request gives NULL */
    etch_status broken;
};

static const etch_span nowhere = {0, 0};

/* One call of a function: what it was given, and what it makes. */
typedef struct request {
    etch_network *network;
    void (*body)(struct request *r);
    const char *name, *text;
    etch_tensor *a, *b;
    size_t count, second_count;
    etch_dim *const *dims, *const *to;
    etch_tensor *const *tensors;
    etch_tensor **results;
    const etch_network_argument *arguments;
    bool flag;
    /* made */
    etch_tensor *tensor;
    /* made */
    etch_dim *dim;
} request;

static etch_status run_body(void *data)
{
    request *r = data;
    if (r->count > UINT32_MAX / 8 || r->second_count > UINT32_MAX / 8)
        etch_trap(r->network->session->mem, ETCH_ELIMIT);
    r->body(r);
    return ETCH_OK;
}

static void run(etch_network *network, request *r)
{
    r->network = network;
    if (network->broken == ETCH_OK)
        network->broken = etch_guard(network->session->mem, run_body, r);
    if (network->broken != ETCH_OK) {
        r->tensor = NULL;
        r->dim = NULL;
    }
}

static etch_tensor *make(etch_network *network, request *r)
{
    run(network, r);
    return r->tensor;
}

static const char *own_name(const request *r, const char *text)
{
    return text ? etch_name_of(etch_site_names(r->network->site), text) : "";
}

/* The value of a text; NULL without one, or after an error. */
static etch_expr value_of(const request *r, const char *text)
{
    return text ? etch_site_value(r->network->site, text) : NULL;
}

static bool are_there(etch_dim *const *dims, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!dims[i])
            return false;
    return true;
}

/* ---- dims ------------------------------------------------------------------------------------------- */

static void find_dim(request *r)
{
    r->dim = etch_site_dim(r->network->site, own_name(r, r->name));
}

etch_dim *etch_network_dim(etch_network *network, const char *name)
{
    request r = {.body = find_dim, .name = name};
    run(network, &r);
    return r.dim;
}

static void make_dim(request *r)
{
    r->dim = etch_graph_dim(r->network->graph, own_name(r, r->name), value_of(r, r->text), r->flag, nowhere);
}

etch_dim *etch_network_new_dim(etch_network *network, const char *name, const char *size, bool average)
{
    request r = {.body = make_dim, .name = name, .text = size, .flag = average};
    run(network, &r);
    return r.dim;
}

/* ---- inputs and weights ----------------------------------------------------------------------------- */

/* The dtype of the request. False after a reported error. */
static bool read_dtype(const request *r, etch_dtype otherwise, etch_dtype *dtype)
{
    *dtype = r->text ? etch_dtype_of(r->text) : otherwise;
    if (*dtype < ETCH_DTYPE_COUNT)
        return true;
    etch_error(r->network->session->diags, ETCH_E_DTYPE, nowhere, "%.80s: there is no dtype '%.80s'", r->name,
               r->text);
    return false;
}

static void say_dtype(const request *r)
{
    if (r->tensor && r->text)
        r->tensor->dtype_of = r->tensor;
}

static etch_dim_view dims_of(const request *r)
{
    return (etch_dim_view){r->dims, (uint32_t)r->count};
}

static void make_input(request *r)
{
    etch_graph *graph = r->network->graph;
    etch_dtype dtype;
    if (read_dtype(r, graph->dtypes.act, &dtype))
        r->tensor = etch_graph_input(graph, own_name(r, r->name), dims_of(r), dtype, nowhere);
    say_dtype(r);
}

etch_tensor *etch_network_input(etch_network *network, const char *name, const char *dtype, size_t rank,
                                etch_dim *const *dims)
{
    return make(network,
                &(request){.body = make_input, .name = name, .text = dtype, .count = rank, .dims = dims});
}

static void make_weight(request *r)
{
    etch_graph *graph = r->network->graph;
    etch_dtype dtype;
    if (read_dtype(r, graph->dtypes.weights, &dtype))
        r->tensor = etch_graph_weight(graph, own_name(r, r->name), dims_of(r), dtype, r->flag, nowhere);
    say_dtype(r);
}

etch_tensor *etch_network_weight(etch_network *network, const char *name, const char *dtype, size_t rank,
                                 etch_dim *const *dims)
{
    return make(network,
                &(request){.body = make_weight, .name = name, .text = dtype, .count = rank, .dims = dims});
}

etch_tensor *etch_network_frozen_weight(etch_network *network, const char *name, const char *dtype,
                                        size_t rank, etch_dim *const *dims)
{
    return make(
        network,
        &(request){
            .body = make_weight, .name = name, .text = dtype, .count = rank, .dims = dims, .flag = true});
}

/* ---- operators -------------------------------------------------------------------------------------- */

static void multiply(request *r)
{
    static etch_dim *const nothing[1] = {NULL};
    if (r->flag)
        r->tensor = etch_graph_product(r->network->graph, r->a, r->b, (etch_dim_view){0}, nowhere);
    else if (are_there(r->dims, r->count))
        r->tensor = etch_graph_product(r->network->graph, r->a, r->b,
                                       r->count ? dims_of(r) : (etch_dim_view){nothing, 0}, nowhere);
}

etch_tensor *etch_network_multiply(etch_network *network, etch_tensor *a, etch_tensor *b, size_t rank,
                                   etch_dim *const *keep)
{
    return make(network, &(request){.body = multiply, .a = a, .b = b, .count = rank, .dims = keep});
}

etch_tensor *etch_network_weigh(etch_network *network, etch_tensor *a, etch_tensor *b)
{
    return make(network, &(request){.body = multiply, .a = a, .b = b, .flag = true});
}

static void add(request *r)
{
    r->tensor = etch_graph_sum(r->network->graph, (etch_tensor *[]){r->a, r->b}, 2, r->flag ? 1 : 2, nowhere);
}

etch_tensor *etch_network_add(etch_network *network, etch_tensor *a, etch_tensor *b)
{
    return make(network, &(request){.body = add, .a = a, .b = b});
}

etch_tensor *etch_network_subtract(etch_network *network, etch_tensor *a, etch_tensor *b)
{
    return make(network, &(request){.body = add, .a = a, .b = b, .flag = true});
}

static void scale(request *r)
{
    r->tensor = etch_graph_scale(r->network->graph, r->a, value_of(r, r->text), nowhere);
}

etch_tensor *etch_network_scale(etch_network *network, etch_tensor *x, const char *number)
{
    return make(network, &(request){.body = scale, .a = x, .text = number});
}

static void shift(request *r)
{
    r->tensor = etch_graph_shift(r->network->graph, r->a, value_of(r, r->text), nowhere);
}

etch_tensor *etch_network_shift(etch_network *network, etch_tensor *x, const char *number)
{
    return make(network, &(request){.body = shift, .a = x, .text = number});
}

static void reduce(request *r)
{
    if (are_there(r->dims, r->count))
        r->tensor = etch_graph_reduce(r->network->graph, r->a, dims_of(r), nowhere);
}

etch_tensor *etch_network_reduce(etch_network *network, etch_tensor *x, size_t rank, etch_dim *const *keep)
{
    return make(network, &(request){.body = reduce, .a = x, .count = rank, .dims = keep});
}

static void rename_dims(request *r)
{
    r->tensor = etch_graph_rename(r->network->graph, r->a, r->dims, r->to, (uint32_t)r->count, nowhere);
}

etch_tensor *etch_network_rename(etch_network *network, etch_tensor *x, size_t count, etch_dim *const *from,
                                 etch_dim *const *to)
{
    return make(network, &(request){.body = rename_dims, .a = x, .count = count, .dims = from, .to = to});
}

/* ---- calls ------------------------------------------------------------------------------------------ */

/* "softmax needs over" */
static bool refuse(const request *r, const char *verb, const char *what)
{
    etch_error(r->network->session->diags, ETCH_E_CALL_ARGUMENTS, nowhere, "%.80s %s %.80s", r->name, verb,
               what);
    return false;
}

static bool store_dims(const request *r, const etch_network_argument *from, etch_dim_view *out)
{
    if (!are_there(from->dims, from->dim_count) || from->dim_count > UINT32_MAX / 8)
        return false;
    etch_dim **list = ETCH_NEW_ARRAY(r->network->session->arena, from->dim_count, etch_dim *);
    for (size_t i = 0; i < from->dim_count; i++)
        list[i] = from->dims[i];
    *out = (etch_dim_view){list, (uint32_t)from->dim_count};
    return true;
}

static bool store_dtype(const request *r, const etch_keyword_info *info, const char *name, uint32_t *dtype)
{
    etch_dtype found = name ? etch_dtype_of(name) : ETCH_DTYPE_COUNT;
    *dtype = (uint32_t)found + 1;
    return etch_dtype_is_real(found) || refuse(r, "needs a dtype of real numbers for", info->name);
}

/* Stores what an argument says of a keyword. False after an error. */
static bool store_keyword(const request *r, const etch_keyword_info *info, const etch_network_argument *from,
                          etch_attrs *attrs)
{
    etch_keyword_field field = etch_keyword_field_of(info, attrs);
    if (field.dims)
        return from->dim_count ? store_dims(r, from, field.dims) : refuse(r, "needs dims for", info->name);
    if (field.dtype)
        return store_dtype(r, info, from->number, field.dtype);
    etch_expr number = value_of(r, from->number);
    if (!number)
        return from->number ? false
                            : refuse(r, "needs a number for", info->name ? info->name : "its last operand");
    if (field.flag)
        *field.flag = !etch_is_zero(number);
    else if (!info->name || !etch_is_zero(number))
        *field.number = number;
    return true;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool read_argument(const request *r, const etch_row *row, const etch_network_argument *from,
                          etch_attrs *attrs, etch_operands *operands)
{
    const etch_keyword_info *info;
    for (uint32_t i = 0; (info = etch_keyword_at(i)) != NULL; i++)
        if ((etch_row_takes(row) & info->bit) && same_text(info->name, from->name))
            return store_keyword(r, info, from, attrs);
    uint32_t slot = from->name ? etch_operands_index(operands, from->name) : UINT32_MAX;
    if (slot == UINT32_MAX)
        return refuse(r, "takes no", from->name ? from->name : "number behind its operands");
    operands->at[slot] = from->tensor;
    return from->tensor != NULL;
}

static void call_row(request *r)
{
    etch_graph *graph = r->network->graph;
    const etch_row *row = etch_row_called(graph->table, r->name);
    if (!row) {
        etch_error(graph->diags, ETCH_E_UNKNOWN_FUNCTION, nowhere, "there is no op '%.80s'", r->name);
        return;
    }
    if (etch_row_is_several(row)) {
        refuse(r, "has several results:", "a spec says of which dims");
        return;
    }
    etch_attrs attrs = {0};
    etch_operands operands = etch_operands_of(graph->arena, row);
    if (r->count < operands.least || r->count > operands.most) {
        refuse(r, "takes this many operands:",
               etch_text(graph->arena, operands.least == operands.most ? "%u" : "%u to %u", operands.least,
                         operands.most));
        return;
    }
    bool good = true;
    for (size_t i = 0; i < r->count; i++)
        good = (operands.at[i] = r->tensors[i]) != NULL && good;
    for (size_t i = 0; i < r->second_count && good; i++)
        good = read_argument(r, row, &r->arguments[i], &attrs, &operands);
    const etch_keyword_info *missing = good ? etch_keyword_missing(row, &attrs) : NULL;
    if (missing)
        good = refuse(r, "needs", missing->name ? missing->name : "a number behind its operands");
    if (good)
        r->tensor = etch_graph_call_operands(graph, row, &operands, &attrs, (etch_dim_view){0}, nowhere);
}

etch_tensor *etch_network_call(etch_network *network, const char *op, size_t operand_count,
                               etch_tensor *const *operands, size_t argument_count,
                               const etch_network_argument *arguments)
{
    return make(network, &(request){.body = call_row,
                                    .name = op,
                                    .count = operand_count,
                                    .tensors = operands,
                                    .second_count = argument_count,
                                    .arguments = arguments});
}

static void name_tensor(request *r)
{
    if (r->a)
        r->a->name = own_name(r, r->name);
}

void etch_network_name(etch_network *network, etch_tensor *tensor, const char *name)
{
    run(network, &(request){.body = name_tensor, .a = tensor, .name = name});
}

static void tag_tensor(request *r)
{
    if (!r->a)
        return;
    const char **tags = ETCH_NEW_ARRAY(r->network->session->arena, r->a->tag_count + 1, const char *);
    for (uint32_t i = 0; i < r->a->tag_count; i++)
        tags[i] = r->a->tags[i];
    tags[r->a->tag_count++] = own_name(r, r->name);
    r->a->tags = tags;
}

void etch_network_tag(etch_network *network, etch_tensor *tensor, const char *tag)
{
    run(network, &(request){.body = tag_tensor, .a = tensor, .name = tag});
}

/* ---- modules and loops ------------------------------------------------------------------------------ */

static void enter(request *r)
{
    etch_graph_enter(r->network->graph, own_name(r, r->name), nowhere);
}

void etch_network_enter(etch_network *network, const char *module)
{
    run(network, &(request){.body = enter, .name = module});
}

static void leave(request *r)
{
    if (r->network->graph->scope->parent)
        etch_graph_leave(r->network->graph);
    else
        etch_error(r->network->session->diags, ETCH_E_NETWORK, nowhere,
                   "a module is left that was not entered");
}

void etch_network_leave(etch_network *network)
{
    run(network, &(request){.body = leave});
}

static void pass(request *r)
{
    r->tensor = etch_graph_pass(r->network->graph, r->flag ? ETCH_ENTER : ETCH_LEAVE, r->a,
                                own_name(r, r->name), nowhere);
}

etch_tensor *etch_network_pass_in(etch_network *network, etch_tensor *value, const char *name)
{
    return make(network, &(request){.body = pass, .a = value, .name = name, .flag = true});
}

etch_tensor *etch_network_pass_out(etch_network *network, etch_tensor *value, const char *name)
{
    return make(network, &(request){.body = pass, .a = value, .name = name});
}

static bool may_nest(const request *r)
{
    uint32_t depth = 0;
    for (const etch_region *region = r->network->graph->region; region; region = region->parent)
        depth += region->loop != NULL;
    if (depth < ETCH_LOOPS_NESTED)
        return true;
    etch_error(r->network->session->diags, ETCH_E_LOOPS_TOO_DEEP, nowhere, "more than %d loops are nested",
               ETCH_LOOPS_NESTED);
    return false;
}

static void repeat(request *r)
{
    etch_expr count = value_of(r, r->text);
    if (count && may_nest(r))
        etch_graph_begin(r->network->graph, own_name(r, r->name), count, nowhere);
}

void etch_network_repeat(etch_network *network, const char *name, const char *count)
{
    run(network, &(request){.body = repeat, .name = name, .text = count});
}

static bool is_in_loop(const request *r)
{
    if (r->network->graph->region->loop)
        return true;
    if (etch_error_count(r->network->session->diags) == 0)
        etch_error(r->network->session->diags, ETCH_E_NETWORK, nowhere, "no loop has begun");
    return false;
}

static void carry(request *r)
{
    if (is_in_loop(r))
        r->tensor = etch_graph_carry(r->network->graph, r->a, nowhere);
}

etch_tensor *etch_network_carry(etch_network *network, etch_tensor *value)
{
    return make(network, &(request){.body = carry, .a = value});
}

static void end_loop(request *r)
{
    if (!is_in_loop(r))
        return;
    for (size_t i = 0; i < r->count; i++)
        r->results[i] = NULL;
    const uint32_t carried = r->network->graph->region->carries.count;
    if (r->count != carried)
        etch_error(r->network->session->diags, ETCH_E_NETWORK, nowhere,
                   "a loop hands on %u values, %zu are given at its end", carried, r->count);
    etch_tensor **outs = ETCH_NEW_ARRAY(r->network->session->arena, carried, etch_tensor *),
                **results = ETCH_NEW_ARRAY(r->network->session->arena, carried, etch_tensor *);
    for (size_t i = 0; i < r->count && i < carried; i++)
        outs[i] = r->tensors[i];
    etch_graph_end(r->network->graph, outs, results, carried);
    for (size_t i = 0; i < r->count && i < carried; i++)
        r->results[i] = results[i];
}

void etch_network_end(etch_network *network, size_t count, etch_tensor *const *changed, etch_tensor **results)
{
    run(network, &(request){.body = end_loop, .count = count, .tensors = changed, .results = results});
}

/* ---- the session's side ----------------------------------------------------------------------------- */

/* Lets the program build, then goes on with what stopped it, if anything did. */
static void build(void *data, etch_site *site)
{
    const etch_session_network *model = data;
    etch_network network = {.session = model->session, .site = site, .graph = etch_site_graph(site)};
    const etch_scope *scope = network.graph->scope;
    model->model.build(&network, model->model.data);
    if (network.broken != ETCH_OK)
        etch_trap(model->session->mem, network.broken);
    if (network.graph->scope != scope || network.graph->region != network.graph->forward)
        etch_error(model->session->diags, ETCH_E_NETWORK, nowhere, "%s ends inside a %s", model->model.name,
                   network.graph->scope != scope ? "module" : "loop");
}

etch_native *etch_session_natives(etch_session *session, const etch_network_model *models, size_t count)
{
    etch_native *natives = ETCH_NEW_ARRAY(session->arena, count, etch_native);
    for (size_t i = 0; i < count; i++) {
        etch_session_network *own = ETCH_NEW(session->arena, etch_session_network);
        *own = (etch_session_network){session, models[i]};
        own->model.name = etch_copy_text(session->arena, models[i].name, strlen(models[i].name));
        natives[i] = (etch_native){.name = own->model.name, .build = build, .data = own};
    }
    return natives;
}
