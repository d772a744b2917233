/* Lists of numbers: "0,2,8-15"; ids. */
#include "base/base.h"

#include <stdlib.h>

static int by_id(const void *a, const void *b)
{
    return etch_order(*(const uint32_t *)a, *(const uint32_t *)b);
}

uint32_t etch_sort_ids(uint32_t *ids, uint32_t count)
{
    enum { FEW = 16 };
    if (count > FEW)
        qsort(ids, count, sizeof *ids, by_id);
    for (uint32_t i = 1; count <= FEW && i < count; i++) {
        uint32_t id = ids[i], k = i;
        for (; k > 0 && ids[k - 1] > id; k--)
            ids[k] = ids[k - 1];
        ids[k] = id;
    }
    uint32_t left = count > 0 ? 1 : 0;
    for (uint32_t i = 1; i < count; i++)
        if (ids[i] != ids[left - 1])
            ids[left++] = ids[i];
    return left;
}

static bool read_number(const char **at, uint32_t *number)
{
    uint64_t value = 0;
    const char *start = *at;
    for (; **at >= '0' && **at <= '9' && value <= UINT32_MAX; ++*at)
        value = value * 10 + (uint64_t)(**at - '0');
    *number = (uint32_t)value;
    return *at > start && value <= UINT32_MAX;
}

static bool read_interval(const char **at, etch_interval *interval)
{
    if (!read_number(at, &interval->first))
        return false;
    interval->last = interval->first;
    if (**at != '-')
        return true;
    ++*at;
    return read_number(at, &interval->last) && interval->first <= interval->last;
}

static int by_first(const void *a, const void *b)
{
    const etch_interval *x = a, *y = b;
    return etch_order(x->first, y->first);
}

/* In rising order, none touching the next. */
static void merge(etch_intervals *list)
{
    uint32_t kept = 0;
    qsort(list->at, list->count, sizeof *list->at, by_first);
    for (uint32_t i = 1; i < list->count; i++) {
        etch_interval *last = &list->at[kept];
        if (list->at[i].first > last->last && list->at[i].first - last->last > 1)
            list->at[++kept] = list->at[i];
        else if (list->at[i].last > last->last)
            last->last = list->at[i].last;
    }
    list->count = kept + 1;
}

bool etch_intervals_read(etch_arena *arena, const char *text, etch_intervals *out)
{
    for (const char *at = text;; at++) {
        etch_interval interval;
        if (!read_interval(&at, &interval))
            return false;
        ETCH_PUSH(arena, out, interval);
        if (*at == '\0')
            break;
        if (*at != ',')
            return false;
    }
    merge(out);
    return true;
}

bool etch_intervals_hold(const etch_intervals *intervals, uint32_t number)
{
    uint32_t low = 0, high = intervals->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (intervals->at[middle].last < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < intervals->count && intervals->at[low].first <= number;
}
