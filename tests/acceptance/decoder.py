"""What a step of the shipped decoders computes and communicates, derived by hand from the plans: a reader can
check each line on paper. `v` has a size for each name that is asked for.

Tensor parallelism divides heads, MLP and vocabulary. The first product of a block needs the whole residual,
the last one leaves partial sums. With sequence parallelism the residual is held in shards of the sequence, so
that partial sums become shards (reduce-scatter) and shards are gathered before a product; without it the sums
are all-reduced."""

import collections

BF16, F32 = 2, 4


def add(tally, phase, op, axis, amount):
    tally[phase, op, axis] += amount


def residual_bytes(v):
    """The residual of one microbatch on the ranks of one dp coordinate."""
    return BF16 * v.batch / v.micro / v.dp * v.seq * v.hidden


def exchange(tally, plan, v, recompute):
    """Collectives over tp of all microbatches."""
    whole = residual_bytes(v)
    shard = whole / v.tp
    # maximum, sum of exponentials, logit of the label
    statistics = 3 * F32 * v.batch / v.micro / v.dp * v.seq
    add(tally, "forward", "all_reduce", "tp", v.micro * statistics)
    if plan == "megatron":
        # embedding, 2 per layer
        add(tally, "forward", "all_reduce", "tp", v.micro * (1 + 2 * v.layers) * whole)
        add(tally, "backward", "all_reduce", "tp", v.micro * (1 + 2 * v.layers) * whole)  # head, 2 per layer
        if recompute:
            add(tally, "recompute", "all_reduce", "tp", v.micro * 2 * v.layers * whole)
        return
    # embedding, 2 per layer
    add(tally, "forward", "reduce_scatter", "tp", v.micro * (1 + 2 * v.layers) * whole)
    add(tally, "forward", "all_gather", "tp", v.micro * (1 + 2 * v.layers) * shard)       # head, 2 per layer
    if recompute:
        add(tally, "recompute", "reduce_scatter", "tp", v.micro * 2 * v.layers * whole)
        add(tally, "recompute", "all_gather", "tp", v.micro * 2 * v.layers * shard)
    # Backward gathers, per layer, the cotangents of attention and MLP and, for the weight gradients, their
    # inputs again; and once the input of the head and the cotangent of the embedding.
    add(tally, "backward", "all_gather", "tp", v.micro * (2 + 4 * v.layers) * shard)
    add(tally, "backward", "reduce_scatter", "tp", v.micro * (1 + 2 * v.layers) * whole)


def reduce_gradients(tally, plan, v, divided, replicated):
    """All-reduces of gradients: of weights that tp divides, and of those that it does not."""
    if plan == "ddp":
        add(tally, "sync", "all_reduce", "dp", F32 * (divided + replicated))
        return
    add(tally, "sync", "all_reduce", "dp", F32 * divided / v.tp)
    # With the sequence in shards every rank sees its own tokens only.
    axis = "(dp,tp)" if plan == "megatron_sp" else "dp"
    add(tally, "sync", "all_reduce", axis, F32 * replicated)


def llama_weights(v):
    query, key = v.heads * v.head_dim, v.kv_heads * v.head_dim
    attention = 2 * v.hidden * query + 2 * v.hidden * key
    products = 2 * v.vocab * v.hidden + v.layers * (attention + 3 * v.hidden * v.ffn)
    gains = (2 * v.layers + 1) * v.hidden
    return products, gains


def llama_collectives(plan, v):
    """(phase, collective, axes) -> bytes of one rank in a step."""
    tally = collections.defaultdict(int)
    products, gains = llama_weights(v)
    if plan != "ddp":
        exchange(tally, plan, v, recompute=False)
    reduce_gradients(tally, plan, v, products, gains)
    return dict(tally)


def llama_matmul(v):
    """FLOP of all products of a step: forward, and two gradients of the same size each; attention that keeps
    no scores computes them again in backward: five products instead of two. A query sees itself and what is
    before."""
    tokens, pairs = v.batch * v.seq, v.batch * v.seq * (v.seq + 1) / 2
    query, key = v.heads * v.head_dim, v.kv_heads * v.head_dim
    layer = 2 * tokens * (2 * v.hidden * query + 2 * v.hidden * key + 3 * v.hidden * v.ffn)
    head = 2 * tokens * v.hidden * v.vocab
    return 3 * (v.layers * layer + head) + v.layers * (4 + 10) * pairs * query


def llama_forward(v):
    """FLOP of forward with everything that is no product: a norm 4 per element, rope 3, silu 5, an addition
    or a product 1, the loss 5 per logit."""
    tokens, pairs = v.batch * v.seq, v.batch * v.seq * (v.seq + 1) / 2
    query, key = v.heads * v.head_dim, v.kv_heads * v.head_dim
    layer = 2 * tokens * (2 * v.hidden * query + 2 * v.hidden * key + 3 * v.hidden *
                          v.ffn) + 4 * pairs * query
    layer += tokens * ((4 + 4 + 1 + 1) * v.hidden + 3 * (query + key) + (5 + 1) * v.ffn)
    return v.layers * layer + tokens * (4 * v.hidden + 2 * v.hidden * v.vocab + 5 * v.vocab)


def gpt_weights(v):
    """Weights that tp divides, and those that it does not."""
    layer = 4 * v.hidden ** 2 + 3 * v.hidden + 8 * v.hidden ** 2 + 4 * v.hidden
    divided = v.vocab * v.hidden + v.layers * layer
    replicated = v.layers * (2 + 2 + 1 + 1) * v.hidden + 2 * v.hidden  # gains and biases of norms; bo, b2
    return divided, replicated + v.positions * v.hidden


def gpt_collectives(plan, v):
    tally = collections.defaultdict(int)
    divided, replicated = gpt_weights(v)
    reduce_gradients(tally, plan, v, divided, replicated)
    if plan != "ddp":
        exchange(tally, plan, v, recompute=True)
    return dict(tally)


def gpt_matmul(v):
    """Narayanan et al. 2021 (arXiv 2104.04473), equation 3, with full recomputation of the layers."""
    s, h = v.seq, v.hidden
    return 96 * v.batch * s * v.layers * h ** 2 * (1 + s / (6 * h) + v.vocab / (16 * v.layers * h))


def wire(op, size, ranks):
    """Bytes that one rank of a ring sends for a payload of `size`: the buffer of an all-reduce, the shard of
    an all-gather, the whole input of a reduce-scatter."""
    if op == "all_reduce":
        return 2 * size * (ranks - 1) / ranks
    return size * (ranks - 1) if op == "all_gather" else size * (ranks - 1) / ranks
