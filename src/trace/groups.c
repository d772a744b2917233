/* comm_group.json: {"1": [0, 1], ...}. */
#include "trace/verify_int.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* bytes; a million ranks in five groups each need 40 MB */
    FILE_LIMIT = 64 << 20,
    MOST_REFUSALS = 20
};

typedef struct reading {
    etch_arena *arena;
    etch_diags *diags;
    uint32_t rank_count;
    etch_trace_groups *groups;
    json_t *root;
    /* the group at hand */
    const char *key;
    /* groups */
    uint32_t refused, large;
} reading;

/* Says what is wrong with the group at hand, of the first few that are wrong. */
static void refuse(reading *r, etch_code code, const char *help, const char *what)
{
    if (r->refused++ >= MOST_REFUSALS)
        return;
    etch_diag *diag = etch_error(r->diags, code, (etch_span){0, 0}, "group '%.40s' %s", r->key, what);
    if (help)
        etch_help(diag, "%s", help);
}

static int compare_ranks(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The id in the key; 0 when it is none. */
static uint32_t read_key(reading *r)
{
    uint64_t id = 0;
    size_t length = strlen(r->key);
    if (length > 0 && length < 11 && strspn(r->key, "0123456789") == length)
        id = strtoull(r->key, NULL, 10);
    if (id == 0 || id > UINT32_MAX || *r->key == '0') {
        refuse(r, ETCH_E_VERIFY_GROUP_KEY, "number groups 1, 2, 3, ...",
               strcmp(r->key, "0") == 0 ? "has the number 0, which means all ranks"
                                        : "is not named by a decimal number");
        return 0;
    }
    r->large += id > ETCH_MOST_GROUP_ID;
    return (uint32_t)id;
}

/* What simulators cannot read is refused; what they mind only where the group is used is kept. */
static bool read_ranks(reading *r, const json_t *value, etch_trace_group *group)
{
    const size_t size = json_array_size(value);
    size_t count = 0;
    if (!json_is_array(value)) {
        refuse(r, ETCH_E_VERIFY_GROUP_RANKS, NULL, "is no list of ranks");
        return false;
    }
    uint32_t *ranks = ETCH_NEW_ARRAY(r->arena, size + 1, uint32_t);
    for (size_t i = 0; i < size; i++) {
        const json_t *rank = json_array_get(value, i);
        if (!json_is_integer(rank)) {
            refuse(r, ETCH_E_VERIFY_GROUP_RANKS, NULL, "lists something that is no integer");
            return false;
        }
        if (json_integer_value(rank) >= 0 && json_integer_value(rank) < (json_int_t)r->rank_count) {
            ranks[count++] = (uint32_t)json_integer_value(rank);
        } else if (!group->beyond) {
            group->beyond = true;
            group->stranger = (int64_t)json_integer_value(rank);
        }
    }
    qsort(ranks, count, sizeof *ranks, compare_ranks);
    for (size_t i = 1; i < count; i++)
        if (ranks[i] == ranks[i - 1])
            group->twice = ranks[i];
    group->ranks = ranks;
    group->count = (uint32_t)count;
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    const etch_trace_group *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static etch_status read_table(void *data)
{
    reading *r = data;
    json_t *root = r->root, *value;
    etch_trace_groups *groups = r->groups;
    const uint32_t most = (uint32_t)json_object_size(root) + 1;
    groups->at = ETCH_NEW_ARRAY(r->arena, most, etch_trace_group);
    groups->at[0] = (etch_trace_group){.count = r->rank_count, .twice = ETCH_NONE};
    groups->count = 1;
    json_object_foreach(root, r->key, value)
    {
        etch_trace_group group = {.id = read_key(r), .twice = ETCH_NONE};
        if (group.id == 0 || !read_ranks(r, value, &group))
            continue;
        groups->at[groups->count++] = group;
    }
    qsort(groups->at, groups->count, sizeof *groups->at, compare_ids);
    if (r->large > 0)
        etch_warning(r->diags, ETCH_E_VERIFY_GROUP_LARGE, (etch_span){0, 0},
                     "%u group%s a number above %d, which overflows in ASTRA-sim; the largest is %u",
                     (unsigned)r->large, r->large == 1 ? " has" : "s have", ETCH_MOST_GROUP_ID,
                     (unsigned)groups->at[groups->count - 1].id);
    return r->refused > 0 ? ETCH_EINPUT : ETCH_OK;
}

static etch_status parse(reading *r, const char *path, const char *text, size_t length)
{
    json_error_t error;
    r->root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!r->root && error.text[0] == '\0')
        return ETCH_ENOMEM; /* nothing to say of the text: memory is out */
    if (!r->root) {
        etch_error(r->diags, ETCH_E_VERIFY_GROUP_FILE, (etch_span){0, 0}, "'%s' is no JSON: line %d: %s",
                   path, error.line, error.text);
        return ETCH_EINPUT;
    }
    if (!json_is_object(r->root)) {
        json_decref(r->root);
        etch_error(r->diags, ETCH_E_VERIFY_GROUP_FILE, (etch_span){0, 0},
                   "'%s' is no JSON object of groups and their ranks", path);
        return ETCH_EINPUT;
    }
    /* What JSON holds is not the arena's: it must be given back also when memory runs out. */
    etch_status status = etch_guard(etch_arena_mem(r->arena), read_table, r);
    json_decref(r->root);
    return status;
}

static etch_status read_file(etch_arena *arena, const etch_trace_set *set, etch_diags *diags,
                             etch_trace_groups *groups)
{
    reading r = {.arena = arena, .diags = diags, .rank_count = set->rank_count, .groups = groups};
    char *text;
    size_t length;
    const char *why;
    groups->at = ETCH_NEW(arena, etch_trace_group);
    groups->at[0] = (etch_trace_group){.count = set->rank_count, .twice = ETCH_NONE};
    groups->count = 1;
    if (!set->groups)
        return ETCH_OK;
    if (etch_read_file(arena, set->groups, FILE_LIMIT, &text, &length, &why) != ETCH_OK) {
        etch_error(diags, ETCH_E_VERIFY_UNREADABLE, (etch_span){0, 0},
                   "the groups in '%s' cannot be read: %s", set->groups, why);
        return ETCH_EIO;
    }
    if (strstr(set->groups, "empty"))
        etch_warning(diags, ETCH_E_VERIFY_GROUP_PATH, (etch_span){0, 0},
                     "the path '%s' contains \"empty\": ASTRA-sim reads no groups from it", set->groups);
    const etch_status status = parse(&r, set->groups, text, length);
    groups->broken = status == ETCH_EINPUT;
    return status;
}

/* ---- along dimensions ---------------------------------------------------------------------------------- */

static uint32_t size_along(const etch_trace_set *set, uint64_t dimensions)
{
    uint32_t size = 1;
    for (uint32_t i = 0; i < set->dimension_count; i++)
        if (dimensions >> i & 1)
            size *= set->dimensions[i];
    return size;
}

/* The number of a rank's group among those along dimensions: its coordinates in all others. */
static uint32_t number_along(const etch_trace_set *set, uint64_t dimensions, uint32_t rank)
{
    uint32_t number = 0, times = 1;
    for (uint32_t i = 0; i < set->dimension_count; rank /= set->dimensions[i++])
        if (!(dimensions >> i & 1)) {
            number += rank % set->dimensions[i] * times;
            times *= set->dimensions[i];
        }
    return number;
}

static void add_along(etch_arena *arena, const etch_trace_set *set, uint64_t dimensions,
                      etch_trace_groups *groups)
{
    const uint32_t size = size_along(set, dimensions);
    etch_trace_group *at = groups->at + groups->count;
    uint32_t *ranks = ETCH_NEW_ARRAY(arena, set->rank_count, uint32_t);
    for (uint32_t i = 0; i < set->rank_count / size; i++)
        at[i] = (etch_trace_group){
            .dimensions = dimensions, .ranks = ranks + (size_t)i * size, .twice = ETCH_NONE};
    for (uint32_t rank = 0; rank < set->rank_count; rank++) {
        const uint32_t number = number_along(set, dimensions, rank);
        ranks[(size_t)number * size + at[number].count++] = rank;
    }
    groups->count += set->rank_count / size;
}

uint32_t etch_trace_group_along(const etch_trace_groups *groups, const etch_trace_set *set,
                                uint64_t dimensions, uint32_t rank)
{
    uint32_t first = groups->numbered;
    for (uint32_t i = 0; i < set->along_count; i++) {
        if (set->along[i] == dimensions)
            return first + number_along(set, dimensions, rank);
        first += set->rank_count / size_along(set, set->along[i]);
    }
    return ETCH_NONE;
}

etch_status etch_trace_groups_read(etch_arena *arena, const etch_trace_set *set, etch_diags *diags,
                                   etch_trace_groups *groups)
{
    const etch_status status = read_file(arena, set, diags, groups);
    uint32_t more = 0;
    groups->numbered = groups->count;
    for (uint32_t i = 0; i < set->along_count; i++)
        more += set->rank_count / size_along(set, set->along[i]);
    if (more == 0)
        return status;
    etch_trace_group *all = ETCH_NEW_ARRAY(arena, (size_t)groups->count + more, etch_trace_group);
    memcpy(all, groups->at, groups->count * sizeof *all);
    groups->at = all;
    for (uint32_t i = 0; i < set->along_count; i++)
        add_along(arena, set, set->along[i], groups);
    return status;
}

/* ---- asking -------------------------------------------------------------------------------------------- */

const char *etch_trace_group_text(const etch_trace_group *group, char text[ETCH_GROUP_TEXT])
{
    if (group->dimensions) {
        snprintf(text, ETCH_GROUP_TEXT, "the ranks %u, %u, ... along the network", (unsigned)group->ranks[0],
                 (unsigned)group->ranks[1]);
        return text;
    }
    if (group->id == 0)
        return "the group of all ranks";
    snprintf(text, ETCH_GROUP_TEXT, "group %u", (unsigned)group->id);
    return text;
}

uint32_t etch_trace_group_find(const etch_trace_groups *groups, uint64_t id)
{
    uint32_t low = 0, high = groups->numbered;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (groups->at[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < groups->numbered && groups->at[low].id == id ? low : ETCH_NONE;
}

bool etch_trace_group_has(const etch_trace_group *group, uint32_t rank)
{
    return !group->ranks || bsearch(&rank, group->ranks, group->count, sizeof rank, compare_ranks) != NULL;
}
