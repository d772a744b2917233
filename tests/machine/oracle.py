"""The formulas of docs/time.md once more, from the tables and the text of machines, without etch."""

import csv
import decimal
import pathlib
import re

decimal.getcontext().prec = 25
D = decimal.Decimal
UNITS = {"us": D("1e-6"), "ns": D("1e-9"), "GB": D("1e9"), "GB/s": D("1e9"), "TFLOP/s": D("1e12"),
         "GHz": D("1e9"), "": D(1)}
SIZE = {"bf16": 2, "f16": 2, "f8": 1, "f32": 4}
OPERATION = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 1}
REDUCED_FROM, REDUCED_RANKS = 64 * 2**20, 4


def number(text):
    """"7*64 GB/s" in units of the SI."""
    value, unit = re.fullmatch(r"([\d.*]+)\s*([A-Za-z/]*)", text.strip()).groups()
    result = UNITS[unit]
    for factor in value.split("*"):
        result *= D(factor)
    return result


def numbers(text):
    return {name: number(value) for name, value in re.findall(r"(\w+) = ([\d.*]+(?: [A-Za-z/]+)?)", text)}


class Machine:
    def __init__(self, path):
        text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
        text = re.sub(r",\s*\n\s*", ", ", text)
        device, _, cluster = text.partition("cluster ")
        self.name = re.search(r"device (\w+) \{", device)[1]
        self.fits = {kind: numbers(rest) for kind, rest in re.findall(r"fit (\w+) (.*)", text)}
        self.lines = [line.strip() for line in text.splitlines() if line.strip().startswith("fit ")]
        peaks = re.search(r"products (.*)", device)
        self.peaks = numbers(peaks[1]) if peaks else {}
        bandwidth = re.search(r"bandwidth = ([\d.*]+ \S+)", device)
        self.bandwidth = number(bandwidth[1]) if bandwidth else None
        clock = re.search(r"clock = (\S+ \S+)", device)
        self.clock = number(clock[1]) if clock else None
        array = re.search(r"array rows = (\d+), columns = (\d+), dataflow = (\w+)", device)
        self.array = (int(array[1]), int(array[2]), array[3]) if array else None
        link = re.search(r"bandwidth = ([\d.*]+ [A-Za-z/]+)", cluster)
        self.link = number(link[1]) if link else None
        self.reduces = "reduces = true" in cluster


def norm(a, b, p):
    large, small = max(a, b), min(a, b)
    return large * (1 + (small / large) ** p) ** (1 / p)


def products(machine, row, fit):
    m, n, k = (int(row[c]) for c in "mnk")
    groups = int(row.get("groups") or 1)
    size = SIZE[row["dtype"]]
    result = SIZE[row["result"]] if row.get("result") else max(size, 2)
    of_weights = row.get("gives") == "weights"
    moved = size * m * k + groups * k * n * (result if of_weights else size) + \
        m * n * (size if of_weights else result)
    work = 2 * m * n * k / (machine.peaks[row["dtype"]] * fit["reach"])
    return fit["overhead"] + norm(work, moved / (machine.bandwidth * fit["memory"]), fit["norm"])


def attention(machine, row, fit):
    batch, q, s, heads, kv_heads, dim, value = (
        int(row[c]) for c in "batch queries keys heads kv_heads head_dim value_dim".split())
    pairs = sum(s - q + i + 1 for i in range(q)) if row["pairs"] == "causal" else q * s
    backward = row["phase"] == "backward"
    flop = D(2 * batch * heads * (dim + value) * pairs) * (D("2.5") * 1 if backward else 1)
    rate = machine.peaks[row["dtype"]] * fit["reach"] * (fit["backward"] if backward else 1)
    moved = 2 * batch * (dim + value) * (q * heads + s * kv_heads) * (2 if backward else 1)
    return fit["overhead"] + max(flop * (1 + fit["ramp"] / s) / rate, moved / machine.bandwidth)


def elementwise(machine, row, fit):
    return fit["overhead"] + int(row["bytes"]) / (machine.bandwidth * fit["memory"])


def collectives(machine, row, fit):
    n, size, times = int(row["ranks"]), int(row["bytes"]), OPERATION[row["op"]]
    steps = times * (n - 1)
    wire = D(size * steps) / n
    plain = norm(fit["start"] + fit["step"] * steps, wire / (machine.link * fit["reach"]), fit["norm"])
    if machine.reduces and row["op"] == "all_reduce" and size >= REDUCED_FROM and n >= REDUCED_RANKS:
        through = norm(fit["start"] + fit["step"] * 2, D(size) / (machine.link * fit["reduce"]), fit["norm"])
        return min(plain, through)
    return plain


def cycles(array, m, n, k):
    rows, columns, dataflow = array
    weight = (2 * rows + columns + m - 2) * -(-k // rows) * -(-n // columns)
    inputs = (2 * rows + columns + n - 2) * -(-k // rows) * -(-m // columns)
    outputs = (rows + columns + k - 2) * -(-m // rows) * -(-n // columns)
    return {"weight": weight, "input": inputs, "output": outputs, "either": min(weight, inputs)}[dataflow] - 1


def systolic(machine, row, fit):
    count = cycles(machine.array, *(int(row[c]) for c in "mnk"))
    return fit["overhead"] + count / (machine.clock * fit["reach"])


# By table: the word of its `fit` line, the formula, and which rows are large enough to be fitted.
TABLES = {
    "gemm": ("products", products, lambda r: min(int(r[c]) for c in "mnk") >= 128),
    "moe": ("grouped", products, lambda r: int(r["m"]) >= 128 * int(r["groups"])),
    "attention": ("attention", attention,
                  lambda r: r["phase"] == "forward" and int(r["queries"]) > 1 and int(r["keys"]) >= 1024),
    "elementwise": ("elementwise", elementwise, lambda r: True),
    "collectives": ("collectives", collectives, lambda r: True),
    "systolic": ("systolic", systolic, lambda r: True),
}


def table(path):
    """Rows with their line in the file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    at = [i for i, line in enumerate(lines, 1) if line and not line.startswith("#")]
    names = lines[at[0] - 1].split("\t")
    rows = csv.reader((lines[i - 1] for i in at[1:]), delimiter="\t", quoting=csv.QUOTE_NONE)
    return [dict(zip(names, row), line=i) for i, row in zip(at[1:], rows)]


def parts(rows, large):
    """Line by line: every third row of the commonest dtype that is large enough is kept out."""
    dtypes = [row.get("dtype", "bf16") for row in rows if row["split"] == "calibration"]
    common = max(dict.fromkeys(dtypes), key=dtypes.count) if dtypes else None
    found, count = {}, 0
    for row in rows:
        if row["split"] != "calibration":
            found[row["line"]] = "given"
        elif row.get("dtype", "bf16") != common or not large(row):
            found[row["line"]] = "aside"
        else:
            count += 1
            found[row["line"]] = "used" if count % 3 else "kept out"
    return found


def quantile(errors, tenths):
    return sorted(errors)[-(-tenths * len(errors) // 10) - 1]


def machines(folder):
    return [Machine(path) for path in sorted(pathlib.Path(folder).glob("*.etch"))]
