/* Strategies that are combined: copies of a data-parallel group, data, experts, context, all-to-all and two
 * axes of tensor parallelism. Each axis has one role; what its role lets it divide is rolled. */
#include "exec_plans.h"

#include "exec_env.h"

#include <string.h>

typedef enum role { REP, DP, EP, CP, ULY, TP, TP2, ROLES } role;
static const char *const role_names[ROLES] = {"rep", "data", "own", "ring", "uly", "tp", "g"};
enum {
    OF_BATCH = 1 << REP | 1 << DP | 1 << EP,
    OF_SEQUENCE = 1 << CP | 1 << ULY,
    OF_TENSORS = 1 << TP | 1 << TP2
};
enum { MOST_AXES = 5, MOST_RANKS = 16 };

/* The letters that stand for sizes in params of families. */
static const char letters[] = "bshfvewgl";
enum { SIZES = sizeof letters - 1 };

typedef struct composer {
    const exec_family *family;
    exec_dice *dice;
    etch_arena *arena;
    etch_buf out;
    uint32_t axes, size[ROLES]; /* bits of roles */
    bool sp;                    /* the residual is divided on the sequence by tensor parallelism, too */
    uint32_t experts;           /* how many parts they make of the experts */
    uint32_t micro;
} composer;

static bool roll(composer *c, uint32_t sides)
{
    return exec_roll(c->dice, sides) == 0;
}

static uint32_t product(const composer *c, uint32_t roles)
{
    uint32_t n = 1;
    for (uint32_t r = 0; r < ROLES; r++)
        n *= c->axes & roles & (1u << r) ? c->size[r] : 1;
    return n;
}

/* "(data,own)", "()": those of `outer` first. */
static const char *axes_around(const composer *c, uint32_t outer, uint32_t inner)
{
    etch_buf text = {.arena = c->arena};
    const uint32_t roles[] = {outer, inner & ~outer};
    uint32_t count = 0;
    etch_buf_puts(&text, "(");
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t r = 0; r < ROLES; r++)
            if (c->axes & roles[i] & (1u << r))
                etch_buf_printf(&text, "%s%s", count++ ? "," : "", role_names[r]);
    etch_buf_puts(&text, ")");
    return text.text;
}

static const char *axes_of(const composer *c, uint32_t roles)
{
    return axes_around(c, roles, 0);
}

/* Some of the roles, often all. */
static uint32_t some(composer *c, uint32_t roles)
{
    return roll(c, 4) ? roles & exec_roll(c->dice, 1u << ROLES) : roles;
}

/* ---- the mesh ------------------------------------------------------------------------------------------ */

static bool has_role(const exec_family *f, role r)
{
    switch (r) {
    case EP:
        return f->experts != NULL;
    case CP:
        return f->seqs[0] && !f->whole_sequences;
    case ULY:
        return f->core != NULL;
    case TP2:
        return f->groups || f->experts;
    default:
        return true;
    }
}

static void roll_axes(composer *c)
{
    const uint32_t doublings = 1 + exec_roll(c->dice, 4);
    for (uint32_t i = 0; i < doublings;) {
        const role r = exec_roll(c->dice, ROLES);
        const bool many =
            c->axes & (1u << r) && c->size[r] == 4 && !roll(c, 4); /* large axes take large models */
        if (!has_role(c->family, r) || (r == TP2 && !(c->axes & 1u << TP)) || many)
            continue;
        c->size[r] = c->axes & (1u << r) ? 2 * c->size[r] : 2;
        c->axes |= 1u << r;
        i++;
    }
    for (uint32_t i = 0; i + doublings < MOST_AXES && roll(c, 3); i++) { /* an axis of one rank is none */
        const role r = exec_roll(c->dice, ROLES);
        if (!has_role(c->family, r) || c->axes & 1u << r)
            continue;
        c->size[r] = 1;
        c->axes |= 1u << r;
    }
}

static void write_mesh(composer *c)
{
    role order[ROLES];
    for (uint32_t r = 0; r < ROLES; r++)
        order[r] = r;
    for (uint32_t r = ROLES; r-- > 1 && roll(c, 4);) {
        const uint32_t other = exec_roll(c->dice, r + 1);
        const role swapped = order[r];
        order[r] = order[other];
        order[other] = swapped;
    }
    const char *before = "  mesh  [";
    for (uint32_t i = 0; i < ROLES; i++)
        if (c->axes & 1u << order[i]) {
            etch_buf_printf(&c->out, "%s%s = %u", before, role_names[order[i]], c->size[order[i]]);
            before = ", ";
        }
    etch_buf_puts(&c->out, "]\n");
}

/* ---- what divides what --------------------------------------------------------------------------------- */

static void write_shard(composer *c, const char *dim, uint32_t roles)
{
    etch_buf_printf(&c->out, "  shard %s @ %s\n", dim, axes_of(c, roles));
}

static void write_tensors(composer *c)
{
    const exec_family *f = c->family;
    const bool two = f->groups && c->axes & 1u << TP2;
    if (roll(c, 12)) {
        if (!f->tables)
            write_shard(c, "H", OF_TENSORS);
        return;
    }
    if (f->heads && !roll(c, 8))
        write_shard(c, f->heads, two ? 1u << TP : OF_TENSORS);
    if (two)
        write_shard(c, f->groups, 1u << TP2);
    if (f->inner && !roll(c, 8))
        write_shard(c, f->inner, some(c, OF_TENSORS));
    if (f->shared && !roll(c, 4))
        write_shard(c, f->shared, some(c, OF_TENSORS));
    if (!roll(c, 4) && !f->tables)
        write_shard(c, "V", some(c, OF_TENSORS));
}

static void write_pins(composer *c)
{
    const exec_family *f = c->family;
    const uint32_t form = exec_roll(c->dice, 8);
    c->sp = form < 4 && c->axes & OF_TENSORS && f->seqs[0];
    const uint32_t of_sequence = OF_SEQUENCE | (c->sp ? some(c, OF_TENSORS) : 0);
    for (int i = 0; i < 2 && f->pins[i] && f->seqs[0] && form < 6; i++) {
        if (form == 5 && i == 0)
            etch_buf_printf(&c->out, "  pin   %s [B@%s, %s@%s, H@%s]\n", f->pins[i], axes_of(c, OF_BATCH),
                            f->seqs[i], axes_of(c, OF_SEQUENCE), axes_of(c, OF_TENSORS));
        else
            etch_buf_printf(&c->out, "  pin   %s [B@%s, %s@%s, H]\n", f->pins[i], axes_of(c, OF_BATCH),
                            f->seqs[i], axes_of(c, of_sequence));
    }
}

static void write_sequence(composer *c)
{
    const exec_family *f = c->family;
    if (!(c->axes & OF_SEQUENCE))
        return;
    for (int i = 0; i < 2 && f->seqs[i]; i++)
        write_shard(c, f->seqs[i], OF_SEQUENCE);
    if (c->axes & 1u << ULY)
        etch_buf_printf(&c->out, "  for %s { shard S @ %s, %s @ %s }\n", f->core, axes_of(c, 1u << CP),
                        f->heads, axes_around(c, f->groups ? 1u << TP : OF_TENSORS, 1u << ULY));
}

/* Experts over an axis of their own, over those of tensors or of the sequence as well; each of them divided
 * or not. */
static void write_experts(composer *c)
{
    static const uint32_t over[] = {
        1u << EP, 1u << EP, 1u << EP | OF_TENSORS, 1u << EP | OF_SEQUENCE | OF_TENSORS, 1u << EP | 1u << TP,
        1u << CP, 1u << DP};
    static const uint32_t inside[] = {OF_TENSORS, 0, 0, 0, 1u << TP2, OF_TENSORS, 1u << TP};
    const uint32_t form = exec_roll(c->dice, 7), divide = over[form],
                   slots = (OF_BATCH | OF_SEQUENCE) & ~divide;
    const uint32_t replicating =
        c->sp ? 0 : OF_TENSORS; /* they hold all tokens: experts are taken apart before tokens travel */
    if (roll(c, 10))
        return;
    c->experts = product(c, divide);
    etch_buf_printf(&c->out, "  for %s { shard E @ %s, C @ %s, I @ %s }\n", c->family->experts,
                    axes_around(c, divide & replicating, divide), axes_of(c, slots),
                    axes_of(c, inside[form]));
}

static void write_tower(composer *c)
{
    const exec_family *f = c->family;
    if (f->tower && !roll(c, 3))
        etch_buf_printf(&c->out, "  for %s { shard B @ %s, F @ (), A @ () }\n", f->tower,
                        axes_of(c, OF_BATCH | OF_TENSORS));
    else if (f->tower)
        write_shard(c, "A", 1u << TP);
    if (!f->tables)
        return;
    static const uint32_t rows[] = {OF_BATCH, OF_BATCH | OF_TENSORS, OF_TENSORS, 1u << DP};
    const uint32_t over = rows[exec_roll(c->dice, 4)];
    if (!roll(c, 4))
        etch_buf_printf(&c->out, "  for tables { shard R @ %s, B @ %s }\n", axes_of(c, over),
                        axes_of(c, OF_BATCH & ~over));
    else
        etch_buf_printf(&c->out, "  for tables { shard D @ %s }\n", axes_of(c, OF_TENSORS));
}

/* ---- what is divided in time --------------------------------------------------------------------------- */

static void write_zero(composer *c)
{
    static const char *const keeps[] = {"false", "microbatch", "step"};
    const uint32_t over = some(c, OF_BATCH | (roll(c, 2) ? OF_SEQUENCE : 0) | (roll(c, 4) ? OF_TENSORS : 0));
    const uint32_t level = 1 + exec_roll(c->dice, 3), again = some(c, over) & c->axes;
    if (!(c->axes & over) || !roll(c, 2))
        return;
    etch_buf_printf(&c->out, "  zero  %u @ %s", level, axes_of(c, over));
    if (level > 1 && roll(c, 2))
        etch_buf_puts(&c->out, ", reduce = step");
    if (roll(c, 4))
        etch_buf_puts(&c->out, ", group = weight");
    if (level == 3 && roll(c, 3))
        etch_buf_puts(&c->out, ", root = true");
    if (level == 3 && again && !roll(c, 3))
        etch_buf_printf(&c->out, ", again = %s", axes_of(c, again));
    else if (level == 3)
        etch_buf_printf(&c->out, ", keep = %s", keeps[exec_roll(c->dice, 3)]);
    etch_buf_puts(&c->out, "\n");
    if (c->family->core && roll(c, 4))
        etch_buf_printf(&c->out, "  for %s { zero %u @ %s%s }\n", c->family->core, 1 + exec_roll(c->dice, 3),
                        axes_of(c, some(c, over)), roll(c, 2) ? ", reduce = step" : "");
}

static void write_recompute(composer *c)
{
    static const char *const whole[] = {"full", "needed", "full(first = 1)", "none"};
    const uint32_t kind = exec_roll(c->dice, 8);
    const char *selector = c->family->again[kind % 4];
    if (kind < 4 || !selector)
        return;
    if (roll(c, 3))
        etch_buf_printf(&c->out, "  recompute = %s\n", whole[exec_roll(c->dice, 4)]);
    else
        etch_buf_printf(&c->out, "  recompute = %s\n", selector);
}

/* What else a plan says beside placement. */
static void write_options(composer *c)
{
    static const char *const reduce[] = {"end", "layer", "microbatch"};
    if (roll(c, 3))
        etch_buf_printf(&c->out, "  reduce = %s\n", reduce[exec_roll(c->dice, 3)]);
    if (roll(c, 3))
        etch_buf_puts(&c->out, "  keep = gathers\n");
    if (roll(c, 4))
        etch_buf_puts(&c->out, "  balance = false\n");
    if (roll(c, 4))
        etch_buf_puts(&c->out, "  bucket = ddp\n");
    if (product(c, OF_SEQUENCE) > 1 && roll(c, 2))
        etch_buf_puts(&c->out, "  attend = ring\n");
}

/* Last of all: the rest of what a number makes stays as it is. */
static void write_offload(composer *c)
{
    static const char *const states[] = {"optimizer", "master", "moments"};
    const uint32_t which = exec_roll(c->dice, 3);
    if (roll(c, 2))
        etch_buf_printf(&c->out, "  offload %s @ host, ahead = %u\n", states[which], exec_roll(c->dice, 3));
}

/* ---- the spec ------------------------------------------------------------------------------------------ */

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* As small as what divides them allows. Choices are even when a rank has as many tokens of a sequence as
 * there are experts. */
static void find_sizes(composer *c, uint32_t sizes[SIZES])
{
    const uint32_t tensors = product(c, OF_TENSORS);
    const uint32_t experts = larger(4, c->experts), along = product(c, OF_SEQUENCE) * (c->sp ? tensors : 1);
    const uint32_t found[SIZES] = {
        c->micro * product(c, OF_BATCH) * (c->family->tower || c->family->tables ? tensors : 1),
        along * (c->family->experts ? experts : 2),
        larger(2, tensors * product(c, 1u << ULY)),
        larger(2, tensors),
        larger(4, c->family->tables ? product(c, OF_TENSORS | OF_BATCH) : tensors),
        experts,
        larger(4, tensors),
        larger(2, product(c, 1u << TP2)),
        product(c, UINT32_MAX) < 8 || roll(c, 4) ? 2 : 1,
    };
    memcpy(sizes, found, sizeof found);
}

static uint32_t *size_of(uint32_t sizes[SIZES], char letter)
{
    return &sizes[strchr(letters, letter) - letters];
}

/* What the params of the family are, less one or not, padded to what divides it. */
static void write_pad(composer *c, uint32_t sizes[SIZES], char letter, const char *const dims[2])
{
    uint32_t *size = size_of(sizes, letter);
    const uint32_t parts = letter == 'b' ? c->micro : 1, multiple = *size / parts;
    if (!dims[0] || multiple == 1 || roll(c, 2))
        return;
    for (int i = 0; i < 2 && dims[i]; i++)
        etch_buf_printf(&c->out, "  pad   %s = %u\n", dims[i], multiple);
    *size -= parts;
}

static void write_pads(composer *c, uint32_t sizes[SIZES])
{
    const exec_family *f = c->family;
    write_pad(c, sizes, 'b', (const char *const[2]){"B"});
    write_pad(c, sizes, 's', f->seqs);
    write_pad(c, sizes, 'h', (const char *const[2]){f->heads, f->tower ? "A" : NULL}); /* A: its own heads */
    write_pad(c, sizes, 'f', (const char *const[2]){f->inner, f->shared});
    write_pad(c, sizes, 'v', (const char *const[2]){f->tables ? NULL : "V"});
    write_pad(c, sizes, 'g', (const char *const[2]){f->groups});
}

static const char *sizes_text(composer *c, uint32_t sizes[SIZES])
{
    etch_buf text = {.arena = c->arena};
    for (const char *at = c->family->sizes; *at; at++)
        if (*at == '%')
            etch_buf_printf(&text, "%u", *size_of(sizes, *++at));
        else
            etch_buf_add(&text, at, 1);
    return text.text;
}

static exec_combination combine(etch_arena *arena, uint64_t seed, bool padded)
{
    exec_dice dice = {exec_mix(seed, 17)};
    uint32_t families = 0;
    while (exec_families[families].name)
        families++;
    composer c = {.family = &exec_families[exec_roll(&dice, families)],
                  .dice = &dice,
                  .arena = arena,
                  .out.arena = arena};
    c.experts = 1;
    c.micro = 1 + exec_roll(&dice, 2);
    roll_axes(&c);
    const bool clip = roll(&c, 3);
    etch_buf_printf(&c.out, "parallel combined {\n");
    write_mesh(&c);
    write_shard(&c, "B", OF_BATCH);
    write_tensors(&c);
    write_pins(&c);
    write_sequence(&c);
    if (c.family->experts)
        write_experts(&c);
    write_tower(&c);
    write_zero(&c);
    write_recompute(&c);
    write_options(&c);
    uint32_t sizes[SIZES];
    find_sizes(&c, sizes);
    if (padded)
        write_pads(&c, sizes);
    write_offload(&c);
    etch_buf_puts(&c.out, "}\n");
    exec_combination made = {.family = c.family, .ranks = product(&c, UINT32_MAX)};
    for (uint32_t r = 0; r < ROLES; r++)
        made.axes += c.axes >> r & 1;
    made.text = etch_text(arena,
                          "etch 1\n%suse config tiny\nuse plan combined\nconfig tiny { %s, micro = %u }\n"
                          "train combination { %s, accumulate = (B, micro)%s }\n%s",
                          c.family->text, sizes_text(&c, sizes), c.micro, c.family->run,
                          clip ? ", clip = 1" : "", c.out.text);
    return made;
}

exec_combination exec_combine(etch_arena *arena, uint64_t seed)
{
    return combine(arena, seed, false);
}

exec_combination exec_combine_padded(etch_arena *arena, uint64_t seed)
{
    return combine(arena, seed, true);
}
