"""Every shipped machine reads without a word; SCALE-Sim's cycles are those of arrays of its own tests; every
row of the data names its source and licence; machines are found by name."""

import json
import os
import pathlib
import re
import subprocess
import sys

import oracle

SOURCE = pathlib.Path(os.environ["ETCH_SOURCE_DIR"])
ETCH = os.environ["ETCH"]
FOLDER = SOURCE / "machines"
LICENCES = {"Apache-2.0", "BSD-3-Clause", "MIT"}

# scalesim-project/SCALE-Sim 1d62b68, test/general/golden_trace_*: compute cycles without stalls, of 32x32
# arrays. Cited figures.
GOLDEN = [("output", 256, 128, 256, 10175), ("weight", 256, 128, 256, 11199), ("input", 256, 128, 256, 14207),
          ("weight", 3025, 96, 363, 112283)]


def run(*command):
    return subprocess.run([ETCH, *map(str, command)], capture_output=True, text=True)


def check_machines():
    paths = sorted(FOLDER.glob("*.etch"))
    assert len(paths) == 22, f"{len(paths)} machines are shipped"
    for path in paths:
        done = run("check", path)
        assert done.returncode == 0 and not done.stderr, done.stderr
        machine = oracle.Machine(path)
        assert machine.name == path.stem, path


def check_golden():
    for dataflow, m, n, k, cycles in GOLDEN:
        spec, table = pathlib.Path("array.etch"), pathlib.Path("table.csv")
        spec.write_text(f"etch 1\ndevice a {{ array rows = 32, columns = 32, dataflow = {dataflow}\n"
                        f"  clock = 1 GHz; fit systolic overhead = 0 us, reach = 1 }}\n", encoding="utf-8")
        table.write_text(f"m,n,k,us\n{m},{n},{k},{cycles / 1000}\n", encoding="utf-8")
        done = run("fit", table, "--machine", spec, "--check", "--format", "json")
        assert done.returncode == 0, done.stderr
        row = json.loads(done.stdout)["rows"][0]
        assert row["cycles"] == cycles, (dataflow, row)
        assert oracle.cycles((32, 32, dataflow), m, n, k) == cycles


def check_sources():
    for path in sorted((FOLDER / "data").glob("*.tsv")):
        for row in oracle.table(path):
            assert row["licence"] in LICENCES and "/" in row["source"], (path, row)


def check_names():
    """A machine is found by its name in a folder of ETCH_PATH, with and without the end of its file."""
    environment = {**os.environ, "ETCH_PATH": str(FOLDER)}
    for name in ("tpu_v4", "tpu_v4.etch"):
        done = subprocess.run([ETCH, "fit", str(FOLDER / "data" / "systolic.tsv"), "--machine", name],
                              capture_output=True, text=True, env=environment)
        assert done.returncode == 0 and done.stdout.startswith("fit systolic "), done.stderr


def check_limits():
    """A torus of six sides, a number of 18 decimals, a table of 64 columns; and one more of each."""
    for sides, places, columns, codes in ((6, 18, 64, []), (7, 18, 64, ["E0272"]), (6, 19, 64, ["E0272"]),
                                          (6, 18, 65, ["E0275"])):
        spec, table = pathlib.Path("limits.etch"), pathlib.Path("limits.csv")
        spec.write_text(f"""etch 1
device a {{
  products bf16 = 1 TFLOP/s; bandwidth = 1 GB/s
  fit products overhead = 0 us, reach = 0.{"1" * places}, memory = 1, norm = 1
}}
cluster b {{ device = a; level c {{ kind = torus, devices = ({", ".join(["2"] * sides)}) }} }}
""", encoding="utf-8")
        more = [f"c{i}" for i in range(columns - 4)]
        table.write_text(",".join(["m", "n", "k", "us", *more]) + "\n" + ",".join(["1"] * columns) + "\n",
                         encoding="utf-8")
        done = run("fit", table, "--machine", spec, "--check")
        assert re.findall(r"error\[(E\d+)\]", done.stderr) == codes, done.stderr
        assert done.returncode == bool(codes)


def main():
    check_limits()
    check_machines()
    check_golden()
    check_sources()
    check_names()
    return 0


if __name__ == "__main__":
    sys.exit(main())
