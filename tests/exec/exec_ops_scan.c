#include "exec_ops_scan.h"
#include "exec_ops_walk.h"

#include <math.h>

/* Groups, heads of a group, positions, elements of the state, elements of the width: an index for each. */
typedef enum space { GROUP, HEAD, PLACE, STATE, WIDTH, SPACES } space;

typedef struct scan {
    exec_call *call;
    exec_array spaces[SPACES]; /* dims and ranges */
    uint32_t count[SPACES], chunk;
    const exec_array *u, *dt, *a, *b, *c;
} scan;

/* One group or head in plain arrays: [place][state], ... */
typedef double *matrix;

static matrix zeros(const scan *k, uint32_t rows, uint32_t columns)
{
    return ETCH_NEW_ARRAY(k->call->arena, (size_t)rows * columns, double);
}

/* ---- what is there ------------------------------------------------------------------------------------- */

static void add_dims(scan *k, space to, const exec_array *from, space less)
{
    const etch_attrs *attrs = &k->call->op->attrs;
    for (uint32_t i = 0; i < from->rank; i++) {
        bool known = from->dims[i] == attrs->over.at[0] ||
                     exec_array_find(&k->spaces[less], from->dims[i]) >= 0 ||
                     exec_array_find(&k->spaces[GROUP], from->dims[i]) >= 0;
        for (uint32_t n = 0; n < attrs->state.count; n++)
            known = known || from->dims[i] == attrs->state.at[n];
        if (!known)
            exec_array_add_dim_of(&k->spaces[to], from, i);
    }
}

static void add_whole(scan *k, space to, const etch_dim *dim, const exec_array *from)
{
    int at = exec_array_find(from, dim);
    uint32_t size = exec_size(k->call->env, dim);
    if (at < 0 || from->count[at] != size)
        exec_fail(k->call->env, "ssd needs all of %s and has %s", dim->name,
                  exec_array_text(k->call->arena, from));
    exec_array_add_dim(&k->spaces[to], dim, 0, size);
}

static scan scan_of(exec_call *call, const exec_array *const *ins)
{
    const etch_attrs *attrs = &call->op->attrs;
    scan k = {.call = call, .chunk = exec_integer(attrs->chunk)};
    k.u = ins[0], k.dt = ins[1], k.a = ins[2], k.b = ins[3], k.c = ins[4];
    for (uint32_t i = 0; i < 5; i++)
        for (uint32_t n = 0; n < i; n++)
            if (!exec_arrays_agree(ins[i], ins[n]))
                exec_fail(call->env, "ssd: %s meets %s", exec_array_text(call->arena, ins[i]),
                          exec_array_text(call->arena, ins[n]));
    add_whole(&k, PLACE, attrs->over.at[0], k.u);
    for (uint32_t n = 0; n < attrs->state.count; n++)
        add_whole(&k, STATE, attrs->state.at[n], k.b);
    add_dims(&k, GROUP, k.b, GROUP);
    add_dims(&k, HEAD, k.dt, HEAD);
    add_dims(&k, WIDTH, k.u, HEAD);
    for (int s = 0; s < SPACES; s++) {
        k.count[s] = 1;
        for (uint32_t i = 0; i < k.spaces[s].rank; i++)
            k.count[s] *= k.spaces[s].count[i];
    }
    return k;
}

/* The element of `x` at an index of each space; those that it lacks do not matter. */
static double *cell(const scan *k, const exec_array *x, const uint32_t at[SPACES])
{
    size_t offset = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t index = 0;
        for (int s = 0; s < SPACES; s++) {
            int dim = exec_array_find(&k->spaces[s], x->dims[i]);
            uint32_t inside = 1;
            for (uint32_t d = (uint32_t)(dim + 1); dim >= 0 && d < k->spaces[s].rank; d++)
                inside *= k->spaces[s].count[d];
            if (dim >= 0)
                index = at[s] / inside % k->spaces[s].count[dim];
        }
        offset = offset * x->held[i] + index;
    }
    return &x->at[offset];
}

static matrix take(const scan *k, const exec_array *x, space columns, uint32_t group, uint32_t head)
{
    matrix m = zeros(k, k->count[PLACE], k->count[columns]);
    for (uint32_t t = 0; t < k->count[PLACE]; t++)
        for (uint32_t i = 0; i < k->count[columns]; i++) {
            uint32_t at[SPACES] = {[GROUP] = group, [HEAD] = head, [PLACE] = t};
            if (columns != PLACE)
                at[columns] = i;
            m[t * k->count[columns] + i] = *cell(k, x, at);
        }
    return m;
}

static void give(const scan *k, const exec_array *x, space columns, uint32_t group, uint32_t head,
                 const double *m)
{
    for (uint32_t t = 0; t < k->count[PLACE]; t++)
        for (uint32_t i = 0; i < k->count[columns]; i++) {
            uint32_t at[SPACES] = {[GROUP] = group, [HEAD] = head, [PLACE] = t};
            at[columns] = i;
            *cell(k, x, at) += m[t * k->count[columns] + i];
        }
}

/* y += scale a b, of vectors; and the sum of products. Each multiply-add is two FLOP. */
static void add_scaled(const scan *k, double *y, double scale, const double *x, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        y[i] += scale * x[i];
        k->call->flop += 2;
    }
}

static double dot(const scan *k, const double *a, const double *b, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
        k->call->flop += 2;
    }
    return sum;
}

/* ---- one group ----------------------------------------------------------------------------------------- */

typedef struct group {
    uint32_t index;
    matrix b, c, scores, of_scores; /* [place][state]; [place][place of the chunk] */
    matrix of_b, of_c;
} group;

static group take_group(const scan *k, uint32_t index)
{
    const uint32_t states = k->count[STATE], length = k->count[PLACE];
    group g = {.index = index, .b = take(k, k->b, STATE, index, 0), .c = take(k, k->c, STATE, index, 0)};
    g.scores = zeros(k, length, k->chunk);
    for (uint32_t t = 0; t < length; t++)
        for (uint32_t s = 0; s <= t % k->chunk; s++)
            g.scores[t * k->chunk + s] =
                dot(k, g.c + t * states, g.b + (t - t % k->chunk + s) * states, states);
    return g;
}

/* ---- one head ------------------------------------------------------------------------------------------ */

typedef struct head {
    matrix u;          /* [place][width] */
    const double *dt;  /* [place] */
    double *log_decay; /* [place]: of the state before the chunk, up to and with the place */
    double rate;       /* exp(a) */
    matrix before;     /* [chunk][state][width]: the state before each chunk */
} head;

static double from(const head *h, uint32_t t, uint32_t s)
{
    return exp(h->log_decay[t] - h->log_decay[s]) * h->dt[s];
}

/* Has it a state beside the result? */
static bool is_served(const scan *k)
{
    return k->call->op->out_count == 2;
}

/* The i-th element, of state by width, of the state that a head begins and ends with. */
static double *state_cell(const scan *k, uint32_t of_group, uint32_t of_head, uint32_t i)
{
    const uint32_t at[SPACES] = {
        [GROUP] = of_group, [HEAD] = of_head, [STATE] = i / k->count[WIDTH], [WIDTH] = i % k->count[WIDTH]};
    return cell(k, k->call->outs[1], at);
}

/* Reads the head and computes the states that chunks begin with. */
static head take_head(const scan *k, const group *g, uint32_t index)
{
    const uint32_t states = k->count[STATE], width = k->count[WIDTH], length = k->count[PLACE],
                   chunk = k->chunk;
    const uint32_t at[SPACES] = {[GROUP] = g->index, [HEAD] = index};
    head h = {.u = take(k, k->u, WIDTH, g->index, index),
              .log_decay = zeros(k, length, 1),
              .rate = exp(*cell(k, k->a, at)),
              .before = zeros(k, length / chunk + 1, states * width)};
    double *dt = zeros(k, length, 1);
    for (uint32_t t = 0; t < length; t++) {
        const uint32_t place[SPACES] = {[GROUP] = g->index, [HEAD] = index, [PLACE] = t};
        dt[t] = *cell(k, k->dt, place);
        h.log_decay[t] = (t % chunk ? h.log_decay[t - 1] : 0) - dt[t] * h.rate;
    }
    h.dt = dt;
    for (uint32_t i = 0; is_served(k) && i < states * width; i++)
        h.before[i] = *state_cell(k, g->index, index, i);
    for (uint32_t first = 0; first < length; first += chunk) {
        const uint32_t last = first + chunk - 1;
        const double *now = h.before + first / chunk * states * width;
        double *next = h.before + (first / chunk + 1) * states * width;
        for (uint32_t s = first; s <= last; s++)
            for (uint32_t n = 0; n < states; n++)
                add_scaled(k, next + n * width, from(&h, last, s) * g->b[s * states + n], h.u + s * width,
                           width);
        add_scaled(k, next, exp(h.log_decay[last]), now, states * width);
    }
    return h;
}

static void run_head(const scan *k, const group *g, uint32_t index)
{
    const uint32_t states = k->count[STATE], width = k->count[WIDTH], chunk = k->chunk;
    const head h = take_head(k, g, index);
    matrix y = zeros(k, k->count[PLACE], width);
    for (uint32_t t = 0; t < k->count[PLACE]; t++) {
        const uint32_t first = t - t % chunk;
        for (uint32_t s = first; s <= t; s++)
            add_scaled(k, y + t * width, g->scores[t * chunk + s - first] * from(&h, t, s), h.u + s * width,
                       width);
        for (uint32_t n = 0; n < states; n++)
            add_scaled(k, y + t * width, exp(h.log_decay[t]) * g->c[t * states + n],
                       h.before + (first / chunk * states + n) * width, width);
    }
    give(k, k->call->outs[0], WIDTH, g->index, index, y);
    for (uint32_t i = 0; is_served(k) && i < states * width; i++)
        *state_cell(k, g->index, index, i) = h.before[(k->count[PLACE] / chunk) * states * width + i];
}

void exec_run_ssd(exec_call *call)
{
    const scan k = scan_of(call, call->ins);
    if (is_served(&k))
        exec_fill_left(call, call->outs[1]);
    for (uint32_t i = 0; i < k.count[GROUP] && !call->env->failure; i++) {
        const group g = take_group(&k, i);
        for (uint32_t n = 0; n < k.count[HEAD]; n++)
            run_head(&k, &g, n);
    }
}

/* ---- gradients ----------------------------------------------------------------------------------------- */

/* Cotangents of a head. */
typedef struct pull {
    matrix y, u;            /* [place][width] */
    double *dt, *log_decay; /* [place] */
    matrix state;           /* [state][width]: of that behind the chunk */
} pull;

/* y = scores decay u, inside a chunk. */
static void pull_pairs(const scan *k, group *g, const head *h, pull *d)
{
    const uint32_t width = k->count[WIDTH], chunk = k->chunk;
    for (uint32_t t = 0; t < k->count[PLACE]; t++)
        for (uint32_t s = t - t % chunk; s <= t; s++) {
            const size_t pair = t * chunk + s % chunk;
            double weight = g->scores[pair] * from(h, t, s);
            double pulled = dot(k, d->y + t * width, h->u + s * width, width);
            add_scaled(k, d->u + s * width, weight, d->y + t * width, width);
            g->of_scores[pair] += pulled * from(h, t, s);
            d->dt[s] += pulled * weight / h->dt[s];
            d->log_decay[t] += pulled * weight;
            d->log_decay[s] -= pulled * weight;
        }
}

/* What a chunk adds to the state behind it. */
static void pull_added(const scan *k, const group *g, const head *h, pull *d, uint32_t first)
{
    const uint32_t states = k->count[STATE], width = k->count[WIDTH], last = first + k->chunk - 1;
    for (uint32_t s = first; s <= last; s++) {
        double along = 0;
        for (uint32_t n = 0; n < states; n++) {
            double pulled = dot(k, d->state + n * width, h->u + s * width, width);
            add_scaled(k, d->u + s * width, from(h, last, s) * g->b[s * states + n], d->state + n * width,
                       width);
            g->of_b[s * states + n] += from(h, last, s) * pulled;
            along += g->b[s * states + n] * pulled;
        }
        d->dt[s] += along * from(h, last, s) / h->dt[s];
        d->log_decay[last] += along * from(h, last, s);
        d->log_decay[s] -= along * from(h, last, s);
    }
}

/* What the state before a chunk gives; leaves the cotangent of that state. */
static void pull_given(const scan *k, const group *g, const head *h, pull *d, uint32_t first)
{
    const uint32_t states = k->count[STATE], width = k->count[WIDTH], last = first + k->chunk - 1;
    const double *before = h->before + first / k->chunk * states * width;
    matrix state = zeros(k, states, width);
    d->log_decay[last] += exp(h->log_decay[last]) * dot(k, d->state, before, states * width);
    add_scaled(k, state, exp(h->log_decay[last]), d->state, states * width);
    for (uint32_t t = first; t <= last; t++)
        for (uint32_t n = 0; n < states; n++) {
            double decay = exp(h->log_decay[t]), pulled = dot(k, d->y + t * width, before + n * width, width);
            g->of_c[t * states + n] += decay * pulled;
            d->log_decay[t] += decay * g->c[t * states + n] * pulled;
            add_scaled(k, state + n * width, decay * g->c[t * states + n], d->y + t * width, width);
        }
    d->state = state;
}

/* The decays are sums of dt over the places of a chunk, times the rate. */
static void pull_decays(const scan *k, const head *h, pull *d, double *of_a)
{
    for (uint32_t t = k->count[PLACE]; t-- > 0;) {
        if ((t + 1) % k->chunk)
            d->log_decay[t] += d->log_decay[t + 1];
        d->dt[t] -= h->rate * d->log_decay[t];
        *of_a -= h->rate * h->dt[t] * d->log_decay[t];
    }
}

static void pull_head(const scan *k, group *g, uint32_t index)
{
    exec_array *const *outs = k->call->outs;
    const uint32_t length = k->count[PLACE];
    const head h = take_head(k, g, index);
    pull d = {.y = take(k, k->call->ins[0], WIDTH, g->index, index),
              .u = zeros(k, length, k->count[WIDTH]),
              .dt = zeros(k, length, 1),
              .log_decay = zeros(k, length, 1),
              .state = zeros(k, k->count[STATE], k->count[WIDTH])};
    pull_pairs(k, g, &h, &d);
    for (uint32_t first = length; first > 0;) {
        first -= k->chunk;
        pull_added(k, g, &h, &d, first);
        pull_given(k, g, &h, &d, first);
    }
    const uint32_t at[SPACES] = {[GROUP] = g->index, [HEAD] = index};
    pull_decays(k, &h, &d, cell(k, outs[2], at));
    give(k, outs[0], WIDTH, g->index, index, d.u);
    for (uint32_t t = 0; t < length; t++) {
        const uint32_t place[SPACES] = {[GROUP] = g->index, [HEAD] = index, [PLACE] = t};
        *cell(k, outs[1], place) += d.dt[t];
    }
}

static void pull_scores(const scan *k, const group *g)
{
    const uint32_t states = k->count[STATE], chunk = k->chunk;
    for (uint32_t t = 0; t < k->count[PLACE]; t++)
        for (uint32_t s = t - t % chunk; s <= t; s++) {
            double pulled = g->of_scores[t * chunk + s % chunk];
            add_scaled(k, g->of_c + t * states, pulled, g->b + s * states, states);
            add_scaled(k, g->of_b + s * states, pulled, g->c + t * states, states);
        }
}

void exec_run_ssd_bwd(exec_call *call)
{
    const scan k = scan_of(call, call->ins + 1);
    for (uint32_t i = 0; i < k.count[GROUP] && !call->env->failure; i++) {
        group g = take_group(&k, i);
        g.of_scores = zeros(&k, k.count[PLACE], k.chunk);
        g.of_b = zeros(&k, k.count[PLACE], k.count[STATE]);
        g.of_c = zeros(&k, k.count[PLACE], k.count[STATE]);
        for (uint32_t n = 0; n < k.count[HEAD]; n++)
            pull_head(&k, &g, n);
        pull_scores(&k, &g);
        give(&k, call->outs[3], STATE, i, 0, g.of_b);
        give(&k, call->outs[4], STATE, i, 0, g.of_c);
    }
}
