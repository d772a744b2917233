"""Traces in bulk: traces of equal bytes as one file with several names (`--link`), collectives along whole
dimensions of the network, which need no group (`--groups`), and the memory that many ranks and long programs
take."""

import collections
import json
import os
import re
import resource
import subprocess
import sys

from etchtest import ETCH, GPT, LLAMA, Case, lower, main, options, run, snapshot, succeed, trace

SIZES = dict(layers=2, hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=56, vocab=48, batch=16, seq=16,
             micro=2)
ALIKE = {**SIZES, "dp": 8, "tp": 1}  # one group of all ranks: all traces are equal
PAIRS = {**SIZES, "dp": 2, "tp": 4}  # each rank is in groups of its own


def files_by_inode(folder):
    found = collections.defaultdict(set)
    for path in folder.glob("*.et"):
        found[path.stat().st_ino].add(path.name)
    return {frozenset(names) for names in found.values()}


def files_by_bytes(folder):
    found = collections.defaultdict(set)
    for path in folder.glob("*.et"):
        found[path.read_bytes()].add(path.name)
    return {frozenset(names) for names in found.values()}


class Links(Case):
    def test_equal_bytes_are_one_file(self):
        for sets in (ALIKE, PAIRS):
            plain = lower(self.scratch / "plain", LLAMA, plan="megatron_sp", sets=sets)
            for threads in (1, 3):
                linked = lower(self.scratch / "linked", LLAMA, plan="megatron_sp", sets=sets,
                               more=["--link", "-j", threads])
                self.assertEqual(snapshot(plain), snapshot(linked))
                self.assertEqual(files_by_bytes(linked), files_by_inode(linked))
        self.assertEqual(1, len(files_by_inode(lower(self.scratch / "linked", LLAMA, plan="megatron_sp",
                                                     sets=ALIKE, more=["--link"]))))

    def test_what_is_told(self):
        words = ("lower", LLAMA, "--plan", "megatron_sp", "--set",
                 ",".join(f"{name}={size}" for name, size in ALIKE.items()), "--link", "--format", "json")
        told = json.loads(succeed(*words, "-o", self.scratch / "out").out)
        self.assertEqual((8, 7), (told["ranks_written"], told["links"]))
        self.assertEqual(told["bytes"], sum(map(len, snapshot(self.scratch / "out").values())))
        dry = json.loads(succeed(*words, "--dry-run").out)
        self.assertEqual({**told, "written": None}, dry)
        some = json.loads(succeed(*words, "--dry-run", "--ranks", "2,5-7").out)
        self.assertEqual((4, 3), (some["ranks_written"], some["links"]))

    def test_verified_like_others(self):
        folder = lower(self.scratch / "out", LLAMA, plan="megatron_sp", sets=ALIKE, more=["--link"])
        told = json.loads(succeed("verify", folder, "--format", "json").out)
        self.assertEqual(("always", 8), (told["verdict"], told["ranks"]))

    def test_names_of_others_keep_their_bytes(self):
        """A later run puts new files in the place of names: whoever holds a link to an old one keeps it."""
        folder = lower(self.scratch / "out", LLAMA, plan="megatron_sp", sets=ALIKE, more=["--link"])
        kept = self.scratch / "kept.et"
        os.link(folder / "llama.3.et", kept)
        before = kept.read_bytes()
        (folder / "notes.txt").write_text("mine", encoding="utf-8")
        refused = run("lower", LLAMA, "--plan", "megatron_sp", "-o", folder, "--set",
                      ",".join(f"{name}={size}" for name, size in {**ALIKE, "layers": 3}.items()))
        self.assertEqual(1, refused.status, refused)
        for more in (["--link", "--force"], ["--force"]):
            lower(folder, LLAMA, plan="megatron_sp", sets={**ALIKE, "layers": 3}, more=more)
            self.assertEqual(before, kept.read_bytes())
            self.assertEqual("mine", (folder / "notes.txt").read_text(encoding="utf-8"))
            self.assertNotEqual(before, (folder / "llama.3.et").read_bytes())
            self.assertEqual(1 if "--link" in more else 8, len(files_by_inode(folder)))


MIXTRAL = LLAMA.with_name("mixtral.etch")
EXPERTS = dict(layers=2, hidden=32, heads=8, kv_heads=4, head_dim=4, expert_ffn=56, vocab=48, batch=16,
               seq=16, micro=2, experts=8, topk=2)


def sizes_of(folder):
    """Ranks along each dimension, innermost first, as ASTRA-sim is told."""
    text = (folder / "network.yml").read_text(encoding="utf-8")
    return [int(size) for size in re.search(r"npus_count: \[(.*)\]", text)[1].split(",")]


def members(rank, sizes, involved):
    """Who meets in a collective of `rank`: whoever has its place in every dimension that is not involved."""
    def places(of):
        found = []
        for size in sizes:
            found.append(of % size)
            of //= size
        return [place for place, inside in zip(found, involved) if not inside]

    ranks = 1
    for size in sizes:
        ranks *= size
    return [other for other in range(ranks) if places(other) == places(rank)]


def collectives_of(folder, rank):
    """(type, size, members, number among those of no group) of each collective, in the order of issue, read
    with the official runtime; every message in canonical form."""
    groups = json.loads((folder / "comm_group.json").read_text(encoding="utf-8"))
    sizes, found, unnumbered = sizes_of(folder), [], 0
    raws = iter(trace.frames((folder / f"llama.{rank}.et").read_bytes()))
    next(raws)
    for raw in raws:
        parsed = trace.canonical(trace.NodeMessage, raw)
        if parsed.type != trace.COLL:
            continue
        values = {attribute.name: getattr(attribute, attribute.WhichOneof("value"))
                  for attribute in parsed.attr}
        number = None
        if "involved_dim" in values:
            involved = list(values["involved_dim"].values)
            assert len(involved) == len(sizes) and "pg_name" not in values
            ranks, number = members(rank, sizes, involved), unnumbered
            unnumbered += 1
        else:
            ranks = groups[values["pg_name"]]
        found.append((values["comm_type"], values["comm_size"], sorted(ranks), number))
    return found


class Dimensions(Case):
    def both(self, spec, plan, sets, *more):
        return [lower(self.scratch / form, spec, plan=plan, sets=sets,
                      more=["--name", "llama", "--astra-sim", "-q", "--groups", form, *more])
                for form in ("file", "dims")]

    def hold(self, spec, plan, sets, left):
        """Both forms say the same of every collective; `left` groups are in the file. Those of no group have
        the same number in all their members, as ASTRA-sim counts."""
        file, dims = self.both(spec, plan, sets)
        ranks = len(list(dims.glob("*.et")))
        seen = [collectives_of(dims, rank) for rank in range(ranks)]
        for rank in range(ranks):
            self.assertEqual([row[:3] for row in collectives_of(file, rank)], [row[:3] for row in seen[rank]])
        for rank, rows in enumerate(seen):
            for kind, size, who, number in rows:
                for other in who if number is not None else ():
                    self.assertIn((kind, size, who, number), seen[other], (rank, other))
        self.assertEqual(left, len(json.loads((dims / "comm_group.json").read_text(encoding="utf-8"))))
        self.assertTrue(any(row[3] is not None for rows in seen for row in rows))
        for folder in (file, dims):
            told = json.loads(succeed("verify", folder, "--format", "json").out)
            self.assertEqual(("always", ranks), (told["verdict"], told["ranks"]))
        return file, dims

    def test_same_collectives(self):
        self.hold(LLAMA, "megatron_sp", {**SIZES, "dp": 4, "tp": 2}, 1)  # that of all ranks keeps its number
        self.hold(LLAMA, "megatron_pp", {**SIZES, "layers": 4, "pp": 2, "dp": 2, "tp": 4}, 0)
        self.hold(MIXTRAL, "moe_ep", {**EXPERTS, "dp": 4, "ep": 2, "tp": 2}, 1)

    def test_simulated_alike(self):
        """`etch simulate DIR` knows who takes part in either form."""
        sets = {**SIZES, "layers": 4, "pp": 2, "dp": 2, "tp": 4}
        times = [json.loads(succeed("simulate", folder, "--machine", "h100_sxm", "--format", "json").out)
                 for folder in self.both(LLAMA, "megatron_pp", sets)]
        self.assertEqual(times[0]["step_ps"], times[1]["step_ps"])

    def test_chosen_where_numbers_end(self):
        words = ("lower", LLAMA, "--plan", "megatron_sp", "--dry-run", "--format", "json", "--set")

        def ask(dp, *more):
            sets = {**SIZES, "layers": 1, "batch": 2 * dp, "dp": dp, "tp": 2}
            done = succeed(*words, ",".join(f"{name}={size}" for name, size in sets.items()), *more)
            told = json.loads(done.out)
            return told["groups"], told.get("groups_along", 0), "E0711" in done.err

        self.assertEqual((2147, 0, False), ask(2144))
        self.assertEqual((2148, 0, True), ask(2145, "--groups", "file"))
        self.assertEqual((1, 2147, False), ask(2145))
        self.assertEqual((1, 2146, False), ask(2144, "--groups", "dims"))
        # the shared embedding of the first stage and the last has a group for each rank of a stage
        shared = succeed("lower", GPT, "--config", "gpt2", "--plan", "megatron_pp", "--dry-run", "--set",
                         "pp=2,dp=2148,tp=1,batch=2148,micro=1,seq=8")
        self.assertIn("2148 are over pp, and keep numbers", shared.err)
        refused = run(*words, "dp=2,tp=2", "--groups", "none")
        self.assertEqual((2, True), (refused.status, "auto, file, dims" in refused.err))

    def test_equal_bytes(self):
        """Without numbers of groups, ranks of a class that send nothing have equal traces."""
        file, dims = self.both(LLAMA, "megatron_sp", {**SIZES, "dp": 4, "tp": 2}, "--link")
        self.assertEqual((8, 1), (len(files_by_inode(file)), len(files_by_inode(dims))))

    def test_a_network_of_one_dimension(self):
        file, dims = self.both(LLAMA, "megatron_sp", {**SIZES, "dp": 4, "tp": 2})
        gone = set(snapshot(file)) - set(snapshot(dims))
        self.assertEqual({"network-1d.yml", "system-1d.json"}, gone)
        done = subprocess.run(["sh", dims / "astra-sim.sh", "AstraSim_Analytical_Congestion_Aware"],
                              capture_output=True, text=True, check=False)
        self.assertEqual((1, True), (done.returncode, "--groups file" in done.stderr), done)


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))


class Memory(Case):
    """What emission holds is a chunk of each thread and some words of each rank, and never a trace: less than
    64 MB, unless a sanitizer has its share in it."""

    def peak(self, config, sets):
        """Bytes of memory that the program takes."""
        script = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
                  "stdout=subprocess.DEVNULL); "
                  "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        command = [sys.executable, "-c", script, ETCH, "lower", str(LLAMA), "-o", str(self.scratch / "out"),
                   "-q", "--no-sync", "-j", "2", *options(config, "megatron_sp", sets)]
        return 1024 * int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)

    def test_emission(self):
        if subprocess.run([ETCH, "--version"], preexec_fn=limit_memory, capture_output=True,
                          check=False).returncode != 0:
            return  # a sanitizer's memory is no measure
        for config, sets in ((None, {**SIZES, "layers": 1, "batch": 4096, "dp": 1024, "tp": 4}),
                             ("llama3_8b", {"layers": 320, "dp": 1, "tp": 4, "batch": 8, "seq": 64,
                                            "micro": 8})):
            self.assertLess(self.peak(config, sets), 64 << 20, sets)


if __name__ == "__main__":
    main()
