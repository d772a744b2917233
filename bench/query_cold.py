#!/usr/bin/python3
"""A query from nothing: process start, parsing, derivation, evaluation. At most 20 ms of process time for the
405B configuration; the status is 1 when it is more."""

import sys

import measure

LIMIT = 0.020
BOUND = ["--config", "llama3_405b", "--set", "dp=64,tp=8,batch=2048,micro=16,seq=8192", "--plan",
         "megatron_sp"]
QUERIES = {"params": "params(model)", "flops": "flops(step)", "traffic": "traffic(step)",
           "comm": "comm(step)"}


def commands_of(etch, models):
    commands = {"etch --version": [etch, "--version"]}
    for label, query in QUERIES.items():
        commands[label] = [etch, "query", f"{models}/llama.etch", query, *BOUND]
        commands[label + ", symbolic"] = [etch, "query", f"{models}/llama.etch", query, "--plan",
                                          "megatron_sp"]
    commands["check"] = [etch, "check", f"{models}/llama.etch"]
    return commands


def main():
    results = measure.compare({"nothing (/bin/true)": ["/bin/true"], **commands_of(*measure.program())},
                              rounds=20)
    measure.show(results)
    slow = [label for label in QUERIES if results[label][1] > LIMIT]
    for label in slow:
        print(f"{label} takes more than {1000 * LIMIT:.0f} ms")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
