"""Machines for random steps."""

import random
from fractions import Fraction

import plain


def shared(levels):
    """Some of the levels with a port for several devices, with less than all of these send, and with devices
    that do not run the step: what is left of each, and what a spec says of it."""
    chance, found, lines = random.Random(str(levels)), [], []
    for devices, bandwidth, latency in levels:
        words = [f"bandwidth = {bandwidth // 10**6} MB/s"]
        if chance.random() < 0.3:
            share, over = chance.randint(1, 8), Fraction(chance.randint(10, 40), 10)
            words.append(f"share = {share}, oversubscribed = {float(over)}")
            bandwidth /= share * over
        spare = chance.randint(1, 3) if chance.random() < 0.2 else 0
        if devices:
            words.append(f"devices = {devices + spare}" + (f", use = {devices}" if spare else ""))
        found.append((devices, bandwidth, latency))
        lines.append(", ".join(words))
    return found, lines


def random_machine(chance):
    """A plain machine, and its spec. Inner levels need not divide the mesh."""
    levels, held = [], 1
    while chance.random() < 0.6 and len(levels) < 2:
        devices = chance.choice((2, 3, 4, 6, 8))
        held *= devices
        levels.append((devices, chance.randint(1, 900) * 10**9, Fraction(chance.randint(0, 9), 10**6)))
    levels.append((None, chance.randint(1, 99) * 10**8, Fraction(chance.randint(0, 50), 10**6)))
    levels, lines = shared(levels)
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
    for i, (_, _, latency) in enumerate(levels):
        text.append(f"  level l{i} {{ {lines[i]}, kind = switch, latency = {int(latency * 10**6)} us }}")
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
