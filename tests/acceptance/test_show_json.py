"""What `etch show --format json` prints is what docs/show.schema.json says, for every shipped model under
every plan that it has or imports; and the schema says no more and no less."""

import copy
import json

from effort import NIGHTLY
from etchtest import MODELS, SOURCE, Case, main, run, settings, succeed
from json_schema import Schema
from shipped import SMALL, axes_of, params_of, runs_of, specs_of

SCHEMA = json.loads((SOURCE / "docs" / "show.schema.json").read_text(encoding="utf-8"))
SPECS = specs_of(MODELS)
VIEWS = ("graph", "plan", "pipeline")

# What no shipped model has: padding, loops inside loops, stages that microbatches do not fill evenly.
GIVEN = """etch 1
param n
dim B = 8, N = n
model m(x[B,N]) -> y[B,N] {
  weight table[N] tag buffer
  ones[N] = 1
  y = x * table + ones
}
parallel p { mesh [dp]; shard B @ dp }
"""
OWN = """etch 1
param batch, hidden, layers, inner
param micro = 1
dim B = batch, H = hidden, F = 5
dtype act = bf16, weights = bf16, grads = f32, optim = f32
module mlp(x[B,H]) -> y[B,H] {
  weight wu[H,F], wd[F,H]
  u[B,F] = x * wu
  y[B,H] = gelu(u) * wd
}
model net(ids[B]: i32) -> x[B,H] {
  weight emb[V,H]
  x[B,H] = gather(emb, ids, over = V)  tag embed
  repeat layers as layer {
    repeat inner as part {
      x = x + mlp(x)
    }
  }
  z[B,V] = x * emb  tag head
  l[] = cross_entropy(z, ids, over = V)  tag loss
}
dim V = 16
train { model = net, optimizer = adamw(master = true), accumulate = (B, micro) }
config tiny { batch = 12, hidden = 6, layers = 4, inner = 2, micro = 3 }
parallel cut {
  mesh [pp = 2, tp = 2]
  shard F @ tp
  pad F = 2*tp
  stage (embed, layer, head) @ pp, schedule = interleaved(virtual = 2)
}
"""


def plans_of(spec):
    return json.loads(succeed("check", spec, "--format", "json").out)["plans"]


def small(spec, plan):
    names = params_of(spec) | (axes_of(spec, plan) if plan else set())
    return settings({name: size for name, size in SMALL.items() if name in names})


class ShowJson(Case):
    def setUp(self):
        super().setUp()
        self.schema = Schema(SCHEMA)
        self.seen = {}

    def look(self, document, where="$"):
        """Counts the members, so that one that no model has is noticed."""
        if isinstance(document, dict):
            for name, value in document.items():
                self.seen.setdefault(f"{where}.{name}", set()).add(type(value).__name__)
                self.look(value, f"{where}.{name}")
        elif isinstance(document, list):
            for value in document:
                self.look(value, f"{where}[]")

    def hold(self, *arguments):
        document = json.loads(succeed("show", *arguments, "--format", "json").out)
        self.assertEqual(self.schema.breaches(document)[:5], [], arguments)
        self.look(document, document["schema"])
        return document

    def test_shipped(self):
        """Every other plan of each spec, nightly all."""
        for turn, spec in enumerate(SPECS):
            plans = plans_of(spec)
            for of_run in runs_of(spec):
                named = ("--run", of_run) if of_run else ()
                with self.subTest(spec=spec.name, run=of_run):
                    self.hold(spec, *named)
                    self.hold(spec, *named, "--set", small(spec, None))
                for plan in plans if NIGHTLY else plans[turn % 2::2]:
                    with self.subTest(spec=spec.name, run=of_run, plan=plan):
                        sized = (spec, *named, "--plan", plan, "--set", small(spec, plan))
                        self.hold(*sized)
                        self.hold(*sized, "--pipeline")
        for plan in ("megatron_sp", "ddp"):
            self.hold(MODELS / "llama.etch", "--plan", plan, "--config", "llama3_8b")
            self.hold(MODELS / "llama.etch", "block", "--plan", plan)
        self.hold(MODELS / "llama.etch", "mlp", "--config", "llama3_8b")
        self.hold(MODELS / "llama.etch", "attention.wq")
        self.hold(self.write("given.etch", GIVEN), "--plan", "p", "--set", "n=4,dp=2")
        self.hold(self.write("given.etch", GIVEN))
        llama = MODELS / "llama.etch"
        self.hold(llama, "--plan", "ddp", "--set", small(llama, "ddp"), "--set", "plan.recompute=fit(10^12)")
        own = self.write("own.etch", OWN)
        for arguments in ((), ("loss",), ("--plan", "cut")):
            self.hold(own, *arguments)
        self.hold(own, "--plan", "cut", "--pipeline", "--config", "tiny")
        self.hold(own, "--plan", "cut", "--pipeline", "--config", "tiny", "--set", "micro=4", "--set",
                  "plan.schedule=dualpipev")
        self.check_seen()

    def check_seen(self):
        """Every member that the schema has was seen, and every one that may be null was null and was not;
        places may always be nowhere."""
        unseen = []
        for view in VIEWS:
            name = SCHEMA["$defs"][view]["properties"]["schema"]["const"]
            for path, types in self.members(SCHEMA["$defs"][view], name):
                both = "null" in types and not path.endswith(("location", "line"))
                if path not in self.seen or (both and len(self.seen[path]) < 2):
                    unseen.append((path, self.seen.get(path)))
        self.assertEqual(unseen, [])

    def members(self, schema, where):
        """Yields (path, types) of all members."""
        schema = self.expand(schema)
        for name, inner in schema.get("properties", {}).items():
            inner = self.expand(inner)
            types = inner.get("type", [])
            yield f"{where}.{name}", types if isinstance(types, list) else [types]
            yield from self.members(inner, f"{where}.{name}")
        if "items" in schema:
            yield from self.members(schema["items"], f"{where}[]")

    def expand(self, schema):
        """The part of the schema itself; of a choice with null the other one, with that type added."""
        if "$ref" in schema:
            return self.expand(self.schema.resolve(schema["$ref"]))
        if "anyOf" in schema:
            other = self.expand(next(part for part in schema["anyOf"] if part != {"type": "null"}))
            return {**other, "type": [other.get("type", "string"), "null"]}
        return schema

    def test_breaches_are_found(self):
        fine = self.hold(MODELS / "llama.etch", "block", "--plan", "megatron_sp")

        def breaks(change, words):
            broken = copy.deepcopy(fine)
            change(broken)
            found = self.schema.breaches(broken)
            self.assertTrue(any(words in line for line in found), (words, found[:3]))

        breaks(lambda d: d.update(schema="etch-show-plan/2"), "is not 'etch-show-plan/1'")
        breaks(lambda d: d.pop("mesh"), "there is no 'mesh'")
        breaks(lambda d: d.update(more=1), "'more' is not said")
        breaks(lambda d: d["steps"][0].pop("phase"), "there is no 'phase'")
        breaks(lambda d: d["steps"][0].update(phase="sideways"), "is none of")
        breaks(lambda d: d["steps"][0].update(module=len(d["modules"])), "no index into modules")
        breaks(lambda d: d["steps"][0].update(module=None), "not of type integer")
        breaks(lambda d: d["steps"][0].update(passes=0), "not of type boolean")
        breaks(lambda d: d["steps"][0]["ins"].append(-1), "is less than 0")
        breaks(lambda d: d["values"][0].update(bytes=12), "not of type string")
        breaks(lambda d: d["values"][0].update(bytes=""), "a text of 0 characters")
        breaks(lambda d: d.update(steps={}), "not of type array")
        with self.assertRaises(ValueError):
            Schema({"type": "object", "patternProperties": {}})

    def test_every_kind_of_document_is_one(self):
        for arguments in ((), ("--plan", "ddp"), ("--plan", "ddp", "--pipeline", "--set", "dp=1")):
            found = run("show", MODELS / "gpt.etch", *arguments, "--format", "json")
            self.assertEqual(found.status, 0, found)
            self.assertEqual(self.schema.breaches(json.loads(found.out)), [])


if __name__ == "__main__":
    main()
