#!/usr/bin/python3
"""Lowering Llama-3-405B for 16,384 ranks, 16 stages, and writing the traces of four of them: at most 2 s of
process time; the status is 1 when it is more. Beside it, as a ratio: packing the same four traces again with
Google's protobuf runtime, the way the field's generators write them."""

import os
import pathlib
import shutil
import sys
import tempfile
import time

import measure

LIMIT = 2.0
RANKS = (0, 1, 8191, 16383)
BOUND = ["--config", "llama3_405b", "--plan", "long_context_pp", "--set",
         "dp=8,tp=8,cp=16,pp=16,seq=131072,batch=128,micro=16", "--ranks", ",".join(map(str, RANKS))]

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "oracle"))
import trace  # noqa: E402


def packing(folder):
    """Process seconds for packing all nodes of the folder anew; it must give the same bytes."""
    spent = 0
    for path in sorted(pathlib.Path(folder).glob("*.et")):
        raw = list(trace.frames(path.read_bytes()))[1:]
        nodes = [trace.NodeMessage.FromString(message) for message in raw]
        copies = [trace.NodeMessage() for _ in nodes]
        for node, copy in zip(nodes, copies):
            copy.CopyFrom(node)
        start = time.process_time()
        packed = [copy.SerializeToString(deterministic=True) for copy in copies]
        spent += time.process_time() - start
        if packed != raw:
            sys.exit(f"{path.name} is not what the runtime packs")
    return spent


def commands_of(etch, models, out):
    lower = [etch, "lower", f"{models}/llama.etch", *BOUND, "-q", *measure.unsynced(etch)]
    return {"dry run": [*lower, "--dry-run"],
            "lower, 1 thread": [*lower, "-o", out, "-j", "1"],
            "lower": [*lower, "-o", out]}


def main():
    etch, models = measure.program()
    folder = tempfile.mkdtemp(prefix="etch-bench.")
    out = f"{folder}/out"

    def clean():
        shutil.rmtree(out, ignore_errors=True)

    try:
        results = measure.compare(commands_of(etch, models, out), rounds=7, before=clean)
        baseline = min(packing(out) for _ in range(3))
        size = sum(entry.stat().st_size for entry in os.scandir(out))
    finally:
        shutil.rmtree(folder)
    measure.show(results)
    used = results["lower"][1]
    print(f"{size} bytes; {used / LIMIT:.3f} of the limit, {used / baseline:.2f} times packing their nodes "
          f"with protobuf")
    if used > LIMIT:
        print(f"lower takes more than {LIMIT} s")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
