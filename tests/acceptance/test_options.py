"""Options of `etch lower` that change what is written: some ranks only, other names, attributes for people,
coarser or finer nodes, files for ASTRA-sim. Every combination is read by the official protobuf runtime and
keeps the rules."""

import collections
import itertools
import json
import os
import pathlib
import re
import subprocess

from etchtest import (ETCH, LLAMA, SOURCE, Case, attribute, lower, main, messages, options, run, snapshot,
                      succeed, trace, traces, value)

SIZES = dict(hidden=32, heads=8, kv_heads=4, head_dim=4, ffn=24, vocab=32, layers=5, batch=8, seq=16, micro=2)
MESHES = {"megatron_zero": dict(dp=2, tp=2), "megatron_pp": dict(pp=3, dp=2, tp=2),
          "long_context_pp": dict(pp=2, dp=2, cp=2, tp=2)}
GRANULARITIES = ("op", "kernel", "block")
ANNOTATIONS = ("phase", "layer", "microbatch", "op_type", "module")
PHASES = {"F": "forward", "R": "recompute", "B": "backward", "S": "sync", "O": "optimizer"}
WORDS = {4: "COMP_NODE", 5: "COMM_SEND_NODE", 6: "COMM_RECV_NODE", 7: "COMM_COLL_NODE"}


def sets_of(plan):
    return {**SIZES, **MESHES[plan]}


class Options(Case):
    def lower(self, name, plan, *more):
        return lower(self.scratch / name, LLAMA, plan=plan, sets=sets_of(plan), more=more)

    def names(self, folder, rank=0):
        return [node.name for node in messages(traces(folder)[rank])]

    def bare(self, path, *without):
        """The nodes of a trace without names and these attributes, as bytes."""
        found = []
        for node in messages(path):
            node.ClearField("name")
            kept = [item for item in node.attr if item.name not in without]
            del node.attr[:]
            node.attr.extend(kept)
            found.append(node.SerializeToString(deterministic=True))
        return found


class Ranks(Options):
    def test_chosen_ranks_are_as_among_all(self):
        """Each trace, the groups and the totals are those of a run for all ranks."""
        everything = self.lower("all", "megatron_pp")
        for chosen, ranks in (("0", [0]), ("11,0", [0, 11]), ("3-5,1,4-6", [1, 3, 4, 5, 6]),
                              ("0-11", range(12))):
            with self.subTest(ranks=chosen):
                some = self.lower("some", "megatron_pp", "--ranks", chosen)
                files = {f"llama.{rank}.et" for rank in ranks} | {"comm_group.json", "manifest.json"}
                self.assertEqual(files, set(snapshot(some)))
                for file in files - {"manifest.json"}:
                    self.assertEqual((everything / file).read_bytes(), (some / file).read_bytes(), file)
                whole, part = (json.loads((folder / "manifest.json").read_text())
                               for folder in (everything, some))
                self.assertNotIn("written", whole["traces"])
                written = part["traces"].pop("written")
                self.assertEqual(list(ranks),
                                 [rank for first, last in written for rank in range(first, last + 1)])
                self.assertEqual(sum((some / f"llama.{rank}.et").stat().st_size for rank in ranks),
                                 int(part["traces"].pop("bytes")))
                whole["traces"].pop("bytes")
                self.assertEqual(whole, part)

    def test_a_later_run_replaces_them(self):
        self.lower("out", "megatron_pp", "--ranks", "5")
        folder = self.lower("out", "megatron_zero", "--ranks", "1,2")
        self.assertEqual({1, 2}, set(traces(folder)))

    def test_verify_says_that_others_are_missing(self):
        for ranks in ("0-3", "2,9"):
            done = run("verify", self.lower("out", "megatron_pp", "--ranks", ranks))
            self.assertEqual(1, done.status, done)
            self.assertEqual(1, len(done.errors()), done)
            self.assertIn("of 12 ranks", done.err)

    def test_ranks_that_are_not_there(self):
        for ranks in ("12", "0,12", "", "a", "3-1", "1,,2", "-1", "4294967296", "99999999999999999999"):
            done = run("lower", LLAMA, *options(plan="megatron_pp", sets=sets_of("megatron_pp")), "-o",
                       self.scratch / "no", "--ranks", ranks)
            self.assertEqual(1, done.status, done)
            self.assertEqual(["E0712"], [error["code"] for error in done.errors()])
            self.assertFalse((self.scratch / "no").exists())


class Names(Options):
    def test_only_names_differ(self):
        for plan in MESHES:
            folders = [self.lower(f"{plan}.{names}", plan, "--names", names)
                       for names in ("short", "full", "none")]
            for rank, path in traces(folders[0]).items():
                for other in folders[1:]:
                    self.assertEqual(self.bare(path), self.bare(traces(other)[rank]))
            self.assertEqual(self.names(folders[0]), self.names(self.lower(f"{plan}.default", plan)))
            self.assertEqual({""}, set(self.names(folders[2])))

    def test_full_names(self):
        """Type, phase, microbatch, stage, loops, modules, tensor; no two nodes of a rank have one name."""
        folder = self.lower("full", "megatron_pp", "--names", "full")
        pattern = re.compile(r"(\w+)\.(\w+)(?:\.mb(\d+))?\.stage(\d+)\.(.+)")
        short = self.lower("short", "megatron_pp")
        for rank, path in traces(folder).items():
            nodes = messages(path)
            self.assertEqual(len(nodes), len({node.name for node in nodes}))
            for node, brief in zip(nodes, self.names(short, rank)):
                word, phase, microbatch, stage, _ = pattern.fullmatch(node.name).groups()
                self.assertEqual(WORDS[node.type], word)
                self.assertEqual(rank // 4, int(stage))
                letter, number = re.match(r"([A-Z])(\d*)\.", brief).groups()
                self.assertEqual(PHASES[letter], phase)
                self.assertEqual(number or None, microbatch)
        self.assertIn("COMP_NODE.forward.mb1.stage0.layer1.llama.block.attention.k", self.names(folder))


class Attributes(Options):
    def said(self, node):
        return {item.name: getattr(item, item.WhichOneof("value")) for item in node.attr
                if item.name in ANNOTATIONS}

    def test_each_is_added_alone(self):
        plain = self.lower("plain", "megatron_pp")
        for count in (1, 2, len(ANNOTATIONS)):
            for chosen in itertools.combinations(ANNOTATIONS, count):
                folder = self.lower("some", "megatron_pp", "--attrs", ",".join(reversed(chosen)))
                for rank, path in traces(folder).items():
                    self.assertEqual(self.bare(traces(plain)[rank]), self.bare(path, *chosen))
                for node in messages(traces(folder)[7]):
                    order = [item.name for item in node.attr if item.name in ANNOTATIONS]
                    self.assertEqual(order, [name for name in chosen if name in order])

    def test_what_they_say(self):
        """It is what the names and queries say: bytes of the nodes add up to the rows of tables."""
        plan, found = "megatron_pp", collections.defaultdict(collections.Counter)
        folder = self.lower("out", plan, "--attrs", ",".join(ANNOTATIONS))
        # What a rank begins with moves more bytes than it would, so that it takes some time.
        padding = int(json.loads((folder / "manifest.json").read_text())["stages"][0]["bytes_padding"])
        for node in messages(traces(folder)[0]):
            said = self.said(node)
            letter, number, layer = re.match(r"([A-Z])(\d*)\.(?:layer(\d+)\.)?", node.name).groups()
            self.assertEqual(PHASES[letter], said["phase"])
            self.assertEqual(number or None, str(said["microbatch"]) if "microbatch" in said else None)
            self.assertEqual(layer, str(said["layer"]) if "layer" in said else None)
            if node.type in (5, 6):
                self.assertEqual("send" if node.type == 5 else "recv", said["op_type"])
                self.assertNotIn("module", said)
            elif node.type == 7:
                self.assertEqual(trace.COLLECTIVES[attribute(node, "comm_type")], said["op_type"])
            else:
                moved = attribute(node, "tensor_size") - padding
                padding = 0
                for phase in (said["phase"], "step"):
                    found[phase, "phase"][said["phase"]] += moved
                    found[phase, "op"][said["op_type"]] += moved
                    found[phase, "module"][said["module"]] += moved
        for query in (("step", "phase"), ("step", "op"), ("forward", "module"), ("backward", "module")):
            done = succeed("query", LLAMA, f"traffic({query[0]})", *options(plan=plan, sets=sets_of(plan)),
                           "--stage",
                           "0", "--by", query[1], "--format", "json")
            self.assertEqual({row["label"]: int(row["value"]) for row in json.loads(done.out)["rows"]},
                             found[query])

    def test_mistakes(self):
        for attrs, hint in (("phases", "phase"), ("phase,", "there are phase"), ("module,op", "there are"),
                            ("", "are")):
            done = run("lower", LLAMA, *options(plan="megatron_pp", sets=sets_of("megatron_pp")), "-n",
                       "--attrs",
                       attrs)
            self.assertEqual(1, done.status, done)
            self.assertIn(hint, done.err)


class Granularity(Options):
    def test_totals(self):
        """FLOP and payloads are the same; bytes are what the same question says, fewer in larger nodes."""
        for plan in MESHES:
            sums, nodes = {}, {}
            for granularity in GRANULARITIES:
                folder = self.lower(granularity, plan, "--granularity", granularity)
                self.assertFine(folder)
                self.assertEqual(0, run("verify", folder).status)
                manifest = json.loads((folder / "manifest.json").read_text())
                rows, _ = self.asked(plan, "traffic(step)", granularity)
                for stage, found in enumerate(manifest["stages"]):
                    self.assertEqual(rows[str(stage) if len(manifest["stages"]) > 1 else "whole"],
                                     int(found["bytes"]))
                    sums.setdefault(stage, []).append((found["flop"], found["comm"]))
                    nodes.setdefault(stage, []).append((found["nodes"], int(found["bytes"])))
                self.assertSums(folder, manifest)
            for stage, same in sums.items():
                self.assertTrue(all(item == same[0] for item in same), plan)
                (ops, most), (kernels, some), (blocks, least) = nodes[stage]
                self.assertTrue(ops > kernels > blocks, nodes)
                self.assertTrue(most > some > least, nodes)

    def asked(self, plan, query, granularity):
        done = succeed("query", LLAMA, query, *options(plan=plan, sets=sets_of(plan)), "--by", "stage",
                       "--format",
                       "json", "--granularity", granularity)
        answer = json.loads(done.out)
        return {row["label"]: int(row["value"]) for row in answer["rows"]}, answer

    def assertSums(self, folder, manifest):
        """What is in the nodes is what the manifest says."""
        per_stage = manifest["ranks"] // len(manifest["stages"])
        for row in trace.totals(folder):
            for rank in row["ranks"]:
                stage = manifest["stages"][rank // per_stage]
                self.assertEqual(int(stage["flop"]) + int(stage["flop_padding"]), row["num_ops"])
                self.assertEqual(int(stage["bytes"]) + int(stage["bytes_padding"]), row["tensor_size"])

    def test_blocks(self):
        """A layer of the tensor-parallel plan, forward: what is before, between and behind its four
        collectives."""
        folder = self.lower("out", "megatron_zero", "--granularity", "block")
        kinds = "".join("C" if node.type == 7 else "." for node in messages(traces(folder)[0])
                        if node.name.startswith("F0.layer2."))
        self.assertEqual(".C.C.C.C.", kinds)

    def test_only_traffic_depends_on_it(self):
        for query in ("rank_flops(step)", "comm(step)", "flops(step)", "memory(weights)", "params(model)"):
            answers = {run("query", LLAMA, query,
                           *options(plan="megatron_zero", sets=sets_of("megatron_zero")),
                           "--granularity", granularity).out for granularity in GRANULARITIES}
            self.assertEqual(1, len(answers), query)

    def test_the_default(self):
        said = value(LLAMA, "traffic(step)", plan="megatron_zero", sets=sets_of("megatron_zero"))
        self.assertEqual(said, self.asked("megatron_zero", "traffic(step)", "kernel")[0]["whole"])


class Combinations(Options):
    def test_all(self):
        """Whatever is combined: the same graph as the plain run of the granularity, and every rule kept."""
        plan = "long_context_pp"
        for granularity in GRANULARITIES:
            plain = self.lower("plain", plan, "--granularity", granularity)
            for names, attrs, jobs in itertools.product(("short", "full", "none"),
                                                        (None, "phase,module", "layer"),
                                                        ("1", "3")):
                more = ["--granularity", granularity, "--names", names, "-j", jobs]
                more += ["--attrs", attrs] if attrs else []
                folder = self.lower("whole", plan, *more)
                some = self.lower("some", plan, "--ranks", "1,6-8", *more)
                if jobs == "1":
                    self.assertFine(folder)
                self.assertEqual({1, 6, 7, 8}, set(traces(some)))
                for rank, path in traces(some).items():
                    self.assertEqual(traces(folder)[rank].read_bytes(), path.read_bytes())
                    self.assertEqual(self.bare(traces(plain)[rank]),
                                     self.bare(path, *(attrs or "").split(",")))


class AstraSim(Options):
    FILES = {"network.yml", "system.json", "network-1d.yml", "system-1d.json", "memory.json", "astra-sim.sh",
             "machine.etch"}
    MIXTRAL = SOURCE / "models" / "mixtral.etch"
    EXPERTS = dict(batch=8, seq=32, layers=2, hidden=64, heads=8, kv_heads=4, head_dim=8, ffn=96, vocab=128,
                   micro=2, experts=8, topk=2, expert_ffn=32)

    def network(self, folder, name="network.yml"):
        """key -> list, of a file that is written `key: [ a, b ]`."""
        text = (folder / name).read_text()
        return {key: row.split(", ") for key, row in re.findall(r"^(\w+): \[ (.*?) \]", text, re.M)}

    def test_the_machine(self):
        """A dimension for each axis of more than one rank, the innermost first: their product is the
        ranks."""
        for mesh, counts in ((dict(pp=3, dp=2, cp=1, tp=4), ["4", "2", "3"]),
                             (dict(pp=1, dp=2, cp=2, tp=2), ["2"] * 3),
                             (dict(pp=1, dp=4, cp=1, tp=1), ["4"])):
            folder = lower(self.scratch / "out", LLAMA, plan="long_context_pp",
                           sets={**SIZES, "kv_heads": 4, **mesh},
                           more=["--astra-sim"])
            network = self.network(folder)
            self.assertEqual(counts, network["npus_count"])
            for key in ("topology", "bandwidth", "latency"):
                self.assertEqual(len(counts), len(network[key]))
            system = json.loads((folder / "system.json").read_text())
            self.assertEqual(1, system["roofline-enabled"])
            for collective in ("all-reduce", "all-gather", "reduce-scatter"):
                self.assertEqual(["ring"] * len(counts), system[f"{collective}-implementation"])
            self.assertEqual(["direct1"], system["all-to-all-implementation"])
            self.assertEqual({"memory-type": "NO_MEMORY_EXPANSION"},
                             json.loads((folder / "memory.json").read_text()))

    def test_one_dimension(self):
        """The backend that knows of congestion takes one dimension, and one entry in each list."""
        folder = lower(self.scratch / "out", LLAMA, plan="long_context_pp",
                       sets={**SIZES, "kv_heads": 4, "pp": 3, "dp": 2, "cp": 1, "tp": 4},
                       more=["--astra-sim"])
        network = self.network(folder, "network-1d.yml")
        self.assertEqual(["24"], network["npus_count"])
        self.assertEqual({1}, {len(values) for values in network.values()})
        self.assertEqual(set(self.network(folder)), set(network))
        system, flat = (json.loads((folder / f"system{way}.json").read_text()) for way in ("", "-1d"))
        for key, value in flat.items():
            if key.endswith("-implementation"):
                self.assertEqual(["direct1" if key.startswith("all-to-all") else "ring"], value)
            else:
                self.assertEqual(system[key], value)

    def test_all_to_all(self):
        """A ring would take n/2 times as long. Of all ranks: an entry for each dimension."""
        for mesh, expected in ((dict(dp=2, ep=2, tp=2), ["direct1"] * 2),
                               (dict(dp=4, ep=2, tp=2), ["direct1"]), (dict(dp=2, ep=2, tp=1), ["direct1"])):
            folder = lower(self.scratch / "out", self.MIXTRAL, plan="moe_folded",
                           sets={**self.EXPERTS, **mesh}, more=["--astra-sim"])
            system = json.loads((folder / "system.json").read_text())
            self.assertEqual(expected, system["all-to-all-implementation"], mesh)

    def told_to_run(self, folder, *more, sets=None):
        done = succeed("lower", LLAMA,
                       *options(plan="megatron_zero", sets={**sets_of("megatron_zero"), **(sets or {})}),
                       "--astra-sim", "-o", folder, *more)
        lines = [line for line in done.out.splitlines() if line.startswith("run ")]
        return lines[0].split(None, 1)[1] if lines else None

    def test_the_line_works(self):
        """What is printed runs in a shell, whatever the folder is called; what could not run is not
        printed. The log lies outside the traces."""
        programs = self.scratch / "programs"
        programs.mkdir()
        program = programs / "AstraSim_Analytical_Congestion_Unaware"
        program.write_text("#!/bin/sh\nfor word in \"$@\"; do printf '%s\\n' \"$word\"; done\nulimit -n\n")
        program.chmod(0o755)
        environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", CDPATH="/")
        for name in ("plain", "two words", "it's", "-n", "$(x)"):
            line = self.told_to_run(f"./{name}" if name == "-n" else self.scratch / name)
            done = subprocess.run(["sh", "-c", line], env=environment, text=True, stdout=subprocess.PIPE,
                                  check=True)
            *given, most = done.stdout.splitlines()
            paths = dict(word.split("=", 1) for word in given)
            folder = pathlib.Path(paths["--network-configuration"]).parent
            self.assertTrue(folder.samefile(name if name == "-n" else self.scratch / name))
            self.assertNotIn(folder, pathlib.Path(paths["--logging-folder"]).parents)
            self.assertNotEqual(folder, pathlib.Path(paths["--logging-folder"]))
            self.assertTrue(pathlib.Path(paths["--logging-folder"]).parent.is_dir())
        self.assertIsNone(self.told_to_run(self.scratch / "some", "--ranks", "0-1"))
        self.assertIsNone(self.told_to_run(self.scratch / "one", sets=dict(dp=1, tp=1)))
        self.assertIsNone(self.told_to_run(self.scratch / "nonempty"))
        self.assertIsNone(self.told_to_run(self.scratch / "out", "--dry-run"))

    def test_files_that_may_be_open(self):
        """The script asks for as many files as the ranks need, or says what is missing."""
        folder = self.lower("out", "megatron_zero", "--astra-sim")
        script = folder / "astra-sim.sh"
        for hard, status in ((1000, 0), (20, 1)):
            done = subprocess.run(["sh", "-c", f"ulimit -S -n 20 && ulimit -H -n {hard} && sh {script} true"],
                                  text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE, check=False)
            self.assertEqual(status, done.returncode, done)
            self.assertEqual(status > 0, "ulimit -n" in done.stderr)
        line = subprocess.run(["sh", "-c", 'ulimit -n 40 && exec "$0" "$@"', ETCH, "lower", LLAMA,
                               *options(plan="megatron_zero", sets=sets_of("megatron_zero")), "--astra-sim",
                               "-o", self.scratch / "few", "-j", "1"],
                              text=True, stdout=subprocess.PIPE, check=True)
        self.assertNotIn("astra-sim.sh", line.stdout)

    def test_the_command(self):
        """The script names files that are there, from any folder, whatever the traces are called."""
        name = "a b'$(x)"
        folder = self.lower("the out", "megatron_zero", "--astra-sim", "--name", name)
        program = self.write("simulator",
                             "#!/bin/sh\nfor word in \"$@\"; do printf '%s\\n' \"$word\"; done\n")
        program.chmod(0o755)
        done = subprocess.run(["sh", str(folder / "astra-sim.sh"), str(program), "--more"], cwd="/",
                              text=True,
                              stdout=subprocess.PIPE, check=True)
        *given, last = done.stdout.splitlines()
        self.assertEqual("--more", last)
        paths = dict(word.split("=", 1) for word in given)
        self.assertEqual(str(folder / name), paths.pop("--workload-configuration"))
        self.assertEqual(f"{folder}.log", paths.pop("--logging-folder"))
        self.assertEqual({"--comm-group-configuration", "--system-configuration",
                          "--remote-memory-configuration",
                          "--network-configuration"}, set(paths))
        for path in paths.values():
            self.assertTrue((folder / path).is_file(), path)
        self.assertEqual(str(folder / "network.yml"), paths["--network-configuration"])
        program = program.rename(program.with_name("AstraSim_Analytical_Congestion_Aware"))
        done = subprocess.run(["sh", str(folder / "astra-sim.sh"), str(program)], text=True,
                              stdout=subprocess.PIPE, check=True)
        self.assertIn(f"--network-configuration={folder}/network-1d.yml", done.stdout.splitlines())
        self.assertIn(f"--system-configuration={folder}/system-1d.json", done.stdout.splitlines())

    def test_its_files_belong_to_the_run(self):
        """They appear with it, are counted, and go when a later run has none."""
        plain = set(snapshot(self.lower("plain", "megatron_zero")))
        folder = self.lower("out", "megatron_zero", "--astra-sim")
        self.assertEqual(plain | self.FILES, set(snapshot(folder)))
        self.assertEqual(0, run("verify", folder).status)
        told = json.loads(succeed("lower", LLAMA,
                                  *options(plan="megatron_zero", sets=sets_of("megatron_zero")), "-n",
                                  "--astra-sim", "--format", "json").out)
        self.assertEqual(len(plain) + len(self.FILES), told["files"])
        self.assertEqual(sum(len(content) for content in snapshot(folder).values()), told["bytes"])
        self.lower("out", "megatron_zero")
        self.assertEqual(plain, set(snapshot(folder)))

    def test_files_of_others_stay(self):
        folder = self.lower("out", "megatron_zero")
        (folder / "network.yml").write_text("mine\n")
        done = run("lower", LLAMA, *options(plan="megatron_zero", sets=sets_of("megatron_zero")), "-o",
                   folder,
                   "--astra-sim")
        self.assertEqual(1, done.status, done)
        self.assertEqual("mine\n", (folder / "network.yml").read_text())
        self.lower("out", "megatron_zero", "--force")
        self.assertEqual("mine\n", (folder / "network.yml").read_text())
        done = run("lower", LLAMA, *options(plan="megatron_zero", sets=sets_of("megatron_zero")), "-o",
                   folder, "--astra-sim", "--force")
        self.assertEqual(0, done.status, done)
        self.assertIn("warning[E0716]", done.err)
        self.assertEqual("mine\n", (folder / "network.yml").read_text())
        self.assertEqual(self.FILES, self.FILES & set(snapshot(folder)))
        self.assertEqual(sum(len(content) for content in snapshot(folder).values()) - len("mine\n"),
                         int(re.search(r"^bytes +(\d+)", done.out, re.M)[1]))


if __name__ == "__main__":
    main()
