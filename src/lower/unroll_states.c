/* States of the optimizer that are in the memory of the host: what is loaded for the update of a weight
 * group, and stored after it.
 *
 * Groups are updated one after the other. The states of a group are loaded with the update of the one that is
 * `ahead` before it, and after the states before them; those that no update is before, with the end of the
 * step. There is room for those that are loaded ahead, the one that is updated, and the one before, which is
 * stored: a load waits for the store that leaves it room. */
#include "lower/unroll_int.h"

static void list_load(etch_unroller *u, const etch_weight_task *task, uint64_t weight_group)
{
    ETCH_PUSH(u->arena, &u->transfers.loads, (etch_due){task, weight_group});
}

static void list_store(etch_unroller *u, const etch_weight_task *task, uint64_t weight_group)
{
    ETCH_PUSH(u->arena, &u->transfers.stores, (etch_due){task, weight_group});
}

static void issue_load(etch_unroller *u)
{
    etch_transfers *t = &u->transfers;
    const uint64_t at = t->loaded, ahead = u->outline->loads_ahead;
    const etch_due due = t->loads.at[at];
    const uint32_t first_dep = u->dep_count;
    if (at > 0)
        etch_unroll_wait(u, t->load_ids[at - 1]);
    if (at > ahead)
        etch_unroll_wait(u, t->update_ids[at - ahead - 1]);
    if (at > ahead + 1)
        etch_unroll_wait(u, t->store_ids[at - ahead - 2]);
    t->load_ids[t->loaded++] = etch_unroll_issue_of_group(u, due.task, due.weight_group, first_dep);
}

/* Those of the next update, and of so many after that. */
static void issue_loads(etch_unroller *u)
{
    const etch_transfers *t = &u->transfers;
    while (t->loaded < t->loads.count && t->loaded <= t->updated + u->outline->loads_ahead)
        issue_load(u);
}

static void issue_store(etch_unroller *u, uint32_t at)
{
    etch_transfers *t = &u->transfers;
    const etch_due due = t->stores.at[at];
    const uint32_t first_dep = u->dep_count;
    etch_unroll_wait(u, t->update_ids[at]);
    if (at > 0)
        etch_unroll_wait(u, t->store_ids[at - 1]);
    t->store_ids[at] = etch_unroll_issue_of_group(u, due.task, due.weight_group, first_dep);
}

/* Does the next load serve this update? Nothing may be kept of a group's weights. */
static bool is_loaded(const etch_unroller *u, const etch_weight_task *update, uint64_t weight_group)
{
    const etch_transfers *t = &u->transfers;
    return t->updated < t->loads.count && t->loads.at[t->updated].task->group == update->group &&
           t->loads.at[t->updated].weight_group == weight_group;
}

void etch_unroll_begin_states(etch_unroller *u)
{
    etch_transfers *t = &u->transfers;
    if (!u->outline->moves_states)
        return;
    etch_unroll_each_group(u, ETCH_END_LOAD, false, list_load);
    etch_unroll_each_group(u, ETCH_END_STORE, false, list_store);
    etch_lower_require(u->arena, t->loads.count == t->stores.count);
    t->load_ids = ETCH_NEW_ARRAY(u->arena, t->loads.count, uint32_t);
    t->update_ids = ETCH_NEW_ARRAY(u->arena, t->loads.count, uint32_t);
    t->store_ids = ETCH_NEW_ARRAY(u->arena, t->loads.count, uint32_t);
    issue_loads(u);
}

void etch_unroll_wait_for_states(etch_unroller *u, const etch_weight_task *update, uint64_t weight_group)
{
    if (is_loaded(u, update, weight_group))
        etch_unroll_wait(u, u->transfers.load_ids[u->transfers.updated]);
}

void etch_unroll_return_states(etch_unroller *u, const etch_weight_task *update, uint64_t weight_group,
                               uint32_t id)
{
    etch_transfers *t = &u->transfers;
    if (!is_loaded(u, update, weight_group))
        return;
    const uint32_t at = t->updated++;
    t->update_ids[at] = id;
    issue_loads(u);
    issue_store(u, at);
}
