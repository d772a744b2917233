#include "mutations.h"

static bool no_optimizer(etch_row *row)
{
    bool applies = row->updates;
    row->updates = false;
    return applies;
}

static bool more_states(etch_row *row)
{
    row->states++;
    return row->updates;
}

static bool no_momentum(etch_row *row)
{
    bool applies = row->with_momentum != NULL;
    row->with_momentum = NULL;
    return applies;
}

static bool no_8_bits(etch_row *row)
{
    bool applies = row->with_8_bits != NULL;
    row->with_8_bits = NULL;
    return applies;
}

static bool smaller_block(etch_row *row)
{
    bool applies = row->state_block > 0;
    row->state_block = 16;
    return applies;
}

static bool no_part_before(etch_row *row)
{
    bool applies = row->before[0] != NULL;
    row->before[0] = NULL;
    return applies;
}

static bool of_no_matrices(etch_row *row)
{
    bool applies = row->of_matrices;
    row->of_matrices = false;
    return applies;
}

static bool of_other_weights(etch_row *row)
{
    bool applies = row->matrices_alone;
    row->matrices_alone = false;
    return applies;
}

static bool no_second_part_before(etch_row *row)
{
    bool applies = row->before[1] != NULL;
    row->before[1] = NULL;
    return applies;
}

static bool other_share(etch_row *row)
{
    bool applies = row->share != ETCH_SHARE_NOTHING;
    row->share = row->share == ETCH_SHARE_SUMS ? ETCH_SHARE_MATRIX : ETCH_SHARE_SUMS;
    return applies;
}

/* Reads or writes another thing as well, or one less. */
static bool turn_use(const etch_row *row, unsigned *uses, etch_update_use use)
{
    *uses ^= use;
    return row->work != NULL;
}

static bool other_read_factor(etch_row *row)
{
    return turn_use(row, &row->update_reads, ETCH_UPDATE_FACTOR);
}

static bool other_written_factor(etch_row *row)
{
    return turn_use(row, &row->update_writes, ETCH_UPDATE_FACTOR);
}

static bool other_read_gradient(etch_row *row)
{
    return turn_use(row, &row->update_reads, ETCH_UPDATE_GRADIENT);
}

static bool other_read_change(etch_row *row)
{
    return turn_use(row, &row->update_reads, ETCH_UPDATE_CHANGE);
}

static bool other_read_weight(etch_row *row)
{
    return turn_use(row, &row->update_reads, ETCH_UPDATE_WEIGHT);
}

static bool other_read_states(etch_row *row)
{
    return turn_use(row, &row->update_reads, ETCH_UPDATE_STATES);
}

static bool other_written_change(etch_row *row)
{
    return turn_use(row, &row->update_writes, ETCH_UPDATE_CHANGE);
}

static bool other_written_weight(etch_row *row)
{
    return turn_use(row, &row->update_writes, ETCH_UPDATE_WEIGHT);
}

static bool other_written_states(etch_row *row)
{
    return turn_use(row, &row->update_writes, ETCH_UPDATE_STATES);
}

static bool no_share(etch_row *row)
{
    bool applies = row->share != ETCH_SHARE_NOTHING;
    row->share = ETCH_SHARE_NOTHING;
    return applies;
}

static bool more_sums(etch_row *row)
{
    bool applies = row->sums > 0;
    row->sums++;
    return applies;
}

const mutation update_mutations[] = {
    {"updates", BY_PROFILE, no_optimizer},
    {"states", BY_PROFILE, more_states},
    {"with_momentum", BY_PROFILE, no_momentum},
    {"with_8_bits", BY_PROFILE, no_8_bits},
    {"state_block", BY_PROFILE, smaller_block},
    {"before", BY_PROFILE, no_part_before},
    {"of_matrices", BY_PROFILE, of_no_matrices},
    {"update_reads: gradient", BY_PROFILE, other_read_gradient},
    {"update_reads: change", BY_PROFILE, other_read_change},
    {"update_reads: weight", BY_PROFILE, other_read_weight},
    {"update_reads: states", BY_PROFILE, other_read_states},
    {"update_writes: change", BY_PROFILE, other_written_change},
    {"update_writes: weight", BY_PROFILE, other_written_weight},
    {"update_writes: states", BY_PROFILE, other_written_states},
    {"update_reads: factor", BY_PROFILE, other_read_factor},
    {"update_writes: factor", BY_PROFILE, other_written_factor},
    {"before: second", BY_PROFILE, no_second_part_before},
    {"matrices_alone", BY_PROFILE, of_other_weights},
    {"share: other", BY_PROFILE, other_share},
    {"share", BY_PROFILE, no_share},
    {"sums", BY_PROFILE, more_sums},
    {NULL, BY_PROFILE, NULL},
};
