/* Ranks that do the same with ranks that do the same are a class, and one of them stands for all.
 *
 * A class is ranks of one program and equal tags, whose groups and peers are alike, place by place: a group
 * is known by the classes of its members and the places that it has among their groups, a peer by its class
 * and the place that the rank has among the peer's. Classes are parted until nothing parts them further.
 *
 * If all ranks of each class go in step, then whatever one of a class waits for, all of it wait for, each in
 * its own groups and with its own peers. So a run of one rank for each class, in which a group is the classes
 * and places of its members, that comes to its end is a run of all ranks which does. Nothing is concluded
 * from one that does not. */
#include "trace/verify_int.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 64, MOST_KINDS = 16, MOST_LOCALS = 64 };

/* ---- numbered lists ------------------------------------------------------------------------------------ */

/* Different lists of numbers, each with the number that it came at; from malloc. */
typedef struct lists {
    uint64_t *words;
    /* by list: where it begins; one more */
    uint32_t *firsts;
    /* open addressing: number plus 1 */
    uint32_t *places;
    uint32_t word_count, word_capacity, count, first_capacity, place_count;
    bool failed;
} lists;

static void lists_free(lists *l)
{
    free(l->words);
    free(l->firsts);
    free(l->places);
    *l = (lists){0};
}

static uint32_t hash_of(const uint64_t *words, uint32_t length)
{
    uint64_t hash = length;
    for (uint32_t i = 0; i < length; i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash >> 32);
}

/* Where the list stands in `places`, or would. */
static uint32_t place_of(const lists *l, const uint64_t *words, uint32_t length)
{
    uint32_t at = hash_of(words, length) & (l->place_count - 1);
    for (; l->places[at]; at = (at + 1) & (l->place_count - 1)) {
        const uint32_t first = l->firsts[l->places[at] - 1];
        if (l->firsts[l->places[at]] - first == length &&
            (length == 0 || memcmp(l->words + first, words, length * sizeof *words) == 0))
            break;
    }
    return at;
}

static bool enlarge_places(lists *l)
{
    const uint32_t larger = l->place_count ? 2 * l->place_count : 256;
    uint32_t *places = calloc(larger, sizeof *places);
    if (!places)
        return false;
    free(l->places);
    l->places = places;
    l->place_count = larger;
    for (uint32_t i = 0; i < l->count; i++)
        places[place_of(l, l->words + l->firsts[i], l->firsts[i + 1] - l->firsts[i])] = i + 1;
    return true;
}

static bool add_list(lists *l, const uint64_t *words, uint32_t length)
{
    l->firsts = etch_reserve(l->firsts, l->count + 1, &l->first_capacity, sizeof *l->firsts, &l->failed);
    for (uint32_t i = 0; i < length && !l->failed; i++) {
        l->words = etch_reserve(l->words, l->word_count, &l->word_capacity, sizeof *l->words, &l->failed);
        if (!l->failed)
            l->words[l->word_count++] = words[i];
    }
    if (l->failed)
        return false;
    l->firsts[0] = 0;
    l->firsts[++l->count] = l->word_count;
    return true;
}

/* The number of a list, from 0. */
static uint32_t number_of(lists *l, const uint64_t *words, uint32_t length)
{
    if (2 * l->count >= l->place_count && !enlarge_places(l))
        l->failed = true;
    if (l->failed)
        return 0;
    const uint32_t at = place_of(l, words, length);
    if (l->places[at] == 0 && add_list(l, words, length))
        l->places[at] = l->count;
    return l->failed ? 0 : l->places[at] - 1;
}

/* ---- parting ------------------------------------------------------------------------------------------- */

typedef struct folding {
    const etch_rank *ranks;
    const etch_trace_groups *groups;
    uint32_t rank_count, class_count;
    /* by rank */
    uint32_t *class_of;
    /* by group, of those that are used: its number among `kinds` */
    uint32_t *kind_of;
    /* of groups: the classes of members, each with a place, in rising order */
    lists kinds;
    /* it cannot be done, or is not worth it */
    bool refused;
} folding;

static uint32_t place_in(const uint32_t *list, uint32_t count, uint32_t value)
{
    uint32_t at = 0;
    while (at < count && list[at] != value)
        at++;
    return at < count ? at : ETCH_NONE;
}

static uint64_t pair(uint32_t class_number, uint32_t place)
{
    return (uint64_t)class_number << 32 | place;
}

/* By program and tags. */
static void begin_classes(folding *f)
{
    lists tags = {0}, first = {0};
    const etch_rank *before = NULL;
    uint32_t tag_list = 0;
    for (uint32_t r = 0; r < f->rank_count && !f->refused; r++) {
        const etch_rank *rank = &f->ranks[r];
        if (!before || rank->tags != before->tags || rank->tag_count != before->tag_count) {
            uint64_t *words = malloc(rank->tag_count * sizeof *words + 1);
            for (uint32_t i = 0; words && i < rank->tag_count; i++)
                words[i] = (uint32_t)rank->tags[i];
            tag_list = words ? number_of(&tags, words, rank->tag_count) : 0;
            f->refused = !words;
            free(words);
        }
        before = rank;
        const uint64_t key[] = {(uintptr_t)rank->program, tag_list};
        f->class_of[r] = number_of(&first, key, 2);
        f->refused = f->refused || tags.failed || first.failed || rank->group_count > MOST_LOCALS ||
                     rank->peer_count > MOST_LOCALS;
    }
    f->class_count = first.count;
    lists_free(&tags);
    lists_free(&first);
}

/* Adds to a short list in rising order what is not there. */
static bool add_kind(uint64_t kinds[MOST_KINDS], uint32_t *count, uint64_t kind)
{
    uint32_t at = 0;
    while (at < *count && kinds[at] < kind)
        at++;
    if (at < *count && kinds[at] == kind)
        return true;
    if (*count == MOST_KINDS)
        return false;
    memmove(kinds + at + 1, kinds + at, (*count - at) * sizeof *kinds);
    kinds[at] = kind;
    ++*count;
    return true;
}

static void name_group(folding *f, uint32_t g)
{
    const etch_trace_group *group = &f->groups->at[g];
    uint64_t kinds[MOST_KINDS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < group->count && !f->refused; i++) {
        const uint32_t r = group->ranks ? group->ranks[i] : i;
        const etch_rank *rank = &f->ranks[r];
        const uint32_t place = place_in(rank->groups, rank->group_count, g);
        f->refused = place == ETCH_NONE || !add_kind(kinds, &count, pair(f->class_of[r], place));
    }
    f->kind_of[g] = number_of(&f->kinds, kinds, count);
}

static void name_groups(folding *f)
{
    lists_free(&f->kinds);
    for (uint32_t g = 0; g < f->groups->count && !f->refused; g++)
        if (f->kind_of[g] != ETCH_NONE)
            name_group(f, g);
    f->refused = f->refused || f->kinds.failed;
}

static uint32_t next_class(const folding *f, lists *next, uint32_t r)
{
    uint64_t words[1 + 2 * MOST_LOCALS];
    const etch_rank *rank = &f->ranks[r];
    uint32_t count = 0;
    words[count++] = f->class_of[r];
    for (uint32_t i = 0; i < rank->group_count; i++)
        words[count++] = f->kind_of[rank->groups[i]];
    for (uint32_t i = 0; i < rank->peer_count; i++) {
        const etch_rank *peer = &f->ranks[rank->peers[i]];
        words[count++] = pair(f->class_of[rank->peers[i]], place_in(peer->peers, peer->peer_count, r));
    }
    return number_of(next, words, count);
}

/* False when nothing was parted. */
static bool part(folding *f, uint32_t *classes)
{
    lists next = {0};
    name_groups(f);
    for (uint32_t r = 0; r < f->rank_count && !f->refused; r++) {
        classes[r] = next_class(f, &next, r);
        f->refused = next.failed || next.count > f->rank_count / 2;
    }
    const bool parted = !f->refused && next.count > f->class_count;
    if (parted) {
        memcpy(f->class_of, classes, f->rank_count * sizeof *classes);
        f->class_count = next.count;
    }
    lists_free(&next);
    return parted;
}

static void find_classes(folding *f)
{
    uint32_t *classes = malloc(f->rank_count * sizeof *classes);
    f->refused = f->refused || !classes || f->class_count > f->rank_count / 2;
    uint32_t rounds = 0;
    while (!f->refused && part(f, classes))
        f->refused = ++rounds == MOST_ROUNDS;
    free(classes);
}

/* ---- one rank for each class --------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    return etch_order(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Two messages of one key from one rank: whether they are in flight at once depends on more than classes. */
static bool repeats(const uint64_t *keys, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (keys[i] == keys[i - 1])
            return true;
    return false;
}

/* The tags of a class say from which place of which class a message goes to which place of which, under which
 * tag: so it meets only the receives of its own peer. */
static void name_messages(folding *f, const etch_rank *rank, uint32_t r, etch_rank *out, lists *tags)
{
    const etch_rank_program *p = rank->program;
    uint64_t *sent = malloc(p->comm_count * sizeof *sent + 1);
    uint32_t count = 0;
    f->refused = !sent;
    for (uint32_t i = 0; i < p->comm_count && !f->refused; i++) {
        const etch_comm *comm = &p->comms[i];
        if (comm->work == ETCH_WORK_COLLECTIVE)
            continue;
        const bool sends = comm->work == ETCH_WORK_SEND;
        const uint32_t other = rank->peers[comm->local];
        const uint32_t place = place_in(f->ranks[other].peers, f->ranks[other].peer_count, r);
        const uint64_t here = pair(f->class_of[r], comm->local), there = pair(f->class_of[other], place);
        const uint64_t words[] = {sends ? here : there, sends ? there : here,
                                  (uint32_t)rank->tags[comm->message], comm->size};
        const uint32_t tag = number_of(tags, words, sizeof words / sizeof *words);
        out->tags[comm->message] = (int32_t)tag;
        if (sends)
            sent[count++] = tag;
        f->refused = place == ETCH_NONE || tags->failed;
    }
    if (count > 1)
        qsort(sent, count, sizeof *sent, by_number);
    f->refused = f->refused || repeats(sent, count);
    free(sent);
}

static void *new_list(size_t count, size_t size, bool *failed)
{
    void *list = calloc(count + 1, size);
    *failed = *failed || !list;
    return list;
}

static void fill_class(folding *f, uint32_t r, etch_rank *out, lists *tags)
{
    const etch_rank *rank = &f->ranks[r];
    *out = *rank;
    out->shares_tags = false;
    out->groups = new_list(rank->group_count, sizeof *out->groups, &f->refused);
    out->peers = new_list(rank->peer_count, sizeof *out->peers, &f->refused);
    out->tags = new_list(rank->tag_count, sizeof *out->tags, &f->refused);
    if (f->refused)
        return;
    for (uint32_t i = 0; i < rank->group_count; i++)
        out->groups[i] = f->kind_of[rank->groups[i]];
    for (uint32_t i = 0; i < rank->peer_count; i++)
        out->peers[i] = f->class_of[rank->peers[i]];
    name_messages(f, rank, r, out, tags);
}

/* Numbers of classes come in the order of their first ranks. */
static void fill_classes(folding *f, etch_fold *fold)
{
    lists tags = {0};
    fold->ranks = new_list(f->class_count, sizeof *fold->ranks, &f->refused);
    fold->findings = new_list(f->class_count, sizeof *fold->findings, &f->refused);
    fold->groups.at = new_list(f->kinds.count, sizeof *fold->groups.at, &f->refused);
    for (uint32_t k = 0; k < f->kinds.count && !f->refused; k++)
        fold->groups.at[k] =
            (etch_trace_group){.count = f->kinds.firsts[k + 1] - f->kinds.firsts[k], .twice = ETCH_NONE};
    fold->groups.count = fold->groups.numbered = f->kinds.count;
    for (uint32_t r = 0; r < f->rank_count && !f->refused; r++)
        if (f->class_of[r] == fold->rank_count)
            fill_class(f, r, &fold->ranks[fold->rank_count++], &tags);
    lists_free(&tags);
}

bool etch_fold_make(const etch_rank *ranks, uint32_t rank_count, const etch_trace_groups *groups,
                    etch_fold *fold)
{
    folding f = {.ranks = ranks, .groups = groups, .rank_count = rank_count};
    f.class_of = new_list(rank_count, sizeof *f.class_of, &f.refused);
    f.kind_of = new_list(groups->count, sizeof *f.kind_of, &f.refused);
    *fold = (etch_fold){0};
    for (uint32_t g = 0; g < groups->count && !f.refused; g++)
        f.kind_of[g] = groups->at[g].used ? 0 : ETCH_NONE;
    if (!f.refused)
        begin_classes(&f);
    if (!f.refused)
        find_classes(&f);
    if (!f.refused)
        fill_classes(&f, fold);
    lists_free(&f.kinds);
    free(f.class_of);
    free(f.kind_of);
    if (f.refused)
        etch_fold_free(fold);
    return !f.refused;
}

bool etch_fold_finishes(const etch_fold *fold, const etch_run *run)
{
    etch_mail_key key;
    etch_mail_end end;
    uint32_t node, at = 0;
    bool fine = run->stalled == 0 && !etch_mail_next(&run->mail, &at, &key, &end, &node);
    for (uint32_t i = 0; i < fold->rank_count; i++)
        fine = fine && fold->findings[i].count == 0 && fold->findings[i].errors == 0;
    return fine;
}

void etch_fold_free(etch_fold *fold)
{
    for (uint32_t i = 0; fold->ranks && i < fold->rank_count; i++) {
        etch_rank_free(&fold->ranks[i]);
        etch_findings_free(&fold->findings[i]);
    }
    free(fold->ranks);
    free(fold->findings);
    free(fold->groups.at);
    *fold = (etch_fold){0};
}
