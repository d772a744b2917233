"""Machines for random steps."""

from fractions import Fraction

import plain


def random_machine(chance):
    """A plain machine, and its spec. Inner levels need not divide the mesh."""
    levels, held = [], 1
    while chance.random() < 0.6 and len(levels) < 2:
        devices = chance.choice((2, 3, 4, 6, 8))
        held *= devices
        levels.append((devices, chance.randint(1, 900) * 10**9, Fraction(chance.randint(0, 9), 10**6)))
    levels.append((None, chance.randint(1, 99) * 10**8, Fraction(chance.randint(0, 50), 10**6)))
    machine = plain.Machine(chance.randint(1, 999) * 10**12, chance.randint(1, 30) * 10**11, levels)
    if chance.random() < 0.5:
        machine = machine._replace(all=Fraction(chance.randint(500, 2000), 1000),
                                   attention=Fraction(chance.randint(500, 2000), 1000),
                                   launch=chance.choice((0, chance.randint(1, 9 * 10**6))))
    passes = chance.randint(10, 40)
    if chance.random() < 0.5:
        machine = machine._replace(passes=Fraction(passes, 10))
    adds = f", passes = {float(machine.passes)}" if machine.passes else ""
    peak = f"{machine.peak // 10**12} TFLOP/s"
    text = ["etch 1", "device any {", f"  products bf16 = {peak}, f32 = {peak}",
            f"  bandwidth = {machine.bandwidth // 10**9} GB/s{adds}", "}", "cluster all {", "  device = any"]
    for i, (devices, bandwidth, latency) in enumerate(levels):
        count = f"devices = {devices}, " if devices else ""
        text.append(f"  level l{i} {{ {count}kind = switch, bandwidth = {bandwidth // 10**6} MB/s, "
                    f"latency = {int(latency * 10**6)} us }}")
    text.append(f"  stack any {{ all = {float(machine.all)}, attention = {float(machine.attention)}, "
                f"launch = {machine.launch} ps }}")
    return machine, "\n".join([*text, "}", ""])


def slowed(machine, text, slowdown):
    """The same machine, whose kernels are slower beside collectives."""
    line = f"slowdown = {float(slowdown)}, bandwidth"
    return machine._replace(slowdown=slowdown), text.replace("bandwidth", line, 1)


def eagerly(machine, text):
    """The same machine, where sends wait for nobody."""
    return machine._replace(eager=True), text.replace("  device = any", "  device = any, eager = true", 1)
