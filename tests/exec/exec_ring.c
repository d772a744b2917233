/* Attention whose blocks go round: each rank computes with the block that it has, and passes it on. Forward
 * goes on from the sums of exponentials of the blocks before. Backward adds what it makes for a block to what
 * comes with it; the last rank that has it is the one that it belongs to. */
#include "exec_made.h"
#include "exec_ranks.h"
#include "exec_traffic.h"

#include "graph/step/kernel.h"

#include <math.h>
#include <string.h>

typedef struct going {
    exec_ranks *ranks;
    const etch_step *step;
    uint32_t size;
    exec_array ***parts; /* by operand and rank: what ranks have at first */
    exec_array ***held;  /* the same by now */
    exec_array ***outs;  /* by result and rank */
    int64_t *flop;       /* by rank */
    int64_t *of_block;   /* by rank and block: FLOP of that run */
    uint64_t sent[2];    /* by the first rank: of operands, of results */
    exec_rounds rounds;  /* of the first rank */
} going;

bool exec_goes_round(const etch_step *step, uint32_t operand)
{
    const etch_step *maker = step->ins[operand]->step;
    return step->ring && maker && maker->collective == ETCH_PERMUTE;
}

/* Is the result of blocks of what goes round? */
static bool is_returned(const etch_step *step, uint32_t result)
{
    const etch_tensor *tensor = step->outs[result]->tensor;
    for (uint32_t i = 0; i < step->in_count; i++)
        if (exec_goes_round(step, i) && tensor->of == etch_origin(step->ins[i]->tensor))
            return true;
    return false;
}

/* The rank so many places before in the ring. */
static uint32_t before(const going *g, uint32_t rank, uint32_t places)
{
    const exec_mesh *mesh = &g->ranks->mesh;
    const uint32_t at = exec_mesh_place(mesh, rank, g->step->ring);
    for (uint32_t r = 0; r < mesh->ranks; r++)
        if (exec_mesh_is_group(mesh, r, rank, g->step->ring) &&
            exec_mesh_place(mesh, r, g->step->ring) == (at + g->size - places) % g->size)
            return r;
    ck_abort_msg("no rank before %u", rank);
}

/* Every rank gives what it has of these to the next one. */
static uint64_t pass_on(const going *g, exec_array **arrays, const etch_tensor *tensor)
{
    const uint32_t ranks = g->ranks->mesh.ranks;
    exec_array **now = ETCH_NEW_ARRAY(g->ranks->values.arena, ranks, exec_array *);
    for (uint32_t r = 0; r < ranks; r++)
        now[r] = arrays[before(g, r, 1)];
    memcpy(arrays, now, ranks * sizeof *now);
    return exec_array_size(now[0]) * etch_dtype_bytes(tensor->dtype);
}

static void pass_blocks(going *g)
{
    for (uint32_t i = 0; i < g->step->in_count; i++)
        if (exec_goes_round(g->step, i))
            g->sent[0] += pass_on(g, g->held[i], g->step->ins[i]->tensor);
}

static double log_sum(double a, double b)
{
    const double most = fmax(a, b);
    return most == -INFINITY ? most : most + log(exp(a - most) + exp(b - most));
}

/* The results of a block and those of the blocks before are those of all of them. */
static void merge_forward(const going *g, uint32_t rank, exec_array *const *made)
{
    exec_array *o = g->outs[0][rank], *stat = g->outs[1][rank];
    exec_walk w = exec_walk_over(4, (const exec_array *[]){o, stat, made[0], made[1]});
    while (exec_walk_next(&w)) {
        const double a = stat->at[w.at[1]], b = made[1]->at[w.at[3]], both = log_sum(a, b);
        const double of_a = both == -INFINITY ? 0 : exp(a - both),
                     of_b = both == -INFINITY ? 0 : exp(b - both);
        o->at[w.at[0]] = of_a * o->at[w.at[0]] + of_b * made[0]->at[w.at[2]];
    }
    exec_walk s = exec_walk_over(2, (const exec_array *[]){stat, made[1]});
    while (exec_walk_next(&s))
        stat->at[s.at[0]] = log_sum(stat->at[s.at[0]], made[1]->at[s.at[1]]);
}

static void add(exec_array *into, const exec_array *from)
{
    exec_walk w = exec_walk_over(2, (const exec_array *[]){into, from});
    while (exec_walk_next(&w))
        into->at[w.at[0]] += from->at[w.at[1]];
}

/* One run on a rank, with the block that is at home `block` places before. */
static void run_block(going *g, uint32_t rank, uint32_t block)
{
    exec_ranks *ranks = g->ranks;
    const etch_step *step = g->step;
    exec_call call = {.env = &ranks->env,
                      .arena = ranks->values.arena,
                      .op = step->op,
                      .block = block == 0 ? EXEC_OWN_BLOCK : EXEC_OTHER_BLOCK};
    for (uint32_t i = 0; i < step->in_count; i++)
        call.ins[i] = g->held[i][rank];
    const uint32_t home = before(g, rank, block);
    for (uint32_t i = 0; i < step->out_count; i++) {
        call.outs[i] = ETCH_NEW(ranks->values.arena, exec_array);
        *call.outs[i] = exec_mesh_part(&ranks->mesh, &ranks->env, step->outs[i]->tensor, step->outs[i]->place,
                                       is_returned(step, i) ? home : rank);
        exec_array_fill(ranks->values.arena, call.outs[i]);
    }
    exec_op(&call);
    g->flop[rank] += call.flop;
    g->of_block[rank * g->size + block] = call.flop;
    if (rank == 0 && call.flop > 0) {
        g->rounds.runs++;
        g->rounds.sums += block != 1 && g->size > 1 && step->phase == ETCH_BACKWARD; /* the first is sent */
    }
    if (ranks->env.failure)
        return;
    if (step->phase != ETCH_BACKWARD) {
        merge_forward(g, rank, call.outs);
        return;
    }
    for (uint32_t i = 0; i < step->out_count; i++)
        add(g->outs[i][rank], call.outs[i]);
}

static void run_blocks(going *g, uint32_t block)
{
    for (uint32_t r = 0; r < g->ranks->mesh.ranks && !g->ranks->env.failure; r++)
        run_block(g, r, block);
}

/* What a rank makes for a block goes with that: zeros at first, of the block that comes next. */
static void pass_results(going *g, bool begins)
{
    exec_ranks *ranks = g->ranks;
    for (uint32_t i = 0; i < g->step->out_count; i++) {
        if (!is_returned(g->step, i))
            continue;
        const uint64_t bytes = pass_on(g, g->outs[i], g->step->outs[i]->tensor);
        g->sent[1] += begins ? 0 : bytes;
        for (uint32_t r = 0; begins && r < ranks->mesh.ranks; r++) {
            g->outs[i][r] = ETCH_NEW(ranks->values.arena, exec_array);
            *g->outs[i][r] = exec_mesh_part(&ranks->mesh, &ranks->env, g->step->outs[i]->tensor,
                                            g->step->outs[i]->place, before(g, r, 1));
            exec_array_fill(ranks->values.arena, g->outs[i][r]);
        }
    }
}

static void go_forward(going *g)
{
    for (uint32_t block = 0; block < g->size; block++) {
        run_blocks(g, block);
        if (block + 1 < g->size)
            pass_blocks(g);
    }
}

static void go_back(going *g)
{
    for (uint32_t block = 1; block < g->size; block++) {
        pass_blocks(g);
        pass_results(g, block == 1);
        run_blocks(g, block);
    }
    if (g->size > 1)
        pass_results(g, false);
    for (uint32_t i = 0; i < g->step->in_count; i++)
        g->held[i] = g->parts[i];
    run_blocks(g, 0);
}

/* ---- what is said of it -------------------------------------------------------------------------------- */

/* Bytes that moves are said to send of what goes round. */
static uint64_t bytes_said(const going *g, bool of_results)
{
    const exec_ranks *ranks = g->ranks;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < ranks->region->items.count; i++) {
        const etch_step *move = ranks->region->items.at[i].step;
        if (!move || move->collective != ETCH_PERMUTE)
            continue;
        bool is_of = of_results && move->ins[0]->step == g->step;
        for (uint32_t k = 0; k < g->step->in_count && !of_results; k++) {
            bool again = false; /* keys that are the values, too */
            for (uint32_t n = 0; n < k; n++)
                again = again || g->step->ins[n] == g->step->ins[k];
            is_of = is_of || (g->step->ins[k]->step == move && !again);
        }
        bytes += is_of ? exec_integer(etch_payload(ranks->placed, move)) : 0;
    }
    return bytes;
}

static int64_t at_rank(const going *g, etch_expr expr, uint32_t rank)
{
    const exec_ranks *ranks = g->ranks;
    int64_t part = 0;
    for (uint32_t a = 0; a < ranks->mesh.axes; a++)
        if (ranks->placed->uneven_axes >> a & 1)
            part = part * ranks->mesh.size[a] + exec_mesh_at(&ranks->mesh, rank, a);
    etch_sym *sym = ranks->placed->training->graph->sym;
    return exec_integer(etch_at_work_share(ranks->placed, expr, etch_int(sym, part)));
}

/* Is each run of a rank as much of its work as it is said to be, and nothing what is not run? */
static void check_runs(const going *g, uint32_t rank)
{
    const etch_ring ring = etch_ring_of(g->ranks->placed, g->step);
    const int64_t runs = at_rank(g, ring.runs, rank), own = at_rank(g, ring.own, rank),
                  other = at_rank(g, ring.other, rank), work = own + (runs - 1) * other;
    for (uint32_t block = 0; block < g->size; block++) {
        const int64_t made = g->of_block[rank * g->size + block];
        const int64_t said = block == 0 ? own : block < runs ? other : 0;
        if (made * work != g->flop[rank] * said)
            exec_fail(
                &g->ranks->env,
                "rank %u does %lld FLOP for the block of %u places before, of %lld; %lld of %lld are said",
                rank, (long long)made, block, (long long)g->flop[rank], (long long)said, (long long)work);
    }
}

static void check(const going *g)
{
    const uint64_t out = bytes_said(g, false), back = bytes_said(g, true);
    if (g->sent[0] != out || g->sent[1] != back)
        exec_fail(&g->ranks->env, "a rank sends %llu and %llu bytes round; %llu and %llu are said",
                  (unsigned long long)g->sent[0], (unsigned long long)g->sent[1], (unsigned long long)out,
                  (unsigned long long)back);
    const bool counted = !exec_is_padded(g->ranks->placed, NULL) && !g->step->op->attrs.pairs;
    for (uint32_t r = 0; r < g->ranks->mesh.ranks && counted; r++)
        check_runs(g, r);
}

/* ---- the door ------------------------------------------------------------------------------------------ */

static exec_array ***lists_of(const going *g, uint32_t count)
{
    exec_array ***lists = ETCH_NEW_ARRAY(g->ranks->values.arena, count, exec_array **);
    for (uint32_t i = 0; i < count; i++)
        lists[i] = ETCH_NEW_ARRAY(g->ranks->values.arena, g->ranks->mesh.ranks, exec_array *);
    return lists;
}

static void begin(going *g)
{
    exec_ranks *ranks = g->ranks;
    for (uint32_t i = 0; i < g->step->in_count; i++)
        memcpy(g->held[i], g->parts[i], ranks->mesh.ranks * sizeof **g->held);
    for (uint32_t i = 0; i < g->step->out_count; i++)
        for (uint32_t r = 0; r < ranks->mesh.ranks; r++) {
            exec_array *out = g->outs[i][r] = ETCH_NEW(ranks->values.arena, exec_array);
            *out = exec_mesh_part(&ranks->mesh, &ranks->env, g->step->outs[i]->tensor,
                                  g->step->outs[i]->place, r);
            exec_array_fill(ranks->values.arena, out);
            for (size_t k = 0; k < out->size && i == 1 && g->step->phase != ETCH_BACKWARD; k++)
                out->at[k] = -INFINITY;
        }
}

exec_array ***exec_ranks_go_round(exec_ranks *ranks, const etch_step *step, exec_array ***parts,
                                  int64_t *flop)
{
    going g = {.ranks = ranks,
               .step = step,
               .size = exec_mesh_count(&ranks->mesh, step->ring),
               .parts = parts,
               .flop = flop};
    g.held = lists_of(&g, step->in_count);
    g.outs = lists_of(&g, step->out_count);
    g.of_block = ETCH_NEW_ARRAY(ranks->values.arena, (size_t)ranks->mesh.ranks * g.size, int64_t);
    begin(&g);
    if (step->phase == ETCH_BACKWARD)
        go_back(&g);
    else
        go_forward(&g);
    if (!ranks->env.failure)
        check(&g);
    if (exec_is_padded(ranks->placed, NULL)) { /* runs with nothing but padding are runs */
        const etch_ring ring = etch_ring_of(ranks->placed, step);
        g.rounds = (exec_rounds){(uint32_t)at_rank(&g, ring.runs, 0), (uint32_t)at_rank(&g, ring.sums, 0)};
    }
    if (ranks->traffic)
        exec_traffic_go_round(ranks->traffic, g.rounds);
    return g.outs;
}

uint32_t exec_blocks_out(const exec_ranks *ranks, uint32_t ring)
{
    const uint32_t others = exec_mesh_count(&ranks->mesh, ring) - 1;
    return others < 2 ? others : 2; /* the one at work, and the next */
}

uint32_t exec_blocks_back(const exec_ranks *ranks, uint32_t ring)
{
    return exec_mesh_count(&ranks->mesh, ring) > 1 ? 3 : 1; /* made, received, sent */
}
