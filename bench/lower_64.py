#!/usr/bin/python3
"""Lowering Llama-3-8B for 64 ranks: at most 0.5 s elapsed; the status is 1 when it is more. Beside it:
copying the files that it writes, the least that any program would have to do."""

import os
import shutil
import sys
import tempfile

import measure

LIMIT = 0.5
BOUND = ["--config", "llama3_8b", "--plan", "megatron_sp", "--set", "dp=8,tp=8,batch=16,micro=2,seq=8192"]


def commands_of(etch, models, out):
    lower = [etch, "lower", f"{models}/llama.etch", *BOUND, *measure.unsynced(etch)]
    return {"dry run": [*lower, "--dry-run"],
            "lower, 1 thread": [*lower, "-o", out, "-j", "1"],
            "lower, 2 threads": [*lower, "-o", out, "-j", "2"],
            "lower": [*lower, "-o", out]}


def main():
    etch, models = measure.program()
    folder = tempfile.mkdtemp(prefix="etch-bench.")
    out, copy, model = f"{folder}/out", f"{folder}/copy", f"{folder}/model"

    def clean():
        shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(copy, ignore_errors=True)

    try:
        measure.once(commands_of(etch, models, model)["lower"], clean)
        size = sum(entry.stat().st_size for entry in os.scandir(model))
        results = measure.compare({"copying the files": ["cp", "-r", model, copy],
                                   **commands_of(etch, models, out)}, rounds=7, before=clean)
    finally:
        shutil.rmtree(folder)
    measure.show(results)
    print(f"{size} bytes, {size / results['lower'][0] / 1e6:.0f} MB/s")
    if results["lower"][0] > LIMIT:
        print(f"lower takes more than {1000 * LIMIT:.0f} ms")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
