"""A schedule that is added as CONTRIBUTING.md says, one file and one line of the table, runs through the
program: it is listed, drawn, counted, lowered and verified."""

import json
import os
import pathlib
import subprocess
import sys

ETCH = sys.argv[1]
MODELS = pathlib.Path(os.environ["ETCH_SOURCE_DIR"]) / "models"
SPEC = f"""etch 1
import "{MODELS / "llama.etch"}"
parallel pipe {{
  mesh  [pp, dp, tp]
  shard B @ dp, K @ tp, F @ tp, V @ tp
  zero 1 @ dp
  stage (embed, layer, head) @ pp, schedule = SCHEDULE
}}
"""
SETS = "layers=10,hidden=32,heads=8,kv_heads=4,head_dim=4,ffn=24,vocab=36,batch=20,seq=16,micro=5,dp=2,tp=2"


def etch(*arguments, status=0):
    done = subprocess.run([ETCH, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == status, (arguments, done.stdout, done.stderr)
    return done.stdout or done.stderr


def spec_of(schedule):
    path = pathlib.Path(f"{schedule}.etch")
    path.write_text(SPEC.replace("SCHEDULE", schedule), encoding="utf-8")
    return path


def order(slots):
    marks = {"forward": "", "backward": "'"}
    return " ".join(f"{slot['microbatch']}{marks[slot['direction']]}" for slot in slots)


def main():
    spec = spec_of("two_groups")
    assert "two_groups" in etch("check", spec_of("three_groups"), status=1)
    for stages in (2, 3):
        sets = f"{SETS},pp={stages}"
        report = json.loads(etch("show", spec, "--pipeline", "--plan", "pipe", "--set", sets, "--format",
                                 "json"))
        # groups of 3 and 2: each fills and drains the stages
        assert report["schedule"] == "two_groups"
        assert report["time"] == 3 * 5 + 2 * 3 * (stages - 1)
        for stage in report["stages"]:
            assert order(stage["slots"]) == "0 1 2 0' 1' 2' 3 4 3' 4'"
            assert stage["in_flight"] == 3
        assert "schedule  two_groups" in etch("show", spec, "--pipeline", "--plan", "pipe", "--set", sets)
        folder = f"out{stages}"
        etch("lower", spec, "--plan", "pipe", "--set", sets, "-o", folder, "-q")
        told = json.loads(etch("verify", folder, "--format", "json"))
        assert (told["eager"], told["rendezvous"], told["verdict"]) == ("always",) * 3, told


main()
