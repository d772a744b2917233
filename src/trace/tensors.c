/* Names of output tensors, to find those that two nodes output. */
#include "trace/rank_int.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_text(etch_trace_text text)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < text.length; i++)
        hash = (hash ^ (unsigned char)text.at[i]) * 16777619u;
    return hash;
}

static bool is_at(const etch_tensors *t, uint32_t place, etch_trace_text name)
{
    const char *known = t->text + (place - 1);
    return strlen(known) == name.length && memcmp(known, name.at, name.length) == 0;
}

/* Where `name` is or would go. */
static uint32_t seek(const etch_tensors *t, etch_trace_text name)
{
    uint32_t at = hash_text(name) & (t->place_count - 1);
    while (t->places[at] != 0 && !is_at(t, t->places[at], name))
        at = (at + 1) & (t->place_count - 1);
    return at;
}

static bool enlarge(etch_tensors *t)
{
    etch_tensors larger = *t;
    larger.place_count = t->place_count ? 2 * t->place_count : 64;
    larger.places = calloc(larger.place_count, sizeof *larger.places);
    if (!larger.places)
        return false;
    for (uint32_t i = 0; i < t->place_count; i++) {
        if (t->places[i] == 0)
            continue;
        const char *name = t->text + (t->places[i] - 1);
        larger.places[seek(&larger, (etch_trace_text){name, strlen(name)})] = t->places[i];
    }
    free(t->places);
    *t = larger;
    return true;
}

static bool append(etch_tensors *t, etch_trace_text name)
{
    if (t->length + name.length + 1 > t->capacity) {
        const size_t larger = 2 * (t->capacity + name.length + 64);
        char *moved = larger < UINT32_MAX ? realloc(t->text, larger) : NULL;
        if (!moved)
            return false;
        t->text = moved;
        t->capacity = larger;
    }
    memcpy(t->text + t->length, name.at, name.length);
    t->text[t->length + name.length] = '\0';
    t->length += name.length + 1;
    return true;
}

/* Adds a name; false when it is there already, or memory is out. */
static bool add_name(etch_tensors *t, etch_trace_text name)
{
    if (t->count >= t->place_count / 2 && !enlarge(t)) {
        t->failed = true;
        return false;
    }
    const uint32_t at = seek(t, name);
    if (t->places[at] != 0)
        return false;
    t->places[at] = (uint32_t)t->length + 1;
    if (!append(t, name)) {
        t->places[at] = 0;
        t->failed = true;
        return false;
    }
    t->count++;
    return true;
}

void etch_tensors_add(etch_tensors *tensors, const etch_trace_node *node, etch_findings *findings)
{
    for (uint32_t i = 0; i < node->attr_count; i++) {
        const etch_trace_attr *attr = &node->attrs[i];
        if (attr->known != ETCH_ATTRIBUTE_OUTPUTS || attr->kind != ETCH_KIND_STRING_LIST)
            continue;
        for (uint32_t k = 0; k + 1 < attr->count; k += 2) {
            const etch_trace_text name = attr->values[k].text;
            if (!memchr(name.at, '\0', name.length) && !add_name(tensors, name) && !tensors->failed)
                etch_find(findings, ETCH_WARNING, ETCH_E_VERIFY_TENSOR_TWICE,
                          (etch_node_ref){node->id, node->name}, "ASTRA-sim ends on it when it tracks memory",
                          "it outputs the tensor '%.*s', which another node outputs, too",
                          (int)(name.length < 60 ? name.length : 60), name.at);
        }
    }
}

void etch_tensors_free(etch_tensors *tensors)
{
    free(tensors->text);
    free(tensors->places);
    *tensors = (etch_tensors){0};
}
