/* Ranks on the levels of a cluster, by rank order: the innermost level holds ranks that follow each other. */
#include "simulate/simulate_int.h"

/* Ranks of one unit of each level. */
static bool find_units(etch_sim *sim)
{
    const uint32_t count = sim->cluster->levels.count, ranks = sim->job->rank_count;
    uint32_t *units = ETCH_NEW_ARRAY(sim->arena, count, uint32_t);
    uint64_t size = 1;
    for (uint32_t l = 0; l < count; l++) {
        const etch_level *level = &sim->cluster->levels.at[l];
        const uint64_t inside = size;
        for (uint32_t i = 0; i < level->side_count && size < UINT32_MAX; i++)
            size = level->sides[i] == 0 ? UINT32_MAX : size * level->sides[i];
        size = level->use ? inside * level->use : size;
        if (level->side_count == 0 || size > UINT32_MAX)
            size = UINT32_MAX;
        units[l] = (uint32_t)size;
    }
    sim->units = units;
    if (ranks == 1 || (count > 0 && units[count - 1] >= ranks))
        return true;
    etch_diag *diag = etch_error(sim->diags, ETCH_E_MACHINE_UNFIT, (etch_span){0, 0},
                                 "the plan has %u ranks, and the levels of cluster '%s' hold %u", ranks,
                                 sim->cluster->name, count ? units[count - 1] : 1);
    etch_help(diag, "make a level larger, or add one outside: `level network { kind = switch, bandwidth = "
                    "50 GB/s }` holds as many as there are");
    return false;
}

uint32_t etch_sim_path(const etch_sim *sim, uint32_t a, uint32_t b)
{
    uint32_t level = 0;
    while (level + 1 < sim->cluster->levels.count && a / sim->units[level] != b / sim->units[level])
        level++;
    return level;
}

/* By level: of the group's units one level further inside, how many one unit of the level has, at most.
 * Sets the level at which units do not all have as many, UINT32_MAX: there is none; and the fewest there. */
static void spread_group(const etch_sim *sim, const uint32_t *ranks, uint32_t size, uint32_t *spread,
                         uint32_t *uneven, uint32_t *fewest)
{
    *uneven = UINT32_MAX;
    for (uint32_t l = 0; l < sim->cluster->levels.count; l++) {
        uint32_t here = 0, least = UINT32_MAX, inside = UINT32_MAX;
        spread[l] = 0;
        for (uint32_t i = 0; i < size; i++) {
            const uint32_t unit = ranks[i] / sim->units[l];
            const uint32_t part = l == 0 ? ranks[i] : ranks[i] / sim->units[l - 1];
            const bool ends = i + 1 == size || ranks[i + 1] / sim->units[l] != unit;
            here += part != inside;
            inside = part;
            if (!ends)
                continue;
            spread[l] = here > spread[l] ? here : spread[l];
            least = here < least ? here : least;
            here = 0;
        }
        if (least < spread[l] && *uneven == UINT32_MAX) {
            *uneven = l;
            *fewest = least;
        }
    }
}

static void place_family(etch_sim *sim, uint32_t index, uint32_t *spread, etch_simulated *result)
{
    const etch_group_family *family = &sim->job->families[index];
    const uint32_t ranks = sim->job->rank_count;
    uint32_t *members = ETCH_NEW_ARRAY(sim->arena, (size_t)family->count * family->size, uint32_t);
    uint32_t *group_of = ETCH_NEW_ARRAY(sim->arena, ranks, uint32_t);
    sim->members[index] = members;
    sim->group_of[index] = group_of;
    sim->spread_of[index] = ETCH_NEW_ARRAY(sim->arena, family->count, uint32_t);
    for (uint32_t i = 0; i < ranks; i++)
        group_of[i] = UINT32_MAX;
    for (uint32_t g = 0; g < family->count; g++) {
        uint32_t *group = members + (size_t)g * family->size, uneven, fewest = 0;
        for (uint32_t k = 0; k < family->size; k++) {
            group[k] = etch_group_rank(sim->job, family, g, k);
            group_of[group[k]] = g;
        }
        spread_group(sim, group, family->size, spread, &uneven, &fewest);
        sim->spread_of[index][g] = etch_sim_number(&sim->spreads, spread, sim->cluster->levels.count);
        if (uneven != UINT32_MAX && !result->uneven.axes)
            result->uneven =
                (etch_uneven){family->label, sim->cluster->levels.at[uneven].name, spread[uneven], fewest};
    }
}

bool etch_sim_place(etch_sim *sim, etch_simulated *result)
{
    const uint32_t families = sim->job->family_count;
    if (!find_units(sim))
        return false;
    sim->members = ETCH_NEW_ARRAY(sim->arena, families, uint32_t *);
    sim->group_of = ETCH_NEW_ARRAY(sim->arena, families, uint32_t *);
    sim->spread_of = ETCH_NEW_ARRAY(sim->arena, families, uint32_t *);
    uint32_t *spread = ETCH_NEW_ARRAY(sim->arena, sim->cluster->levels.count, uint32_t);
    for (uint32_t f = 0; f < families; f++)
        place_family(sim, f, spread, result);
    return true;
}
