#include "exec_ops_window.h"
#include "exec_ops_walk.h"

enum { MAX_ALONG = 3 };

/* The window of an op: along each dim how long it is and how many zeros stand before the first element. */
typedef struct window {
    const etch_attrs *attrs;
    const etch_dim *stop[MAX_ALONG]; /* the result's dim */
    uint32_t length[MAX_ALONG];
    int64_t before[MAX_ALONG];
    int64_t stride;
} window;

static window window_of(const exec_call *call)
{
    const etch_attrs *attrs = &call->op->attrs;
    window win = {.attrs = attrs, .stride = attrs->stride ? exec_integer(attrs->stride) : 1};
    EXEC_REQUIRE(attrs->over.count <= MAX_ALONG);
    for (uint32_t i = 0; i < attrs->over.count; i++) {
        win.stop[i] = attrs->over.at[i];
        for (uint32_t m = 0; m < attrs->to.count; m++)
            if (attrs->from.at[m] == attrs->over.at[i])
                win.stop[i] = attrs->to.at[m];
        win.length[i] = attrs->size ? exec_integer(attrs->size) : exec_size(call->env, attrs->kernel.at[i]);
        int64_t around = win.length[i] - win.stride;
        win.before[i] = attrs->causal ? win.length[i] - 1 : around > 0 ? (around + 1) / 2 : 0;
    }
    return win;
}

/* The element of `x` at the walk's indices, seen at the place `in` of the window; NULL among the zeros. */
static double *seen(exec_call *call, const window *win, const exec_walk *w, const exec_array *x,
                    const uint32_t *in)
{
    size_t at = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t index = exec_walk_index(w, x->dims[i]);
        for (uint32_t k = 0; k < win->attrs->over.count; k++) {
            if (win->attrs->over.at[k] != x->dims[i])
                continue;
            index = exec_walk_index(w, win->stop[k]) * win->stride + in[k] - win->before[k];
            if (index < 0 || index >= exec_size(call->env, x->dims[i]))
                return NULL;
        }
        uint32_t place = exec_array_place(x, i, (uint32_t)index);
        if (place == EXEC_NOWHERE) {
            exec_fail(call->env, "%s reads what is not there: only %s", etch_row_name(call->op->row),
                      exec_array_text(call->arena, x));
            return NULL;
        }
        at = at * x->held[i] + place;
    }
    return &x->at[at];
}

/* ---- convolutions -------------------------------------------------------------------------------------- */

typedef enum unknown { IS_Y, IS_X, IS_W } unknown;

/* One multiply-add for each place of the kernel and of the result and each channel, also among the zeros. */
static void convolve(exec_call *call, const exec_array *y, const exec_array *x, const exec_array *w,
                     unknown of)
{
    const window win = window_of(call);
    if (!exec_arrays_agree(y, w)) {
        exec_fail(call->env, "conv: %s meets %s", exec_array_text(call->arena, y),
                  exec_array_text(call->arena, w));
        return;
    }
    exec_walk walk = exec_walk_over(2, (const exec_array *[]){y, w});
    while (!call->env->failure && exec_walk_next(&walk)) {
        uint32_t in[MAX_ALONG];
        for (uint32_t k = 0; k < win.attrs->over.count; k++)
            in[k] = exec_walk_index(&walk, win.attrs->kernel.at[k]);
        double *of_x = seen(call, &win, &walk, x, in);
        call->flop += 2;
        if (of_x && of == IS_Y)
            y->at[walk.at[0]] += *of_x * w->at[walk.at[1]];
        else if (of_x && of == IS_X)
            *of_x += y->at[walk.at[0]] * w->at[walk.at[1]];
        else if (of_x)
            w->at[walk.at[1]] += *of_x * y->at[walk.at[0]];
    }
}

void exec_run_conv(exec_call *call)
{
    convolve(call, call->outs[0], call->ins[0], call->ins[1], IS_Y);
}

void exec_run_conv_dx(exec_call *call)
{
    convolve(call, call->ins[0], call->outs[0], call->ins[1], IS_X);
}

void exec_run_conv_dw(exec_call *call)
{
    convolve(call, call->ins[0], call->ins[1], call->outs[0], IS_W);
}

/* Places before the run are those of the state, which ends with the last places of the run. */
static double place_seen(exec_call *call, const exec_walk *walk, int64_t index)
{
    const etch_attrs *attrs = &call->op->attrs;
    const exec_array *state = call->outs[1];
    if (index >= 0)
        return exec_element(call, walk, call->ins[0], attrs->over.at[0], (uint32_t)index);
    index += exec_size(call->env, attrs->state.at[0]);
    return exec_left_before(call, walk, state, attrs->state.at[0], (uint32_t)index);
}

void exec_run_conv_from(exec_call *call)
{
    const etch_attrs *attrs = &call->op->attrs;
    const etch_dim *over = attrs->over.at[0], *kernel = attrs->kernel.at[0], *kept = attrs->state.at[0];
    const exec_array *y = call->outs[0], *w = call->ins[1], *state = call->outs[1];
    const etch_dim *stop = attrs->to.count ? attrs->to.at[0] : over;
    if (!exec_whole_dims(call, call->ins[0], attrs->over.at, 1))
        return;
    exec_walk walk = WALK(y, w);
    while (!call->env->failure && exec_walk_next(&walk)) {
        const int64_t first = (int64_t)exec_walk_index(&walk, stop) - exec_size(call->env, kept);
        y->at[walk.at[0]] +=
            place_seen(call, &walk, first + exec_walk_index(&walk, kernel)) * w->at[walk.at[1]];
        call->flop += 2;
    }
    walk = WALK(state);
    while (!call->env->failure && exec_walk_next(&walk)) {
        const int64_t first = (int64_t)exec_size(call->env, over) - exec_size(call->env, kept);
        state->at[walk.at[0]] = place_seen(call, &walk, first + exec_walk_index(&walk, kept));
    }
}

/* ---- pooling ------------------------------------------------------------------------------------------- */

/* Goes to the next place in the window; false at its end. */
static bool next_place(const window *win, uint32_t *in)
{
    for (uint32_t k = win->attrs->over.count; k-- > 0;) {
        if (++in[k] < win->length[k])
            return true;
        in[k] = 0;
    }
    return false;
}

void exec_run_max_pool(exec_call *call)
{
    const window win = window_of(call);
    exec_walk w = exec_walk_over(1, (const exec_array *[]){call->outs[0]});
    while (!call->env->failure && exec_walk_next(&w)) {
        uint32_t in[MAX_ALONG] = {0};
        const double *most = NULL;
        do {
            const double *x = seen(call, &win, &w, call->ins[0], in);
            if (x && (!most || *x > *most))
                most = x;
            call->flop++;
        } while (next_place(&win, in));
        call->outs[0]->at[w.at[0]] = most ? *most : 0;
    }
}

void exec_run_max_pool_dx(exec_call *call)
{
    const window win = window_of(call);
    const exec_array *d = call->ins[0], *x = call->ins[1], *y = call->ins[2];
    exec_walk w = exec_walk_over(2, (const exec_array *[]){d, y});
    while (!call->env->failure && exec_walk_next(&w)) {
        uint32_t in[MAX_ALONG] = {0};
        bool given = false;
        do {
            const double *from = seen(call, &win, &w, x, in);
            double *into = seen(call, &win, &w, call->outs[0], in);
            if (from && into && !given && *from == y->at[w.at[1]]) {
                *into += d->at[w.at[0]];
                given = true;
            }
            call->flop++;
        } while (next_place(&win, in));
    }
}

static double share(const window *win)
{
    double places = 1;
    for (uint32_t k = 0; k < win->attrs->over.count; k++)
        places *= win->length[k];
    return 1 / places;
}

/* Zeros around the operand count as elements. */
void exec_run_avg_pool(exec_call *call)
{
    const window win = window_of(call);
    exec_walk w = exec_walk_over(1, (const exec_array *[]){call->outs[0]});
    while (!call->env->failure && exec_walk_next(&w)) {
        uint32_t in[MAX_ALONG] = {0};
        do {
            const double *x = seen(call, &win, &w, call->ins[0], in);
            call->outs[0]->at[w.at[0]] += x ? *x * share(&win) : 0;
            call->flop++;
        } while (next_place(&win, in));
    }
}

void exec_run_avg_pool_dx(exec_call *call)
{
    const window win = window_of(call);
    exec_walk w = exec_walk_over(1, (const exec_array *[]){call->ins[0]});
    while (!call->env->failure && exec_walk_next(&w)) {
        uint32_t in[MAX_ALONG] = {0};
        do {
            double *x = seen(call, &win, &w, call->outs[0], in);
            if (x)
                *x += call->ins[0]->at[w.at[0]] * share(&win);
            call->flop++;
        } while (next_place(&win, in));
    }
}
