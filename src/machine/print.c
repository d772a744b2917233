/* Machines as text, which reads back as the same. */
#include "machine/machine.h"

void etch_fitted_print(etch_buf *out, etch_kernel_kind kind, const etch_fitted *fitted)
{
    const etch_fit_row *row = etch_fit_row_of(kind);
    etch_buf_printf(out, "fit %s ", row->name);
    for (uint32_t i = 0; i < ETCH_FIT_NUMBERS && row->numbers[i].name; i++) {
        if (fitted->at[i].digits == 0 && row->numbers[i].dimension == ETCH_OF_NOTHING)
            continue; /* a number that this machine does not have */
        etch_buf_printf(out, "%s%s = ", i ? ", " : "", row->numbers[i].name);
        etch_decimal_print(out, fitted->at[i], row->numbers[i].dimension);
    }
}

/* `name` begins with the blanks before it. */
static void print_line(etch_buf *out, const char *name, etch_decimal value, etch_dimension dimension)
{
    if (value.digits == 0)
        return;
    etch_buf_printf(out, "%s = ", name);
    etch_decimal_print(out, value, dimension);
    etch_buf_puts(out, "\n");
}

void etch_device_print(etch_buf *out, const etch_device *device)
{
    etch_buf_printf(out, "device %s {\n", device->name);
    for (uint32_t i = 0; i < device->peaks.count; i++) {
        etch_buf_printf(out, "%s%s = ", i ? ", " : "  products ", device->peaks.at[i].dtype);
        etch_decimal_print(out, device->peaks.at[i].rate, ETCH_OF_FLOP_A_SECOND);
    }
    etch_buf_puts(out, device->peaks.count ? "\n" : "");
    print_line(out, "  other", device->other, ETCH_OF_FLOP_A_SECOND);
    print_line(out, "  memory", device->memory, ETCH_OF_BYTES);
    print_line(out, "  bandwidth", device->bandwidth, ETCH_OF_BYTES_A_SECOND);
    print_line(out, "  host", device->host, ETCH_OF_BYTES_A_SECOND);
    print_line(out, "  slowdown", device->slowdown, ETCH_OF_NOTHING);
    print_line(out, "  passes", device->passes, ETCH_OF_NOTHING);
    if (device->rows)
        etch_buf_printf(out, "  array rows = %u, columns = %u, dataflow = %s\n", device->rows,
                        device->columns, etch_dataflow_name(device->dataflow));
    print_line(out, "  clock", device->clock, ETCH_OF_FREQUENCY);
    for (int kind = 0; kind < ETCH_KERNEL_KINDS; kind++) {
        if (!device->fits[kind].given)
            continue;
        etch_buf_puts(out, "  ");
        etch_fitted_print(out, (etch_kernel_kind)kind, &device->fits[kind]);
        etch_buf_puts(out, "\n");
    }
    etch_buf_puts(out, "}\n");
}

static void print_sides(etch_buf *out, const etch_level *level)
{
    if (level->side_count == 0)
        return;
    etch_buf_puts(out, level->side_count > 1 ? "    devices = (" : "    devices = ");
    for (uint32_t i = 0; i < level->side_count; i++)
        etch_buf_printf(out, "%s%u", i ? ", " : "", level->sides[i]);
    etch_buf_puts(out, level->side_count > 1 ? ")\n" : "\n");
}

static void print_level(etch_buf *out, const etch_level *level)
{
    etch_buf_printf(out, "  level %s {\n", level->name);
    print_sides(out, level);
    if (level->use)
        etch_buf_printf(out, "    use = %u\n", level->use);
    etch_buf_printf(out, "    kind = %s\n", etch_topology_name(level->kind));
    print_line(out, "    bandwidth", level->bandwidth, ETCH_OF_BYTES_A_SECOND);
    if (level->share)
        etch_buf_printf(out, "    share = %u\n", level->share);
    print_line(out, "    oversubscribed", level->oversubscribed, ETCH_OF_NOTHING);
    print_line(out, "    latency", level->latency, ETCH_OF_TIME);
    etch_buf_printf(out, "    reduces = %s\n", level->reduces ? "true" : "false");
    if (level->fit.given) {
        etch_buf_puts(out, "    ");
        etch_fitted_print(out, ETCH_KERNEL_COLLECTIVE, &level->fit);
        etch_buf_puts(out, "\n");
    }
    etch_buf_puts(out, "  }\n");
}

static void print_stack(etch_buf *out, const etch_stack *stack)
{
    etch_buf_printf(out, "  stack %s {\n", stack->name);
    print_line(out, "    all", stack->all, ETCH_OF_NOTHING);
    print_line(out, "    attention", stack->attention, ETCH_OF_NOTHING);
    print_line(out, "    launch", etch_decimal_of((int64_t)stack->launch, -12), ETCH_OF_TIME);
    etch_buf_puts(out, "  }\n");
}

void etch_stack_print_line(etch_buf *out, const etch_stack *stack)
{
    etch_buf_printf(out, "stack %s { all = ", stack->name);
    etch_decimal_print(out, stack->all, ETCH_OF_NOTHING);
    etch_buf_puts(out, ", attention = ");
    etch_decimal_print(out, stack->attention, ETCH_OF_NOTHING);
    if (stack->launch > 0) {
        etch_buf_puts(out, ", launch = ");
        etch_decimal_print(out, etch_decimal_of((int64_t)stack->launch, -12), ETCH_OF_TIME);
    }
    etch_buf_puts(out, " }");
}

void etch_cluster_print(etch_buf *out, const etch_cluster *cluster)
{
    etch_buf_printf(out, "cluster %s {\n  device = %s\n%s", cluster->name, cluster->device->name,
                    cluster->eager ? "  eager = true\n" : "");
    for (uint32_t i = 0; i < cluster->levels.count; i++)
        print_level(out, &cluster->levels.at[i]);
    for (uint32_t i = 0; i < cluster->stacks.count; i++)
        print_stack(out, &cluster->stacks.at[i]);
    etch_buf_puts(out, "}\n");
}
