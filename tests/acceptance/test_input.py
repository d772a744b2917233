"""Bad input: one clear message with its place, exit status 1, and nothing on disk has changed."""

import json
import re

from etchtest import BASE, COMMON, GPT, LLAMA, Case, main, options, run, snapshot

SIZES = dict(batch=16, seq=64, dp=2, tp=2, micro=2)
TINY = """etch 1
param batch, seq, hidden, ffn, vocab
dim B = batch, S = seq, H = hidden, F = ffn, V = vocab
dtype act = bf16, weights = bf16, grads = f32, optim = f32
module mlp(x[B,S,H]) -> y[B,S,H] {
  weight w1[H,F], w2[F,H]
  u[B,S,F] = x * w1
  y        = relu(u) * w2
}
model tiny(ids[B,S]: i32, labels[B,S]: i32) -> z[B,S,V] {
  weight emb[V,H], head[H,V]
  x[B,S,H] = gather(emb, ids, over = V)
  x        = x + mlp(x)
  z[B,S,V] = x * head
  l[]      = cross_entropy(z, labels, over = V)  tag loss
}
train { model = tiny, optimizer = adamw(master = true) }
parallel ddp { mesh [dp]
  shard B @ dp }
"""
BOUND = dict(batch=4, seq=8, hidden=8, ffn=16, vocab=32, dp=2)


class BadInput(Case):
    def refused(self, done, *said, code=None):
        """One error, exit status 1, no result; `said`: patterns that the whole message has."""
        self.assertEqual(1, done.status, done)
        if done.command.split()[1] != "check":  # which says what it has found
            self.assertEqual("", done.out, done)
        self.assertEqual(1, len(done.errors()), done)
        error = done.errors()[0]
        self.assertRegex(error["code"] or "", r"^E\d{4}$", done)
        for pattern in said:
            self.assertRegex(done.err, pattern, done)
        return error

    def refused_at(self, done, name, line, *said):
        """The same; the error points into a file and shows the line with a caret below."""
        error = self.refused(done, *said)
        self.assertEqual(name, (error["path"] or "").split("/")[-1], done)
        self.assertEqual(line, int(error["line"]), done)
        shown = re.search(rf"^ *{line} \| (.*)\n *\| ( *)\^", done.err[error.end():], re.M)
        self.assertTrue(shown, done)
        return error

    def line_of(self, text, part):
        return text[:text.index(part)].count("\n") + 1

    def edited(self, old, new):
        self.assertEqual(1, TINY.count(old), old)
        return TINY.replace(old, new)

    def every_command(self, spec):
        """The commands that read the spec, all in a folder where nothing may appear."""
        before = snapshot(self.scratch)
        for arguments in (("check", spec), ("query", spec, "params(model)"),
                          ("lower", spec, *options(sets=BOUND), "-o", "out")):
            yield run(*arguments, cwd=self.scratch)
            self.assertEqual(before, snapshot(self.scratch))

    def test_the_spec_itself_is_fine(self):
        spec = self.write("tiny.etch", TINY)
        self.assertEqual(0, run("check", spec).status)
        self.assertEqual(0, run("lower", spec, *options(sets=BOUND), "-o", self.scratch / "out").status)

    def test_unknown_dim(self):
        text = self.edited("u[B,S,F] = x * w1", "u[B,S,Fn] = x * w1")
        for done in self.every_command(self.write("bad.etch", text)):
            self.refused_at(done, "bad.etch", self.line_of(text, "u[B,S,Fn]"), "'?Fn'?")

    def test_unknown_names(self):
        for old, new, word in (("x + mlp(x)", "x + mpl(x)", "mpl"), ("relu(u)", "rlu(u)", "rlu"),
                               ("x * w1", "x * w3", "w3"), ("= ffn", "= fnn", "fnn"),
                               ("model = tiny,", "model = tyni,", "tyni")):
            with self.subTest(word):
                text = self.edited(old, new)
                for done in self.every_command(self.write("bad.etch", text)):
                    self.refused_at(done, "bad.etch", self.line_of(text, new), word, "did you mean")

    def test_shape_mismatch(self):
        for wrong in ("x + mlp(emb)", "x * mlp(emb)", "rms_norm(x, emb, over = H)"):
            with self.subTest(wrong):
                text = self.edited("x + mlp(x)", wrong)
                for done in self.every_command(self.write("bad.etch", text)):
                    self.refused_at(done, "bad.etch", self.line_of(text, wrong), r"\bV\b")

    def test_result_with_other_dims(self):
        text = self.edited("-> y[B,S,H] {", "-> y[B,S,F] {")
        for done in self.every_command(self.write("bad.etch", text)):
            self.assertEqual(1, done.status, done)
            self.assertEqual(1, len(done.errors()), done)

    def test_two_dims_summed_by_mistake(self):
        """A dim of one factor only would be summed away: S of x; H of x and V of w1."""
        text = self.edited("u[B,S,F] = x * w1\n  y        = relu(u) * w2",
                           "u[B,F] = x * w1\n  y        = x + relu(u) * w2")
        for done in self.every_command(self.write("bad.etch", text)):
            self.refused_at(done, "bad.etch", self.line_of(text, "u[B,F]"), r"\bS\b")

        text = self.edited("weight w1[H,F]", "weight w1[V,F]")
        for done in self.every_command(self.write("bad.etch", text)):
            self.refused_at(done, "bad.etch", self.line_of(text, "u[B,S,F]"), r"\bH\b", r"\bV\b")

    def test_outer_product_by_mistake(self):
        text = self.edited("y        = relu(u) * w2", "y        = relu(x * w1) * w2")
        for done in self.every_command(self.write("bad.etch", text)):
            self.refused_at(done, "bad.etch", self.line_of(text, "relu(x * w1)"))

    def test_a_dim_twice(self):
        text = self.edited("w1[H,F]", "w1[H,H]")
        for done in self.every_command(self.write("bad.etch", text)):
            self.refused_at(done, "bad.etch", self.line_of(text, "w1[H,H]"), "H'")

    def test_a_name_twice(self):
        """A second weight, argument, parameter or dim of one name would hide the first and be counted beside
        it."""
        for old, new in (("weight w1[H,F], w2[F,H]", "weight w1[H,F], w1[H,F], w2[F,H]"),
                         ("weight w1[H,F], w2[F,H]", "weight w1[H,F], w2[F,H], x[H,F]"),
                         ("weight w1[H,F], w2[F,H]", "weight w1[H,F], w2[F,H]; dim P = 2*H, P = 3*H"),
                         ("module mlp(x[B,S,H]) ->", "module mlp(x[B,S,H]; a = 1, a = 2) ->")):
            with self.subTest(new):
                text = self.edited(old, new)
                for done in self.every_command(self.write("bad.etch", text)):
                    self.refused_at(done, "bad.etch", self.line_of(text, new), "defined here already")

    def test_sum_of_dims_that_differ(self):
        """The message stands where the sum is, not where its result is used."""
        text = self.edited("x        = x + mlp(x)", "x        = x + mlp(x) + head")
        text = text.replace("  x        = x + mlp(x) + head\n",
                            "  t        = mlp(x) + head\n  x        = x + mlp(x)\n")
        for done in self.every_command(self.write("bad.etch", text)):
            self.refused_at(done, "bad.etch", self.line_of(text, "mlp(x) + head"), r"\bV\b")

    def test_recomputation_of_nothing(self):
        text = self.edited("adamw(master = true)", "adamw(master = true), recompute = mpl")
        for done in list(self.every_command(self.write("bad.etch", text)))[::2]:
            self.refused_at(done, "bad.etch", self.line_of(text, "recompute"),
                            "no loop, module, tag or module.tensor")

    def test_several_mistakes_are_several_messages(self):
        text = self.edited("u[B,S,F] = x * w1", "u[B,S,F] = x * w3").replace("relu(u)", "rlu(u)")
        text = text.replace("optimizer = adamw", "optimizer = adamv")
        done = run("check", self.write("bad.etch", text))
        self.assertEqual(1, done.status, done)
        lines = [self.line_of(text, part) for part in ("x * w3", "rlu(u)", "adamv")]
        self.assertEqual(lines, sorted(int(error["line"]) for error in done.errors()), done)

    def test_not_divisible(self):
        """tp = 3: what is required, where that comes from, the values."""
        text = COMMON.read_text(encoding="utf-8")
        start = text[:text.index("parallel megatron_sp")].count("\n") + 1
        for config in ("llama3_8b", "llama3_405b"):
            before = snapshot(self.scratch)
            done = run("lower", LLAMA, *options(config, "megatron_sp", {**SIZES, "tp": 3, "batch": 96}), "-o",
                       self.scratch / "out")
            self.assertEqual(1, done.status, done)
            self.assertEqual("", done.out, done)
            self.assertEqual(before, snapshot(self.scratch))
            error = done.errors()[0]
            self.assertEqual("plans.etch", error["path"].split("/")[-1])
            self.assertTrue(start <= int(error["line"]) <= start + 3, done)
            self.assertRegex(done.err, r"\btp\b")
            self.assertRegex(done.err, r"kv_heads")
            self.assertRegex(done.err, r"\b8\b")
            self.assertRegex(done.err, r"\b3\b")

    def test_not_divisible_by_one_thing_is_one_message(self):
        sets = {**SIZES, "tp": 3, "kv_heads": 6, "heads": 6, "ffn": 6, "vocab": 6, "seq": 6, "hidden": 6,
                "layers": 1,
                "head_dim": 2}
        done = run("lower", LLAMA, *options(None, "megatron_sp", {**sets, "vocab": 8}), "-o",
                   self.scratch / "out")
        error = self.refused_at(done, "plans.etch", self.line_of(COMMON.read_text(encoding="utf-8"),
                                                                 "  pin   residual") - 1, "vocab", r"\b8\b",
                                r"\b3\b")
        self.assertTrue(error)
        done = run("lower", LLAMA, *options(None, "megatron_sp", {**sets, "batch": 6}), "-o",
                   self.scratch / "out")
        self.refused(done, "batch", "dp", "micro", r"\b6\b")
        self.assertEqual({}, snapshot(self.scratch))
        self.assertEqual(0, run("lower", LLAMA, *options(None, "megatron_sp", sets), "-o",
                                self.scratch / "out").status)

    def test_broken_assumption(self):
        done = run("lower", LLAMA, *options("llama3_8b", "ddp", {"batch": 4, "seq": 8, "kv_heads": 5}), "-o",
                   self.scratch / "out")
        self.refused_at(done, "base.etch", self.line_of(BASE.read_text(encoding="utf-8"), "assume kv_heads"),
                        r"kv_heads \| heads", r"\b5\b", r"\b32\b")
        done = run("lower", GPT, *options("gpt2", "ddp", {"batch": 4, "seq": 2048}), "-o",
                   self.scratch / "out")
        self.refused_at(done, "gpt.etch", self.line_of(GPT.read_text(encoding="utf-8"), "assume heads"),
                        r"seq <= positions", r"\b2048\b", r"\b1024\b")
        self.assertEqual({}, snapshot(self.scratch))

    def test_missing_binding(self):
        done = run("lower", LLAMA, *options("llama3_8b", "ddp", {"batch": 4}), "-o", self.scratch / "out")
        self.refused(done, r"\bseq\b", "--set")
        done = run("lower", LLAMA, *options(None, "ddp", {"batch": 4, "seq": 8}), "-o", self.scratch / "out")
        self.assertEqual(1, done.status)
        self.assertRegex(done.err, r"\bhidden\b")
        self.assertEqual({}, snapshot(self.scratch))

    def test_unknown_config_plan_and_names_in_set(self):
        chosen = options("llama3_8b", "megatron", SIZES)
        for old, new, near in (("llama3_8b", "llama3_8B", "llama3_8b"), ("megatron", "megatorn", "megatron"),
                               ("seq=", "sq=", "seq"), ("tp=", "tpp=", "tp")):
            with self.subTest(new):
                changed = [part.replace(old, new) for part in chosen]
                for arguments in (("lower", LLAMA, *changed, "-o", self.scratch / "out"),
                                  ("query", LLAMA, "comm(step)", *changed)):
                    self.refused(run(*arguments), re.escape(new.rstrip("=")), f"did you mean '?{near}'?")
                self.assertEqual({}, snapshot(self.scratch))

    def test_an_axis_that_the_plan_lacks(self):
        done = run("lower", LLAMA, *options("llama3_8b", "megatron", {**SIZES, "cp": 2}), "-o",
                   self.scratch / "out")
        self.refused(done, r"\bcp\b")
        self.assertEqual({}, snapshot(self.scratch))

    def test_no_plan_chosen(self):
        done = run("query", LLAMA, "comm(step)")
        self.refused(done, "ddp", "megatron_sp")

    def test_values_that_are_none(self):
        for setting in ("layers=0", "layers=-1", "layers=1/2", "dp=0", "layers=2*", "layers", "=2"):
            with self.subTest(setting):
                done = run("lower", LLAMA, *options("llama3_8b", "megatron", SIZES), "--set", setting, "-o",
                           self.scratch / "out")
                self.assertIn(done.status, (1, 2), done)
                self.assertEqual("", done.out)
                self.assertNotEqual("", done.err)
                self.assertEqual({}, snapshot(self.scratch))

    def test_import_cycle(self):
        one = self.write("one.etch", 'etch 1\nimport "two.etch"\n')
        self.write("two.etch", 'etch 1\nimport "one.etch"\n')
        for done in self.every_command(one):
            self.refused_at(done, "two.etch", 2, r"one\.etch")
        alone = self.write("alone.etch", 'etch 1\nimport "alone.etch"\n')
        for done in self.every_command(alone):
            self.refused_at(done, "alone.etch", 2)

    def test_import_of_nothing(self):
        text = 'etch 1\nimport "missing.etch"\n'
        for done in self.every_command(self.write("importing.etch", text)):
            self.refused_at(done, "importing.etch", 2, r"missing\.etch")

    def test_opening_brackets(self):
        for bracket in ("(", "[", "{", "-", "((", "[(", "x["):
            with self.subTest(bracket):
                text = "etch 1\ncheck " + bracket * (10_000_000 // len(bracket))
                spec = self.write("deep.etch", text)
                done = run("check", spec)
                error = self.refused(done)
                self.assertEqual("deep.etch", error["path"].split("/")[-1])
                self.assertLess(len(done.err), 10_000, "the message shows far too much")
                self.assertIn("^", done.err)

    def test_opening_brackets_in_a_query(self):
        spec = self.write("tiny.etch", TINY)
        done = run("query", spec, "(" * 100_000)
        self.refused(done)
        self.assertLess(len(done.err), 10_000)

    def test_nul_byte(self):
        text = TINY.encode()
        at = text.index(b"x * w1")
        bad = text[:at] + b"\0" + text[at + 1:]
        for done in self.every_command(self.write("nul.etch", bad)):
            self.refused_at(done, "nul.etch", self.line_of(TINY, "x * w1"))

    def test_bytes_that_are_no_text(self):
        for name, bad in (("utf8", b"\xff\xfe"), ("random", bytes(range(128, 256)))):
            with self.subTest(name):
                done = run("check", self.write("bytes.etch", b"etch 1\n# " + bad + b"\n"))
                self.assertEqual(1, done.status, done)
                self.assertTrue(done.errors(), done)
        done = run("check", self.write("empty.etch", ""))
        self.refused(done, "etch 1")

    def test_newer_version(self):
        done = run("check", self.write("new.etch", TINY.replace("etch 1", "etch 2")))
        self.refused_at(done, "new.etch", 1, r"\b2\b", r"\b1\b")

    def test_what_cannot_be_read(self):
        """A folder, and a file that is not there: one status for both."""
        for name, said in ("", "(?i)directory|folder"), ("missing.etch", "(?i)no such file"):
            for done in self.every_command(self.scratch / name):
                self.assertEqual(3, done.status, done)
                self.assertEqual(("", 1), (done.out, len(done.errors())), done)
                self.assertIn(str(self.scratch / name), done.err)
                self.assertRegex(done.err, said)

    def test_messages_as_json(self):
        text = self.edited("u[B,S,F] = x * w1", "u[B,S,Fn] = x * w1")
        spec = self.write("bad.etch", text)
        done = run("check", spec, "--json")
        self.assertEqual(1, done.status, done)
        told = json.loads(done.err)
        self.assertEqual(1, len(told["messages"]))
        message = told["messages"][0]
        self.assertEqual("error", message["severity"])
        self.assertRegex(message["code"], r"^E\d{4}$")
        self.assertEqual((str(spec), self.line_of(text, "u[B,S,Fn]"), 9),
                         tuple(message["location"][key] for key in ("file", "line", "column")))
        plain = run("check", spec)
        self.assertEqual(plain.errors()[0]["text"], message["message"])
        self.assertEqual(plain.errors()[0]["code"], message["code"])
        fine = run("query", LLAMA, "params(model)", "--config", "llama3_8b", "--json")
        self.assertEqual((0, "8030261248\n", []), (fine.status, fine.out, json.loads(fine.err)["messages"]))

    def test_usage(self):
        for arguments in ((), ("nothing",), ("query", LLAMA), ("check",), ("check", LLAMA, "--nothing"),
                          ("lower", LLAMA, "--set", "dp=2"),
                          ("query", LLAMA, "params(model)", "--by", "colour")):
            with self.subTest(arguments):
                done = run(*arguments)
                self.assertEqual((2, ""), (done.status, done.out), done)
                self.assertIn("etch", done.err)
        done = run("help")
        self.assertEqual((0, ""), (done.status, done.err))
        self.assertIn("query", done.out)

    def test_what_has_no_meaning_yet_is_refused_by_name(self):
        """Syntax that a later version gives meaning to is never passed over in silence: numbers would be
        wrong."""
        plan, train = ("  shard B @ dp }", "  shard B @ dp\n  {}\n}}"), ("master = true) }",
                                                                         "master = true), {} }}")
        body = ("x        = x + mlp(x)", "x        = {}")
        for (old, new), what, word in ((plan, "for mlp { stage layer @ dp }", "stage"),
                                       (train, "report = loss", "report"),
                                       (train, "adapt = lora(wq)", "adapt"), (train, "save = stats", "save"),
                                       (body, "gather_sum(x)", "gather_sum"),
                                       (body, "triangle(x)", "triangle")):
            with self.subTest(what):
                text = self.edited(old, new.format(what))
                spec = self.write("later.etch", text)
                for arguments in (("query", spec, "comm(step)", *options(sets=BOUND)),
                                  ("query", spec, "comm(step)"),
                                  ("lower", spec, *options(sets=BOUND), "-o", self.scratch / "out")):
                    done = run(*arguments)
                    self.refused_at(done, "later.etch", self.line_of(text, what), word,
                                    "not given meaning yet")
                self.assertFalse((self.scratch / "out").exists())


if __name__ == "__main__":
    main()
