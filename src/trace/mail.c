/* Messages of which one end is there and the other is not. */
#include "trace/verify_int.h"

#include <stdlib.h>

typedef struct etch_mail_box {
    etch_mail_key key;
    etch_mail_end end;
    /* items; 0: the box is free */
    uint32_t first, last;
    /* in its bucket, or of the free boxes */
    uint32_t next;
} etch_mail_box;

typedef struct etch_mail_item {
    uint32_t node, next;
} etch_mail_item;

static uint64_t hash_key(const etch_mail_key *key)
{
    uint64_t hash = ((uint64_t)key->source << 32 | key->target) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 31 ^ (uint32_t)key->tag) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 29 ^ key->size) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 32;
}

static uint32_t *bucket_of(const etch_mail *mail, const etch_mail_key *key)
{
    return &mail->buckets[hash_key(key) & (mail->bucket_count - 1)];
}

static bool is_key(const etch_mail_key *a, const etch_mail_key *b)
{
    return a->size == b->size && a->source == b->source && a->target == b->target && a->tag == b->tag;
}

/* The link that leads to the box of `key`, or to 0. */
static uint32_t *find(const etch_mail *mail, const etch_mail_key *key)
{
    uint32_t *link = bucket_of(mail, key);
    while (*link != 0 && !is_key(&mail->boxes[*link].key, key))
        link = &mail->boxes[*link].next;
    return link;
}

bool etch_mail_take(etch_mail *mail, const etch_mail_key *key, etch_mail_end end, uint32_t *node)
{
    if (mail->used_boxes == 0)
        return false;
    uint32_t *link = find(mail, key);
    const uint32_t at = *link;
    etch_mail_box *box = &mail->boxes[at];
    if (at == 0 || box->end != end)
        return false;
    const uint32_t item = box->first;
    *node = mail->items[item].node;
    box->first = mail->items[item].next;
    mail->items[item].next = mail->free_item;
    mail->free_item = item;
    if (box->first == 0) {
        *link = box->next;
        box->next = mail->free_box;
        mail->free_box = at;
        mail->used_boxes--;
    }
    return true;
}

/* ---- putting ------------------------------------------------------------------------------------------- */

static bool enlarge(etch_mail *mail)
{
    const uint32_t larger = mail->bucket_count ? 2 * mail->bucket_count : 64;
    uint32_t *buckets = calloc(larger, sizeof *buckets);
    if (!buckets)
        return false;
    free(mail->buckets);
    mail->buckets = buckets;
    mail->bucket_count = larger;
    for (uint32_t i = 1; i < mail->box_count; i++) {
        etch_mail_box *box = &mail->boxes[i];
        if (box->first == 0)
            continue;
        uint32_t *bucket = bucket_of(mail, &box->key);
        box->next = *bucket;
        *bucket = i;
    }
    return true;
}

static uint32_t new_item(etch_mail *mail, uint32_t node)
{
    bool failed = false;
    uint32_t at = mail->free_item;
    if (at != 0) {
        mail->free_item = mail->items[at].next;
    } else {
        mail->item_count += mail->item_count == 0; /* 0 is none */
        mail->items =
            etch_reserve(mail->items, mail->item_count, &mail->item_capacity, sizeof *mail->items, &failed);
        if (failed)
            return 0;
        at = mail->item_count++;
    }
    mail->items[at] = (etch_mail_item){.node = node};
    return at;
}

static uint32_t new_box(etch_mail *mail, const etch_mail_key *key, etch_mail_end end)
{
    bool failed = false;
    uint32_t at = mail->free_box;
    if (at != 0) {
        mail->free_box = mail->boxes[at].next;
    } else {
        mail->box_count += mail->box_count == 0;
        mail->boxes =
            etch_reserve(mail->boxes, mail->box_count, &mail->box_capacity, sizeof *mail->boxes, &failed);
        if (failed)
            return 0;
        at = mail->box_count++;
    }
    uint32_t *bucket = bucket_of(mail, key);
    mail->boxes[at] = (etch_mail_box){.key = *key, .end = end, .next = *bucket};
    *bucket = at;
    mail->used_boxes++;
    return at;
}

bool etch_mail_put(etch_mail *mail, const etch_mail_key *key, etch_mail_end end, uint32_t node, bool *alone)
{
    if (mail->used_boxes >= mail->bucket_count && !enlarge(mail))
        return false;
    const uint32_t item = new_item(mail, node);
    if (item == 0)
        return false;
    uint32_t at = *find(mail, key);
    *alone = at == 0;
    if (at == 0)
        at = new_box(mail, key, end);
    if (at == 0)
        return false;
    etch_mail_box *box = &mail->boxes[at];
    if (*alone)
        box->first = item;
    else
        mail->items[box->last].next = item;
    box->last = item;
    return true;
}

bool etch_mail_next(const etch_mail *mail, uint32_t *at, etch_mail_key *key, etch_mail_end *end,
                    uint32_t *node)
{
    for (++*at; *at < mail->box_count; ++*at) {
        const etch_mail_box *box = &mail->boxes[*at];
        if (box->first == 0)
            continue;
        *key = box->key;
        *end = box->end;
        *node = mail->items[box->first].node;
        return true;
    }
    return false;
}

void etch_mail_free(etch_mail *mail)
{
    free(mail->boxes);
    free(mail->items);
    free(mail->buckets);
    *mail = (etch_mail){0};
}
