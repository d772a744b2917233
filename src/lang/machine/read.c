/* Devices and clusters: their lines. */
#include <string.h>

#include "graph/graph.h"
#include "lang/machine/machine_int.h"

static bool is_word(const etch_ast_line *line, const char *word)
{
    return line->what.count > 0 && strcmp(line->what.at[0].text, word) == 0;
}

/* ---- devices ------------------------------------------------------------------------------------------- */

static const etch_machine_field device_fields[] = {
    {"other", ETCH_OF_FLOP_A_SECOND, false},      {"memory", ETCH_OF_BYTES, false},
    {"bandwidth", ETCH_OF_BYTES_A_SECOND, false}, {"clock", ETCH_OF_FREQUENCY, false},
    {"slowdown", ETCH_OF_NOTHING, false},         {"passes", ETCH_OF_NOTHING, false},
    {"host", ETCH_OF_BYTES_A_SECOND, false},
};
enum { DEVICE_FIELDS = sizeof device_fields / sizeof *device_fields };

static const char *device_line_at(uint32_t index)
{
    static const char *const lines[] = {"products", "other",    "memory", "bandwidth", "array",
                                        "clock",    "slowdown", "passes", "host",      "fit"};
    return index < sizeof lines / sizeof *lines ? lines[index] : NULL;
}

static const char *fit_at(uint32_t index)
{
    return index < ETCH_KERNEL_KINDS ? etch_kernel_kind_name((etch_kernel_kind)index) : NULL;
}

static const char *dtype_at(uint32_t index)
{
    return index < ETCH_DTYPE_COUNT ? etch_dtype_name((etch_dtype)index) : NULL;
}

static const char *dataflow_at(uint32_t index)
{
    return etch_dataflow_name((etch_dataflow)index);
}

static const char *array_at(uint32_t index)
{
    static const char *const names[] = {"rows", "columns", "dataflow"};
    return index < 3 ? names[index] : NULL;
}

static void read_products(etch_machine_reader *reader, const etch_ast_line *line, etch_device *device)
{
    for (uint32_t i = 0; i < line->defs.count; i++) {
        const etch_ast_def *def = &line->defs.at[i];
        const etch_machine_field field = {def->name.text, ETCH_OF_FLOP_A_SECOND, false};
        etch_peak peak = {.dtype = def->name.text};
        if (etch_dtype_of(peak.dtype) == ETCH_DTYPE_COUNT)
            etch_machine_unknown(reader, "dtype", def->name, dtype_at);
        else if (etch_machine_say(reader, etch_text(reader->spec->arena, "products %s", peak.dtype),
                                  def->span) &&
                 etch_machine_number(reader, def, &field, &peak.rate))
            ETCH_PUSH(reader->spec->arena, &device->peaks, peak);
    }
}

static void read_array(etch_machine_reader *reader, const etch_ast_line *line, etch_device *device)
{
    uint32_t dataflow = 0;
    for (uint32_t i = 0; i < line->defs.count; i++) {
        const etch_ast_def *def = &line->defs.at[i];
        const char *name = def->name.text;
        if (strcmp(name, "rows") != 0 && strcmp(name, "columns") != 0 && strcmp(name, "dataflow") != 0)
            etch_machine_unknown(reader, "number of an array", def->name, array_at);
        else if (!etch_machine_say(reader, etch_text(reader->spec->arena, "array %s", name), def->span))
            continue;
        else if (strcmp(name, "dataflow") == 0)
            (void)etch_machine_word(reader, def, dataflow_at, &dataflow);
        else
            (void)etch_machine_count(reader, def, name[0] == 'r' ? &device->rows : &device->columns);
    }
    device->dataflow = (etch_dataflow)dataflow;
    for (uint32_t i = 0; array_at(i); i++)
        etch_machine_lacks(reader, etch_text(reader->spec->arena, "array %s", array_at(i)),
                           "write array rows = 128, columns = 128, dataflow = weight");
}

/* From 1 to 100. */
static bool is_factor(etch_decimal value)
{
    uint64_t whole = (uint64_t)value.digits;
    for (int32_t power = value.power; power > 0 && whole <= 100; power--)
        whole *= 10;
    for (int32_t power = value.power; power < 0 && whole > 0; power++)
        whole /= 10;
    return whole >= 1 && (whole < 100 || (value.digits == 1 && value.power == 2));
}

static void check_factor(etch_machine_reader *reader, const etch_ast_def *def, etch_decimal value,
                         const char *meaning)
{
    if (!is_factor(value))
        etch_error(reader->spec->diags, ETCH_E_MACHINE_VALUE, def->value->span,
                   "'%s' is a number from 1 to 100: how many times %s", def->name.text, meaning);
}

static void read_device_number(etch_machine_reader *reader, const etch_ast_def *def, etch_device *device)
{
    etch_decimal *const into[DEVICE_FIELDS] = {&device->other, &device->memory,   &device->bandwidth,
                                               &device->clock, &device->slowdown, &device->passes,
                                               &device->host};
    for (uint32_t i = 0; i < DEVICE_FIELDS; i++) {
        if (strcmp(device_fields[i].name, def->name.text) != 0)
            continue;
        if (!etch_machine_say(reader, def->name.text, def->span) ||
            !etch_machine_number(reader, def, &device_fields[i], into[i]))
            return;
        if (into[i] == &device->slowdown)
            check_factor(reader, def, *into[i], "as long a kernel takes while a collective runs beside it");
        else if (into[i] == &device->passes)
            check_factor(reader, def, *into[i], "the memory is gone through to add what was received");
        return;
    }
    etch_machine_unknown(reader, "line of a device", def->name, device_line_at);
}

static void read_fit(etch_machine_reader *reader, const etch_ast_line *line, etch_device *device)
{
    for (uint32_t i = 0; fit_at(i); i++)
        if (i != ETCH_KERNEL_COLLECTIVE && strcmp(fit_at(i), line->what.at[1].text) == 0) {
            etch_machine_fit(reader, line, (etch_kernel_kind)i, &device->fits[i]);
            return;
        }
    etch_machine_unknown(reader, "fit of a device", line->what.at[1], fit_at);
}

static void read_device(etch_spec *spec, const etch_symbol *symbol, etch_device *device)
{
    etch_machine_reader reader = {
        .spec = spec, .space = symbol->home, .what = "device", .name = symbol->item->name};
    device->name = symbol->name;
    for (uint32_t i = 0; i < symbol->item->lines.count; i++) {
        const etch_ast_line *line = &symbol->item->lines.at[i];
        const uint32_t words = line->kind == ETCH_AST_NUMBERS ? line->what.count : 3;
        if (words == 1 && is_word(line, "products"))
            read_products(&reader, line, device);
        else if (words == 1 && is_word(line, "array"))
            read_array(&reader, line, device);
        else if (words == 2 && is_word(line, "fit"))
            read_fit(&reader, line, device);
        else if (words > 0)
            etch_machine_unknown(&reader, "line of a device", line->what.at[0], device_line_at);
        else
            for (uint32_t k = 0; k < line->defs.count; k++)
                read_device_number(&reader, &line->defs.at[k], device);
    }
}

/* ---- clusters ------------------------------------------------------------------------------------------ */

static const char *topology_at(uint32_t index)
{
    return etch_topology_name((etch_topology)index);
}

static const char *truth_at(uint32_t index)
{
    static const char *const names[] = {"false", "true"};
    return index < 2 ? names[index] : NULL;
}

static const char *level_line_at(uint32_t index)
{
    static const char *const lines[] = {"devices",        "use",     "kind",    "bandwidth", "share",
                                        "oversubscribed", "latency", "reduces", "fit"};
    return index < sizeof lines / sizeof *lines ? lines[index] : NULL;
}

static const char *cluster_line_at(uint32_t index)
{
    static const char *const lines[] = {"device", "eager", "level", "stack"};
    return index < sizeof lines / sizeof *lines ? lines[index] : NULL;
}

static void read_sides(etch_machine_reader *reader, const etch_ast_def *def, etch_level *level)
{
    const bool several = def->value->kind == ETCH_AST_TUPLE;
    const uint32_t count = several ? def->value->items.count : 1;
    if (count > ETCH_LEVEL_SIDES) {
        etch_error(reader->spec->diags, ETCH_E_MACHINE_VALUE, def->value->span,
                   "a torus has %d sides at most", (int)ETCH_LEVEL_SIDES);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        etch_ast_def side = *def;
        side.value = several ? def->value->items.at[i] : def->value;
        if (etch_machine_count(reader, &side, &level->sides[i]))
            level->side_count = i + 1;
    }
}

static void read_truth(etch_machine_reader *reader, const etch_ast_def *def, bool *out)
{
    if (def->value->kind == ETCH_AST_TRUTH && !def->unit.text)
        *out = def->value->truth;
    else
        etch_error(reader->spec->diags, ETCH_E_MACHINE_VALUE, def->value->span, "'%s' is %s or %s",
                   def->name.text, truth_at(0), truth_at(1));
}

static void read_oversubscribed(etch_machine_reader *reader, const etch_ast_def *def, etch_level *level)
{
    const etch_machine_field field = {def->name.text, ETCH_OF_NOTHING, false};
    if (etch_machine_number(reader, def, &field, &level->oversubscribed))
        check_factor(reader, def, level->oversubscribed,
                     "what the level carries its devices send, all together");
}

static bool is_level_number(const char *name)
{
    for (uint32_t i = 0; level_line_at(i); i++)
        if (strcmp(level_line_at(i), name) == 0)
            return strcmp(name, "fit") != 0;
    return false;
}

static void read_level_number(etch_machine_reader *reader, const etch_ast_def *def, etch_level *level)
{
    const char *name = def->name.text;
    uint32_t kind = 0;
    if (!is_level_number(name)) {
        etch_machine_unknown(reader, "line of a level", def->name, level_line_at);
        return;
    }
    if (!etch_machine_say(reader, name, def->span))
        return;
    if (strcmp(name, "devices") == 0)
        read_sides(reader, def, level);
    else if (strcmp(name, "use") == 0)
        (void)etch_machine_count(reader, def, &level->use);
    else if (strcmp(name, "share") == 0)
        (void)etch_machine_count(reader, def, &level->share);
    else if (strcmp(name, "oversubscribed") == 0)
        read_oversubscribed(reader, def, level);
    else if (strcmp(name, "reduces") == 0)
        read_truth(reader, def, &level->reduces);
    else if (strcmp(name, "kind") == 0 && etch_machine_word(reader, def, topology_at, &kind))
        level->kind = (etch_topology)kind;
    else if (strcmp(name, "bandwidth") == 0)
        (void)etch_machine_number(reader, def, &(etch_machine_field){name, ETCH_OF_BYTES_A_SECOND, false},
                                  &level->bandwidth);
    else if (strcmp(name, "latency") == 0)
        (void)etch_machine_number(reader, def, &(etch_machine_field){name, ETCH_OF_TIME, true},
                                  &level->latency);
}

static void check_level(etch_machine_reader *reader, const etch_level *level)
{
    etch_machine_lacks(reader, "kind", "write kind = switch, ring, full or torus");
    if (level->side_count > 1 && level->kind != ETCH_TORUS)
        etch_error(reader->spec->diags, ETCH_E_MACHINE_VALUE, reader->name.span,
                   "the level '%s' has several sides, and is no torus", level->name);
    uint64_t devices = level->side_count > 0;
    for (uint32_t i = 0; i < level->side_count && devices < UINT32_MAX; i++)
        devices *= level->sides[i];
    if (level->use > devices && (devices > 0 || !etch_machine_has(reader, "devices")))
        etch_error(reader->spec->diags, ETCH_E_MACHINE_VALUE, reader->name.span,
                   devices > 0
                       ? "the level '%s' has fewer devices than it uses"
                       : "the level '%s' says how many of its devices it uses, and not how many it has",
                   level->name);
    if (level->fit.at[ETCH_FIT_NUMBERS - 1].digits != 0 && !level->reduces)
        etch_error(reader->spec->diags, ETCH_E_MACHINE_VALUE, reader->name.span,
                   "the level '%s' has a fit of a switch that reduces, and says no 'reduces = true'",
                   level->name);
}

static void read_level(etch_machine_reader *outer, const etch_ast_line *part, etch_cluster *cluster)
{
    etch_machine_reader reader = {
        .spec = outer->spec, .space = outer->space, .what = "level", .name = part->what.at[1]};
    etch_level level = {.name = part->what.at[1].text};
    if (!etch_machine_say(outer, etch_text(outer->spec->arena, "level %s", level.name), part->span))
        return;
    for (uint32_t i = 0; i < part->lines.count; i++) {
        const etch_ast_line *line = &part->lines.at[i];
        if (line->what.count == 2 && is_word(line, "fit") &&
            strcmp(line->what.at[1].text, "collectives") == 0)
            etch_machine_fit(&reader, line, ETCH_KERNEL_COLLECTIVE, &level.fit);
        else if (line->what.count > 0)
            etch_machine_unknown(&reader, "line of a level", line->what.at[0], level_line_at);
        else
            for (uint32_t k = 0; k < line->defs.count; k++)
                read_level_number(&reader, &line->defs.at[k], &level);
    }
    check_level(&reader, &level);
    ETCH_PUSH(outer->spec->arena, &cluster->levels, level);
}

static const char *stack_line_at(uint32_t index)
{
    static const char *const lines[] = {"all", "attention", "launch"};
    return index < sizeof lines / sizeof *lines ? lines[index] : NULL;
}

/* Whole picoseconds, up to a second. */
static bool to_picoseconds(etch_decimal seconds, uint64_t *out)
{
    enum { PICO = 12 };
    *out = (uint64_t)seconds.digits;
    for (int32_t power = seconds.power + PICO; power > 0 && *out <= UINT64_C(1000000000000); power--)
        *out *= 10;
    return (*out == 0 || seconds.power >= -PICO) && *out <= UINT64_C(1000000000000);
}

static void read_stack_number(etch_machine_reader *reader, const etch_ast_def *def, etch_stack *stack)
{
    const char *name = def->name.text;
    const bool launch = strcmp(name, "launch") == 0, all = strcmp(name, "all") == 0;
    const etch_machine_field field = {name, launch ? ETCH_OF_TIME : ETCH_OF_NOTHING, launch};
    etch_decimal time;
    if (!launch && !all && strcmp(name, "attention") != 0)
        etch_machine_unknown(reader, "line of a stack", def->name, stack_line_at);
    else if (!etch_machine_say(reader, name, def->span))
        return;
    else if (!launch)
        (void)etch_machine_number(reader, def, &field, all ? &stack->all : &stack->attention);
    else if (etch_machine_number(reader, def, &field, &time) && !to_picoseconds(time, &stack->launch))
        etch_error(reader->spec->diags, ETCH_E_MACHINE_VALUE, def->value->span,
                   "'launch' is no whole number of picoseconds up to a second");
}

static void read_stack(etch_machine_reader *outer, const etch_ast_line *part, etch_cluster *cluster)
{
    etch_machine_reader reader = {
        .spec = outer->spec, .space = outer->space, .what = "stack", .name = part->what.at[1]};
    etch_stack stack = {.name = part->what.at[1].text, .all = {1, 0}, .attention = {1, 0}};
    if (!etch_machine_say(outer, etch_text(outer->spec->arena, "stack %s", stack.name), part->span))
        return;
    for (uint32_t i = 0; i < part->lines.count; i++) {
        const etch_ast_line *line = &part->lines.at[i];
        if (line->what.count > 0)
            etch_machine_unknown(&reader, "line of a stack", line->what.at[0], stack_line_at);
        for (uint32_t k = 0; line->what.count == 0 && k < line->defs.count; k++)
            read_stack_number(&reader, &line->defs.at[k], &stack);
    }
    if (part->lines.count == 0) {
        etch_diag *diag = etch_error(outer->spec->diags, ETCH_E_MACHINE_LACKS, part->span,
                                     "the stack '%s' says nothing", stack.name);
        etch_help(diag, "write how many times as long kernels take: all = 1.1, attention = 1.2");
    }
    ETCH_PUSH(outer->spec->arena, &cluster->stacks, stack);
}

static void read_device_name(etch_machine_reader *reader, const etch_ast_def *def, etch_cluster *cluster)
{
    const bool named = def->value->kind == ETCH_AST_NAME && !def->unit.text;
    const etch_symbol *symbol = named ? etch_namespace_find(reader->space, def->value->name.text) : NULL;
    if (symbol && symbol->kind == ETCH_SYMBOL_DEVICE)
        cluster->device = reader->spec->devices[symbol->id];
    else if (named)
        etch_unknown_name(reader->spec, reader->space, "device", def->value->name, NULL, 0);
    else
        etch_error(reader->spec->diags, ETCH_E_MACHINE_VALUE, def->value->span,
                   "'device' takes the name of one");
}

static void read_cluster_line(etch_machine_reader *reader, const etch_ast_def *def, etch_cluster *cluster)
{
    const bool eager = strcmp(def->name.text, "eager") == 0;
    if (!eager && strcmp(def->name.text, "device") != 0)
        etch_machine_unknown(reader, "line of a cluster", def->name, cluster_line_at);
    else if (!etch_machine_say(reader, def->name.text, def->span))
        return;
    else if (eager)
        read_truth(reader, def, &cluster->eager);
    else
        read_device_name(reader, def, cluster);
}

static void read_cluster(etch_spec *spec, const etch_symbol *symbol, etch_cluster *cluster)
{
    etch_machine_reader reader = {
        .spec = spec, .space = symbol->home, .what = "cluster", .name = symbol->item->name};
    cluster->name = symbol->name;
    for (uint32_t i = 0; i < symbol->item->lines.count; i++) {
        const etch_ast_line *line = &symbol->item->lines.at[i];
        if (line->kind == ETCH_AST_PART && is_word(line, "level"))
            read_level(&reader, line, cluster);
        else if (line->kind == ETCH_AST_PART && is_word(line, "stack"))
            read_stack(&reader, line, cluster);
        else if (line->kind == ETCH_AST_PART || line->what.count > 0)
            etch_machine_unknown(&reader, "line of a cluster", line->what.at[0], cluster_line_at);
        else
            for (uint32_t k = 0; k < line->defs.count; k++)
                read_cluster_line(&reader, &line->defs.at[k], cluster);
    }
    etch_machine_lacks(&reader, "device", "write device = NAME");
}

/* ---- numbers from outside ------------------------------------------------------------------------------ */

static bool is_called(const char *name, const char *part, size_t length)
{
    return strlen(name) == length && strncmp(name, part, length) == 0;
}

static void set_device(etch_machine_reader *reader, const etch_ast_defs *defs, etch_device *device)
{
    reader->what = "device";
    for (uint32_t i = 0; i < defs->count; i++)
        read_device_number(reader, &defs->at[i], device);
}

static void set_part(etch_machine_reader *reader, const etch_ast_defs *defs, etch_level *level,
                     etch_stack *stack)
{
    reader->what = level ? "level" : "stack";
    for (uint32_t i = 0; i < defs->count; i++)
        if (level)
            read_level_number(reader, &defs->at[i], level);
        else
            read_stack_number(reader, &defs->at[i], stack);
}

/* Sets the numbers of what has this name; false: nothing has. */
static bool set_numbers(etch_machine_reader *reader, const etch_ast_defs *defs, const char *part,
                        size_t length, etch_buf *names)
{
    etch_spec *spec = reader->spec;
    bool found = false;
    for (uint32_t i = 0; i < spec->main->symbols.count; i++) {
        const etch_symbol *symbol = spec->main->symbols.at[i];
        etch_cluster *cluster = symbol->kind == ETCH_SYMBOL_CLUSTER ? spec->clusters[symbol->id] : NULL;
        if (symbol->kind == ETCH_SYMBOL_DEVICE) {
            etch_buf_printf(names, "%s%s", names->length ? ", " : "", symbol->name);
            if (is_called(symbol->name, part, length) && (found = true))
                set_device(reader, defs, spec->devices[symbol->id]);
        }
        for (uint32_t k = 0; cluster && k < cluster->levels.count; k++) {
            etch_buf_printf(names, "%s%s", names->length ? ", " : "", cluster->levels.at[k].name);
            if (is_called(cluster->levels.at[k].name, part, length) && (found = true))
                set_part(reader, defs, &cluster->levels.at[k], NULL);
        }
        for (uint32_t k = 0; cluster && k < cluster->stacks.count; k++) {
            etch_buf_printf(names, "%s%s", names->length ? ", " : "", cluster->stacks.at[k].name);
            if (is_called(cluster->stacks.at[k].name, part, length) && (found = true))
                set_part(reader, defs, NULL, &cluster->stacks.at[k]);
        }
    }
    return found;
}

void etch_machines_set(etch_spec *spec, const char *text)
{
    etch_machine_reader reader = {.spec = spec, .space = spec->main};
    etch_ast_defs defs = {0};
    etch_buf names = {.arena = spec->arena};
    while (*text == ' ')
        text++;
    const size_t length = strcspn(text, ".=, ");
    const char *numbers = text[length] == '.' ? text + length + 1 : NULL;
    if (!numbers) {
        etch_diag *diag = etch_error(spec->diags, ETCH_E_MACHINE_LINE, (etch_span){0, 0},
                                     "'%s' sets no number of a machine", text);
        etch_help(diag, "say of which part: nvlink.bandwidth = 900 GB/s");
        return;
    }
    const etch_source *source = etch_source_add(spec->diags, "set", numbers, strlen(numbers));
    reader.name.text = etch_copy_text(spec->arena, text, length);
    if (!source) {
        etch_error(spec->diags, ETCH_E_SOURCES_TOO_LARGE, (etch_span){0, 0},
                   "the numbers that are set and the files of the spec are too large together");
        return;
    }
    if (!etch_ast_parse_numbers(&spec->context, source, &defs) ||
        set_numbers(&reader, &defs, text, length, &names))
        return;
    etch_diag *diag = etch_error(spec->diags, ETCH_E_MACHINE_LINE, (etch_span){0, 0},
                                 "the machine has no device, level or stack '%s'", reader.name.text);
    if (names.length)
        etch_help(diag, "it has %s", names.text);
}

/* ---- all of a spec ------------------------------------------------------------------------------------- */

void etch_machines_read(etch_spec *spec)
{
    spec->devices = ETCH_NEW_ARRAY(spec->arena, spec->symbols.count, etch_device *);
    spec->clusters = ETCH_NEW_ARRAY(spec->arena, spec->symbols.count, etch_cluster *);
    for (uint32_t i = 0; i < spec->symbols.count; i++) {
        if (spec->symbols.at[i]->kind != ETCH_SYMBOL_DEVICE)
            continue;
        spec->devices[i] = ETCH_NEW(spec->arena, etch_device);
        read_device(spec, spec->symbols.at[i], spec->devices[i]);
    }
    for (uint32_t i = 0; i < spec->symbols.count; i++) {
        if (spec->symbols.at[i]->kind != ETCH_SYMBOL_CLUSTER)
            continue;
        spec->clusters[i] = ETCH_NEW(spec->arena, etch_cluster);
        read_cluster(spec, spec->symbols.at[i], spec->clusters[i]);
    }
}

uint32_t etch_spec_devices(const etch_spec *spec, const etch_device *const **devices)
{
    const etch_device **list = ETCH_NEW_ARRAY(spec->arena, spec->main->symbols.count, const etch_device *);
    uint32_t count = 0;
    for (uint32_t i = 0; i < spec->main->symbols.count; i++)
        if (spec->main->symbols.at[i]->kind == ETCH_SYMBOL_DEVICE)
            list[count++] = spec->devices[spec->main->symbols.at[i]->id];
    *devices = list;
    return count;
}

uint32_t etch_spec_clusters(const etch_spec *spec, const etch_cluster *const **clusters)
{
    const etch_cluster **list = ETCH_NEW_ARRAY(spec->arena, spec->main->symbols.count, const etch_cluster *);
    uint32_t count = 0;
    for (uint32_t i = 0; i < spec->main->symbols.count; i++)
        if (spec->main->symbols.at[i]->kind == ETCH_SYMBOL_CLUSTER)
            list[count++] = spec->clusters[spec->main->symbols.at[i]->id];
    *clusters = list;
    return count;
}
