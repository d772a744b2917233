/* Minimal models of live ranges, weights and messages that are easily said wrong: what the product says is
 * what the executor measures. And shipped models, combined at random. */
#include "effort.h"
#include "exec_alive.h"
#include "exec_bind.h"
#include "exec_plans.h"
#include "exec_traffic.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of messages and weights what is said to be sent, or to be on a stage, and nobody reads: none is
 * measured. */
typedef enum quantity { SAVED, ACTIVATIONS, WORKSPACE, MESSAGES, WEIGHTS } quantity;

static const char *const quantity_names[] = {"saved", "activations", "workspace", "messages", "weights"};

typedef struct live_case {
    const char *why;
    const char *model; /* the text of a spec without its first line */
    const char *lines; /* of the plan, on a mesh [pp, dp, tp] of two each; without a stage line pp is 1 */
    quantity what;
    uint32_t stage;
    uint64_t measured;
} live_case;

#define HEAD "dtype act = bf16, weights = bf16, grads = f32\n"
#define TRAIN "train { model = m, optimizer = sgd, accumulate = (B, 2)"
/* A weight outside of the layers, which are 2. */
#define TABLE_AND_LAYERS                      \
    HEAD "dim B = 8, H = 64, V = 512\n"       \
         "model m(x[B,H], c[B,V]) -> l[] {\n" \
         "  weight emb[V,H]\n"                \
         "  y[B,H] = c * emb\n"               \
         "  repeat 2 as layer {\n"            \
         "    weight w[H,H']\n"               \
         "    z[B,H'] = y * w\n"              \
         "    y = z[H'->H]\n"                 \
         "  }\n"                              \
         "  l[] = y * x  tag loss\n"          \
         "}\n"

static const live_case cases[] = {
    {"a value that is handed on and that only the first stage reads is not sent",
     HEAD "dim B = 8, H = 4\n"
          "model m(x[B,H]) -> l[] {\n"
          "  y = x\n"
          "  z = x\n"
          "  repeat 2 as layer {\n"
          "    weight w[H]\n"
          "    z = y * w\n"
          "    y = tanh(y)\n"
          "  }\n"
          "  l[] = z * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp\nstage (layer) @ pp", MESSAGES, 0, 0},
    {"a value of which iterations only cut a part that nobody reads is not sent",
     HEAD "dim B = 8, H = 64, D = 4\n"
          "model m(x[B,H]) -> l[] {\n"
          "  weight w[H]\n"
          "  a[B,H] = x * w\n"
          "  y = x\n"
          "  repeat 4 as layer {\n"
          "    v[B,D] = slice(a, over = H, to = D)\n"
          "    y = tanh(y)\n"
          "  }\n"
          "  l1[] = a * x  tag loss\n"
          "  l[] = y * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp\nstage (layer) @ pp", MESSAGES, 0, 0},
    {"a weight of one class of iterations is where these run",
     HEAD "dim B = 8, H = 4\n"
          "model m(x[B,H]) -> l[] {\n"
          "  weight w[H]\n"
          "  y = x\n"
          "  repeat 2 as layer {\n"
          "    if layer >= 1 {\n"
          "      y = y * w\n"
          "    } else {\n"
          "      y = tanh(y)\n"
          "    }\n"
          "  }\n"
          "  l[] = y * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp\nstage (layer) @ pp", WEIGHTS, 0, 0},
    {"what leaves a loop without iterations is what has entered it",
     HEAD "dim B = 8, H = 4\n"
          "model m(x[B,H]) -> l[] {\n"
          "  y = x\n"
          "  repeat 0 as layer {\n"
          "    t[B,H] = tanh(y)\n"
          "    y = t\n"
          "  }\n"
          "  weight w[H]\n"
          "  a[B,H] = y * w\n"
          "  l[] = a * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp", SAVED, 0, 0},
    {"a value that arrives two iterations late is, at the end of few, what has entered the loop",
     HEAD "dim B = 8, H = 4\n"
          "model m(x[B,H]) -> l[] {\n"
          "  y = x\n"
          "  late = x\n"
          "  later = x\n"
          "  repeat 2 as layer {\n"
          "    t[B,H] = tanh(y)\n"
          "    later = late\n"
          "    late = y\n"
          "    y = t\n"
          "  }\n"
          "  weight w[H]\n"
          "  a[B,H] = later * w\n"
          "  l[] = a * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp", SAVED, 0, 0},
    {"of one iteration: backward reads what has entered, which is not the value that the chain begins with",
     HEAD "dim B = 8, H = 4\n"
          "model m(x[B,H]) -> l[] {\n"
          "  weight w[H]\n"
          "  a[B,H] = x * w\n"
          "  y = a\n"
          "  late = a\n"
          "  later = a\n"
          "  repeat 1 as layer {\n"
          "    t[B,H] = tanh(later)\n"
          "    later = late\n"
          "    late = y\n"
          "    y = y + t\n"
          "  }\n"
          "  l[] = later * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp", SAVED, 0, 16},
    {"a loop of two classes: what one hands on and the other does not keep",
     HEAD "dim B = 8, H = 4\n"
          "model m(x[B,H]) -> l[] {\n"
          "  y = x\n"
          "  z = x\n"
          "  repeat 4 as layer {\n"
          "    if layer % 2 == 0 {\n"
          "      weight w[H]\n"
          "      a[B,H] = y * w\n"
          "      z = y\n"
          "      y = tanh(a)\n"
          "    } else {\n"
          "      y = z\n"
          "      z = y\n"
          "    }\n"
          "  }\n"
          "  l[] = y * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp", SAVED, 0, 32},
    {"a shard that is cut of an input is in memory as the input anyway",
     HEAD "dim B = 8, S = 512, H = 4\n"
          "model m(x[B,S]) -> l[] {\n"
          "  weight w[S,H], v[S,H]\n"
          "  a[B,H] = x * w  tag cut\n"
          "  b[B,H] = x * v\n"
          "  l1[] = b * b  tag loss\n"
          "  l[] = a * a  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard S @ dp\npin cut [B @ tp, H]", WORKSPACE, 0, 128},
    {"an input that a loop hands on is memory of nobody",
     HEAD "dim B = 8, H = 4\n"
          "model m(x[B,H]) -> l[] {\n"
          "  y = x\n"
          "  z = x\n"
          "  repeat 2 as layer {\n"
          "    y = z\n"
          "    z = z\n"
          "  }\n"
          "  weight w[H]\n"
          "  a[B,H] = y * w\n"
          "  l[] = a * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp", WORKSPACE, 0, 18},
    {"on the last stage a value between two loops is under way as often as its chunk, not as the last",
     HEAD "dim B = 8, H = 4\n"
          "model m(x[B,H]) -> l[] {\n"
          "  y = x\n"
          "  repeat 2 as small {\n"
          "    weight g[H]\n"
          "    y = y * g\n"
          "  }\n"
          "  weight v[H]\n"
          "  t[B,H] = tanh(y)\n"
          "  q[B,H] = t * v\n"
          "  l1[] = q * x  tag loss\n"
          "  repeat 2 as large {\n"
          "    weight w[H]\n"
          "    y = y * w\n"
          "  }\n"
          "  l[] = y * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp\nstage (small, large) @ pp, schedule = interleaved(virtual = 2)", ACTIVATIONS, 1, 80},
    {"an input that enters the first stage is memory of nobody there",
     HEAD "dim B = 8, H = 64\n"
          "model m(x[B,H]) -> l[] {\n"
          "  y = x\n"
          "  repeat 2 as layer {\n"
          "    r[B] = sum(y, over = H)\n"
          "    y = y + r\n"
          "  }\n"
          "  weight w[H]\n"
          "  a[B,H] = y * w\n"
          "  l[] = a * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp\nstage (layer) @ pp", WORKSPACE, 0, 260},
    {"a loop inside one that is recomputed: what its iterations hand on is not there twice",
     HEAD "dim B = 8, H = 4\n"
          "model m(x[B,H]) -> l[] {\n"
          "  y = x\n"
          "  repeat 2 as layer {\n"
          "    repeat 2 as inner {\n"
          "      weight w[H]\n"
          "      a[B,H] = y * w\n"
          "      y = tanh(a)\n"
          "    }\n"
          "  }\n"
          "  l[] = y * x  tag loss\n"
          "}\n" TRAIN ", recompute = full }\n",
     "shard B @ dp", WORKSPACE, 0, 64},
    {"what another stage has made is here from its message on, not from the begin of the program",
     HEAD "dim B = 8, H = 4, F = 64\n"
          "model m(x[B,H], z[B,F]) -> l[] {\n"
          "  weight w[F]\n"
          "  a[B,F] = tanh(z)\n"
          "  p[B,F] = a * w\n"
          "  l1[] = p * z  tag loss\n"
          "  y = x\n"
          "  repeat 2 as layer {\n"
          "    r[B] = sum(a, over = F)\n"
          "    weight g[H]\n"
          "    u[B,H] = y * g\n"
          "    y = u + r\n"
          "  }\n"
          "  l[] = y * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp\nstage (layer) @ pp", WORKSPACE, 1, 260},
    {"of what only a shard is sent, backward on the stage behind reads the shard that it has",
     HEAD "dim B = 8, H = 4, F = 4\n"
          "model m(x[B,H], c[B,F]) -> l[] {\n"
          "  weight w[H,F]\n"
          "  y[B,H] = tanh(x)  tag front\n"
          "  z[B,F] = y * w    tag rear\n"
          "  l[] = z * c       tag loss\n"
          "}\n" TRAIN " }\n",
     "pin rear [B @ tp, F]\nstage (front, rear) @ pp", SAVED, 1, 16},
    {"where backward reads a shard behind what makes the whole, and here, both read what forward has cut",
     HEAD "dim B = 8, H = 4, F = 4\n"
          "model m(x[B,H], c[B,F]) -> l[] {\n"
          "  weight w[H,F], v[H,F], u[H]\n"
          "  t[B,H] = x * u\n"
          "  y[B,H] = tanh(t)\n"
          "  a[B,F] = y * v   tag front\n"
          "  z[B,F] = y * w   tag rear\n"
          "  s[B,F] = z + a\n"
          "  l[] = s * c      tag loss\n"
          "}\n" TRAIN " }\n",
     "pin front [B @ tp, F]\npin rear [B @ tp, F]\nstage (front, rear) @ pp", SAVED, 0, 48},
    {"a shard that backward reads under another name",
     HEAD "dim B = 8, H = 4, F = 4, G = 4\n"
          "model m(x[B,H], c[B,F]) -> l[] {\n"
          "  weight w[G,F]\n"
          "  y[B,H] = tanh(x)  tag front\n"
          "  n[B,G] = y[H->G]\n"
          "  z[B,F] = n * w    tag rear\n"
          "  l[] = z * c       tag loss\n"
          "}\n" TRAIN " }\n",
     "pin rear [B @ tp, F]\nstage (front, rear) @ pp", SAVED, 1, 16},
    {"a part of what is sent as well is memory of its own where both arrive",
     HEAD "dim B = 8, H = 64, D = 4\n"
          "model m(x[B,H], c[B,D]) -> l[] {\n"
          "  weight u[H,D]  tag frozen\n"
          "  weight w[D]\n"
          "  y[B,H] = tanh(x)\n"
          "  v[B,D] = slice(y, over = H, to = D)  tag front\n"
          "  s[B,D] = tanh(c)\n"
          "  repeat 2 as layer {\n"
          "    b[B,D] = y * u\n"
          "    a[B] = sum(v, over = D)\n"
          "    s = s + b + a\n"
          "  }\n"
          "  t[B,D] = s * w\n"
          "  l[] = t * c  tag loss\n"
          "}\n" TRAIN " }\n",
     "stage (front, layer) @ pp", WORKSPACE, 1, 608},
    {"and of what backward reads the part is kept, not the whole that has come with it",
     HEAD "dim B = 8, H = 64, D = 4\n"
          "model m(x[B,H], c[B,D]) -> l[] {\n"
          "  weight u[H,D]  tag frozen\n"
          "  weight w[D]\n"
          "  y[B,H] = tanh(x)\n"
          "  v[B,D] = slice(y, over = H, to = D)  tag front\n"
          "  s[B,D] = tanh(c)\n"
          "  repeat 2 as layer {\n"
          "    b[B,D] = y * u\n"
          "    a[B,D] = v * w\n"
          "    s = s + b + a\n"
          "  }\n"
          "  t[B,D] = s * w\n"
          "  l[] = t * c  tag loss\n"
          "}\n" TRAIN " }\n",
     "stage (front, layer) @ pp", WORKSPACE, 1, 576},
    {"a part is kept as what a message brings of it, where another stage has made the whole",
     HEAD "dim B = 8, H = 64, D = 4\n"
          "model m(x[B,H], c[B,D]) -> l[] {\n"
          "  weight w[D]\n"
          "  y[B,H] = tanh(x)\n"
          "  v[B,D] = slice(y, over = H, to = D)  tag front\n"
          "  a[B,D] = v * w  tag rear\n"
          "  l[] = a * c  tag loss\n"
          "}\n" TRAIN " }\n",
     "stage (front, rear) @ pp", SAVED, 1, 32},
    {"and where an iteration hands a part on to one of the next stage, which has made the whole of its own",
     HEAD "dim B = 8, H = 64, D = 4\n"
          "model m(x[B,D], c[B,D]) -> l[] {\n"
          "  y = x\n"
          "  repeat 2 as layer {\n"
          "    weight w[D,H]\n"
          "    a[B,H] = y * w\n"
          "    t[B,H] = tanh(a)\n"
          "    y = slice(t, over = H, to = D)\n"
          "  }\n"
          "  l[] = y * c  tag loss\n"
          "}\n" TRAIN " }\n",
     "stage (layer) @ pp", SAVED, 1, 544},
    {"and where the part leaves the loop on another stage",
     HEAD "dim B = 8, H = 64, D = 4\n"
          "model m(x[B,D], c[B,D]) -> l[] {\n"
          "  weight v[D]\n"
          "  y = x\n"
          "  repeat 1 as layer {\n"
          "    weight w[D,H]\n"
          "    a[B,H] = y * w\n"
          "    t[B,H] = tanh(a)\n"
          "    y = slice(t, over = H, to = D)\n"
          "  }\n"
          "  b[B,D] = y * v  tag rear\n"
          "  l[] = b * c  tag loss\n"
          "}\n" TRAIN " }\n",
     "stage (layer, rear) @ pp", SAVED, 1, 32},
    {"the part of a weight that backward gathers from is there once for all microbatches of a stage",
     HEAD "dim B = 8, H = 64\n"
          "model m(x[B,H]) -> l[] {\n"
          "  y = x\n"
          "  repeat 2 as layer {\n"
          "    weight w[H]\n"
          "    y = y * w\n"
          "  }\n"
          "  l[] = y * x  tag loss\n"
          "}\n"
          "train { model = m, optimizer = sgd, accumulate = (B, 4) }\n",
     "shard B @ dp\nzero 3 @ (dp, tp), again = tp, prefetch = 0\n"
     "stage (layer) @ pp, schedule = gpipe",
     WORKSPACE, 0, 704},
    {"and of an inner loop as often as copies are gathered",
     HEAD "dim B = 8, H = 64\n"
          "model m(x[B,H]) -> l[] {\n"
          "  y = x\n"
          "  repeat 2 as layer {\n"
          "    repeat 2 as inner {\n"
          "      weight w[H]\n"
          "      y = y * w\n"
          "    }\n"
          "  }\n"
          "  l[] = y * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp\nzero 3 @ (dp, tp), again = tp, prefetch = 0", WORKSPACE, 0, 1408},
    {"copies that last for a microbatch, of weights that backward does not read, last for an iteration",
     HEAD "dim B = 8, H = 64\n"
          "model m(x[B,H]) -> l[] {\n"
          "  weight v[H]\n"
          "  y = x\n"
          "  repeat 9 as layer {\n"
          "    weight w[H]\n"
          "    t[B,H] = y * w\n"
          "    y = y + x\n"
          "  }\n"
          "  a[B,H] = y * v\n"
          "  l[] = a * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp\nzero 3 @ (dp, tp), keep = microbatch, prefetch = 0", WORKSPACE, 0, 640},
    {"a slice of a copy that forward has gathered is memory of its own in backward as well",
     HEAD "dim B = 256, S = 64, F = 64\n"
          "model m(x[B,S], c[B,F]) -> l[] {\n"
          "  weight v[S]\n"
          "  weight w[S,F]  tag frozen\n"
          "  t[B,S] = x * v  tag cut\n"
          "  y[B,F] = t * w\n"
          "  l1[] = y * c  tag loss\n"
          "  r[B,S] = tanh(t)\n"
          "  l[] = r * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp\npin cut [B @ dp, S @ tp]\nzero 3 @ dp, keep = microbatch, root = true, prefetch = 0",
     WORKSPACE, 0, 28800},
    {"beside a head its copy and those of the first layers of backward are there, and of no other layers",
     HEAD "dim B = 8, H = 64, V = 512\n"
          "model m(x[B,H], c[B,V]) -> l[] {\n"
          "  weight head[H,V]\n"
          "  y = x\n"
          "  repeat 9 as layer {\n"
          "    weight w[H,H']\n"
          "    z[B,H'] = y * w\n"
          "    y = z[H'->H]\n"
          "  }\n"
          "  p[B,V] = y * head\n"
          "  l[] = p * c  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp\nzero 3 @ (dp,tp), prefetch = 2", WORKSPACE, 0, 215296},
    {"when backward ends the next microbatch gathers its first weight ahead", TABLE_AND_LAYERS TRAIN " }\n",
     "shard B @ dp\nzero 3 @ (dp,tp), prefetch = 1", WORKSPACE, 0, 262400},
    {"the last microbatch is followed by none",
     TABLE_AND_LAYERS "train { model = m, optimizer = sgd, accumulate = (B, 1) }\n",
     "shard B @ dp\nzero 3 @ (dp,tp), prefetch = 1", WORKSPACE, 0, 197120},
    {"several iterations on a stage that gather one weight leave one part of it for backward",
     HEAD "dim B = 8, H = 64\n"
          "model m(x[B,H]) -> l[] {\n"
          "  weight w[H]\n"
          "  y = x\n"
          "  repeat 4 as layer {\n"
          "    y = y * w\n"
          "  }\n"
          "  l[] = y * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp\nzero 3 @ (dp,tp), again = tp, prefetch = 0\nstage (layer) @ pp", WORKSPACE, 0, 960},
    {"and without stages, the part of the last one",
     HEAD "dim B = 8, H = 64\n"
          "model m(x[B,H]) -> l[] {\n"
          "  weight w[H]\n"
          "  y = x\n"
          "  repeat 4 as layer {\n"
          "    y = y * w\n"
          "  }\n"
          "  l[] = y * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard B @ dp\nzero 3 @ (dp,tp), again = tp, prefetch = 0", WORKSPACE, 0, 960},
    {"what iterations of a loop that is run again enter one another with, of which its gradient has a view",
     HEAD "dim B = 8, H = 8, Z = 2, Y = 4\n"
          "model m(x[B,H]) -> l[] {\n"
          "  weight w[H], u[H]\n"
          "  y[B,H] = x * w\n"
          "  z = y\n"
          "  repeat 1 as layer {\n"
          "    repeat 6 as inner {\n"
          "      v[B,Z,Y] = y[H->(Z,Y)]\n"
          "      s[B] = sum(v, over = (Z,Y))\n"
          "      t[B,H] = cast(z, dtype = bf16)\n"
          "      y = t\n"
          "    }\n"
          "  }\n"
          "  a[B,H] = y * u\n"
          "  l[] = a * x  tag loss\n"
          "}\n" TRAIN ", recompute = (layer, inner) }\n",
     "shard B @ dp", WORKSPACE, 0, 260},
    {"what comes for another reader is not there as what a loop of the next stage carries for nobody",
     HEAD "dim B = 8, H = 4, D = 4, F = 8\n"
          "model m(x[B,H]) -> l[] {\n"
          "  k[B,H,D] = x\n"
          "  r[B,D] = sum(k, over = H)\n"
          "  y = k\n"
          "  repeat 1 as front {\n"
          "    y = k\n"
          "  }\n"
          "  repeat 1 as rear {\n"
          "    weight w[D,F]\n"
          "    p[B,F] = r * w\n"
          "    y = y\n"
          "  }\n"
          "  l[] = x * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "stage (front, rear) @ pp", WORKSPACE, 1, 160},
    {"nor under a second name that leaves the loop before",
     HEAD "dim B = 8, H = 4\n"
          "model m(x[B,H]) -> l[] {\n"
          "  z[B] = -1/2\n"
          "  y[B,H] = z\n"
          "  late = y\n"
          "  repeat 2 as front {\n"
          "    late = y\n"
          "  }\n"
          "  repeat 2 as rear {\n"
          "    u[B,H] = tanh(late)\n"
          "    y = y\n"
          "    late = u\n"
          "  }\n"
          "  l[] = late * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "stage (front, rear) @ pp", WORKSPACE, 1, 64},
    {"copies for all microbatches are on a stage of both chains, also where the second has the weight",
     HEAD "dim B = 8, H = 4, F = 8\n"
          "model m(x[B,H]) -> l[] {\n"
          "  weight w[H,F]\n"
          "  p[B,F] = x * w  tag front\n"
          "  r[B] = sum(x, over = H)  tag rear\n"
          "  l[] = r * r  tag loss\n"
          "}\n"
          "train { model = m, optimizer = sgd, accumulate = (B, 4) }\n",
     "zero 3 @ dp, keep = step\nstage (front, rear) @ pp, schedule = dualpipe", WORKSPACE, 1, 96},
    {"of recomputed layers of a chain only what is needed is run, each where its layer is",
     HEAD "dim B = 8, H = 4\n"
          "module body(x[B,H]) -> y[B,H] {\n"
          "  y = x\n"
          "  repeat 2 as layer {\n"
          "    weight w[H], v[H]\n"
          "    a[B,H] = x * w\n"
          "    b[B,H] = tanh(a)\n"
          "    t[B,H] = b * v\n"
          "    y = y + t\n"
          "  }\n"
          "}\n"
          "model m(x[B,H], c[B,H]) -> l[] {\n"
          "  z[B,H] = body(x)\n"
          "  l[] = z * c  tag loss\n"
          "}\n" TRAIN ", recompute = needed(body) }\n",
     "shard B @ dp\nstage (layer) @ pp", SAVED, 1, 0},
    {"a part that a message brings to a later chunk is in the whole that an earlier one keeps",
     HEAD "dim B = 8, S = 8, F = 8, D = 4, V = 8, E = 4\n"
          "model m(x[B,S,F], labels[B,S]: i32) -> l[]: f32 {\n"
          "  weight w[S,F], head[F,V]\n"
          "  a[B,S,F] = w\n"
          "  y = x\n"
          "  z = a\n"
          "  repeat 1 as front {\n"
          "    weight u[F,E]\n"
          "    r[B,S,E] = z * u\n"
          "    z = y\n"
          "  }\n"
          "  part[B,S,D] = slice(a, over = F, to = D)\n"
          "  b = a\n"
          "  repeat 3 as rear {\n"
          "    c[B,S,F] = z\n"
          "    d[B,S,F] = c\n"
          "    b = d\n"
          "    weight v[D,E]\n"
          "    q[B,S,E] = part * v\n"
          "  }\n"
          "  logits[B,S,V] = b * head\n"
          "  l[]: f32 = cross_entropy(logits, labels, over = V)  tag loss\n"
          "}\n"
          "train { model = m, optimizer = sgd, recompute = (front, rear) }\n",
     "stage (front, rear) @ pp, schedule = zb_v", SAVED, 0, 2304},
    {"a sum that iterations carry from outside is made, though a sum reads it as a term",
     HEAD "dim B = 8, F = 8, H = 4, V = 8\n"
          "model m(x[V,B,F], c[B,F,H]) -> l[] {\n"
          "  weight u[F], w[V,H]\n"
          "  p[B,F,H] = x * w\n"
          "  b[B,F,H] = p + u\n"
          "  s[B,F,H] = p + c - b\n"
          "  repeat 1 as outer {\n"
          "    t = s\n"
          "    repeat 1 as inner {\n"
          "      t = b\n"
          "    }\n"
          "    r[B,H] = max(t, over = F)\n"
          "  }\n"
          "  l[] = s * c  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard V @ tp", WORKSPACE, 0, 768},
    {"each unit gathers a weight that it reads, one for nobody, too",
     HEAD "dim B = 8, S = 8, H = 4\n"
          "model m(x[B,S,H]) -> l[] {\n"
          "  u[B,S,H] = sigmoid(x)\n"
          "  weight w[S], v[S]\n"
          "  n[B,S,H] = layer_norm(x, v, w, over = S)\n"
          "  d[B,S,H] = rms_norm(u, w, over = S)\n"
          "  p[B,S,H] = u * u  tag front\n"
          "  y[B,S,H] = n * n  tag rear\n"
          "  l[] = y * x  tag loss\n"
          "}\n" TRAIN " }\n",
     "shard S @ dp\nstage (front, rear) @ pp", WEIGHTS, 1, 0},
};

static etch_placed *placed_of(etch_arena *arena, const char *why, const char *model, const char *lines)
{
    const char *text = etch_text(arena, "etch 1\n%sparallel p {\n  mesh [pp = %u, dp = 2, tp = 2]\n%s\n}\n",
                                 model, strstr(lines, "stage") ? 2 : 1, lines);
    const char *path = etch_text(arena, "%s/models/case.etch", getenv("ETCH_SOURCE_DIR"));
    const exec_bound bound = exec_bind(arena, path, text, NULL, "p", NULL);
    etch_placed *placed =
        bound.training ? etch_place(bound.training, bound.plan, ETCH_GRANULARITY_KERNEL) : NULL;
    ck_assert_msg(placed, "%s: %s", why, exec_messages(arena, bound.diags));
    return placed;
}

static uint64_t amount(const exec_slots *s, const exec_alive *alive, quantity which)
{
    switch (which) {
    case SAVED:
        return alive->saved;
    case ACTIVATIONS:
        return alive->activations;
    case WORKSPACE:
        return alive->workspace;
    case MESSAGES:
        return s->surplus;
    default:
        return s->unread;
    }
}

/* A copy that the backward pass of `front` reads first, and whose forward reader is in `rear`. */
static void copies_are_made_early(etch_arena *arena)
{
    const etch_placed *placed =
        placed_of(arena, "a copy is made where backward reads it first",
                  HEAD "dim B = 8, S = 8, H = 4, V = 8, D = 4\n"
                       "model m(x[B,S,H], ids[B,S]: i32, labels[B,S]: i32) -> l[]: f32 {\n"
                       "  weight emb[V,H], w[S,D], head[H,V]\n"
                       "  y[B,S,H] = tanh(x)  tag front\n"
                       "  e[B,S,H] = gather(emb, ids, over = V)\n"
                       "  p[B,H,D] = e * w  tag rear\n"
                       "  logits[B,S,V] = e * head\n"
                       "  l[]: f32 = cross_entropy(logits, labels, over = V)  tag loss\n"
                       "}\n" TRAIN " }\n",
                  "shard V @ dp\npin rear [H @ tp]\nstage (front, rear) @ pp");
    const char *failure = exec_check_slots(placed, 1);
    ck_assert_msg(!failure, "%s", failure);
}

START_TEST(backward_reads_copies_of_earlier_stages)
{
    etch_with_arena(copies_are_made_early);
}
END_TEST

static void check_case(etch_arena *arena, const live_case *d)
{
    exec_slots *s = exec_slots_new(arena, placed_of(arena, d->why, d->model, d->lines), 1);
    exec_slots_run(s);
    ck_assert_msg(!s->failure, "%s: %s", d->why, s->failure);
    const exec_alive measured = exec_alive_measured(s, d->stage), said = exec_alive_said(s, d->stage);
    const uint64_t is = d->what < MESSAGES ? amount(s, &measured, d->what) : d->measured;
    const uint64_t told = amount(s, &said, d->what);
    exec_slots_release(s);
    ck_assert_msg(is == d->measured && told == is, "%s: %s: %llu measured, %llu said", d->why,
                  quantity_names[d->what], (unsigned long long)is, (unsigned long long)told);
}

static void check_cases(etch_arena *arena)
{
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        check_case(own, &cases[i]);
        etch_arena_free(own);
    }
}

START_TEST(odd_live_ranges_are_said_right)
{
    etch_with_arena(check_cases);
}
END_TEST

/* ---- models as they are shipped ------------------------------------------------------------------------ */

enum { COMBINATIONS = 150, PADDED = 50 };

typedef exec_combination (*combiner)(etch_arena *arena, uint64_t seed);

/* False: the plan is refused. */
static bool check_combination(etch_arena *arena, combiner combine, uint64_t seed)
{
    const exec_combination c = combine(arena, seed);
    const char *path = etch_text(arena, "%s/models/combination.etch", getenv("ETCH_SOURCE_DIR"));
    const exec_bound bound = exec_bind(arena, path, c.text, "combination", NULL, NULL);
    const etch_placed *placed =
        bound.training ? etch_place(bound.training, bound.plan, ETCH_GRANULARITY_KERNEL) : NULL;
    if (!placed)
        return false;
    exec_slots *s = exec_slots_new(arena, placed, seed);
    exec_slots_run(s);
    const char *failure = s->failure ? s->failure : exec_check_alive(s, NULL);
    exec_slots_release(s);
    if (!failure)
        failure = exec_check_traffic(placed, seed);
    ck_assert_msg(!failure, "combination %llu: %s\n%s", (unsigned long long)seed, failure, c.text);
    return true;
}

/* Of `number`, more than `least` are placed. */
static void each_combination(etch_arena *arena, combiner combine, uint32_t number, uint32_t least)
{
    const uint64_t count = etch_effort(number);
    uint64_t placed = 0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        placed += check_combination(own, combine, seed);
        etch_arena_free(own);
    }
    printf("%llu of %llu combinations\n", (unsigned long long)placed, (unsigned long long)count);
    ck_assert_msg(placed * number > least * count, "%llu of %llu are placed", (unsigned long long)placed,
                  (unsigned long long)count);
}

static void combinations(etch_arena *arena)
{
    each_combination(arena, exec_combine, COMBINATIONS, 4 * COMBINATIONS / 5);
    each_combination(arena, exec_combine_padded, PADDED, PADDED / 3);
}

START_TEST(shipped_models_are_said_right)
{
    etch_with_memory((size_t)4 << 30, combinations);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("known");
    ETCH_ADD_TESTS(suite, backward_reads_copies_of_earlier_stages, odd_live_ranges_are_said_right,
                   shipped_models_are_said_right);
    return suite;
}
