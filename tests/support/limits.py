"""Inputs at the limits of docs/limits.md: for each limit one just below it, and one just above.

`CASES` is by the name of the constant. An input is a size, from which `files` makes texts by name, and
`arguments` what the program is run with in a folder that holds them. tests/acceptance/test_limits.py asks
what comes of them, bench/limits.py how much time and memory it takes.
"""

import dataclasses
import typing

HEAD = "etch 1\nparam batch, hidden\ndim B = batch, H = hidden\n"
MODEL = HEAD + "{modules}model m(x[B,H]) -> x[B,H] {{\n{body}}}\n"
TRAINED = """etch 1
param batch, hidden, layers = 1, micro = 1
dim B = batch, H = hidden
dtype act = bf16, weights = bf16, grads = f32, optim = f32
model m(x[B,H]) -> l[] {{
  repeat layers as layer {{
    weight w[H,H']
    y[B,H'] = x * w
    x = x + silu(y[H'->H])
  }}
  l[] = mean(x, over = (B,H))  tag loss
}}
train {{ model = m, optimizer = adamw(master = true), accumulate = (B, micro) }}
parallel p {{ mesh {mesh}; shard B @ dp; zero 1 @ dp{more} }}
"""


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@dataclasses.dataclass
class Limit:
    below: int
    above: int
    code: str
    files: typing.Callable[[int], dict]
    arguments: typing.Callable[[int], list]
    status: int = 1  # above
    below_status: int = 0
    below_code: str = ""  # what else is wrong with the input below; "": nothing
    severity: str = "error"
    says: str = ""  # what the message above holds
    nightly: bool = False  # its files are too large for every run


def spec(make, *arguments):
    arguments = arguments or ("check",)
    return dict(files=lambda size: {"s.etch": make(size)},
                arguments=lambda size: [arguments[0], "s.etch", *arguments[1:]])


def formula(make, variables=1):
    """A query of `make(size)`."""
    def names(size):
        count = variables if isinstance(variables, int) else variables(size)
        return ", ".join(["a", "b", *(f"v{i}" for i in range(count))])
    return dict(files=lambda size: {"s.etch": f"etch 1\nparam {names(size)}\n"},
                arguments=lambda size: ["query", "s.etch", make(size)])


def loops(count):
    return MODEL.format(modules="", body="repeat 2 {\n" * count + "x = silu(x)\n" + "}\n" * count)


def calls(count):
    """Modules of which each calls the one before it."""
    modules = ["module g0(x[B,H]) -> x[B,H] { x = silu(x) }\n"]
    modules += [f"module g{i}(x[B,H]) -> x[B,H] {{ x = g{i - 1}(x) }}\n" for i in range(1, count)]
    return MODEL.format(modules="".join(modules), body=f"x = g{count - 1}(x)\n")


def open_loops(count):
    """Loops in a row, each of which may have no iterations."""
    names = "".join(f", n{i} >= 0" for i in range(count))
    body = "".join(f"  repeat n{i} as l{i} {{ weight w{i}[H]; x = silu(x * w{i}) }}\n" for i in range(count))
    return (f"etch 1\nparam batch, hidden{names}\ndim B = batch, H = hidden\n"
            f"model m(x[B,H]) -> l[] {{\n{body}  l[] = mean(x * x, over = (B,H)) tag loss\n}}\n"
            "train { model = m, optimizer = sgd }\n")


def ops(count):
    return MODEL.format(modules="", body="x = silu(x)\n" * count)


def statements(count):
    """Of conditions that hold nothing, most of them in a module that is called again and again."""
    each, calls = 4000, count // 4001 - 1
    module = "module g(x[B,H]) -> x[B,H] {\n" + "if batch >= 1 { }\n" * (each - 1) + "x = silu(x)\n}\n"
    left = count - calls * (each + 1)
    return MODEL.format(modules=module, body="x = g(x)\n" * calls + "if batch >= 1 { }\n" * left)


def conditions(count):
    """Each stands for one iteration: two breaks, of which neighbours share one."""
    body = "repeat 1000 as i {\n" + "".join(f"if i < {k + 1} {{ x = silu(x) }}\n"
                                            for k in range(count)) + "}\n"
    return MODEL.format(modules="", body=body)


def nested_conditions(count):
    """Breaks whose order is not known, each inside the one before it: two to the power of `count`
    stretches."""
    names = ", ".join(f"n{k}" for k in range(count))
    body = "".join(f"if i < n{k} {{\n" for k in range(count)) + "x = silu(x)\n" + "}\n" * count
    return MODEL.replace("batch, hidden", "batch, hidden, " + names, 1).format(
        modules="", body=f"repeat 1000 as i {{\n{body}}}\n")


def period(count):
    return MODEL.format(modules="", body=f"repeat 1000 as i {{\nif i % {count} == 0 {{ x = silu(x) }}\n}}\n")


def classes(count):
    """Conditions on remainders, of which any one can hold."""
    arms = " else ".join(f"if i % 200 == {k} {{ x = silu(x) }}" for k in range(count - 1))
    return MODEL.format(modules="", body=f"repeat 1000 as i {{\n{arms}\n}}\n")


def dims(count):
    return HEAD + "".join(f"dim D{i} = {f'D{i + 1} + 1' if i < count - 1 else 'batch'}\n"
                          for i in range(count))


def values(count):
    chain = [f"p{i} = p{i + 1} + 1" for i in range(count - 1)] + [f"p{count - 1} = 1"]
    return f"etch 1\nparam {', '.join(f'p{i}' for i in range(count))}\nconfig c {{ {', '.join(chain)} }}\n"


def imports(count):
    """A chain of files."""
    texts = {f"f{i}.etch": f'etch 1\nimport "f{i + 1}.etch"\n' for i in range(1, count)}
    return {"s.etch": 'etch 1\nimport "f1.etch"\nparam a\n', **texts, f"f{count}.etch": "etch 1\nparam b\n"}


def axes(count):
    return TRAINED.format(mesh="[dp, " + ", ".join(f"a{i}" for i in range(count - 1)) + "]", more="")


def declared(count):
    """That many names."""
    return f"etch 1\nparam {', '.join(f'p{i}' for i in range(count))}\n"


def tokens(count):
    """That many words and signs, ends of lines and of the text included, in a module that nobody calls."""
    left = count - 33  # of what stands around the statements, which have four each
    return ("etch 1\nparam a\ndim A = a\nmodule g(x[A]) -> x[A] {\n" + "x = x\n" * (left // 4) +
            "x = " + "-" * (left % 4) + "x\n}\n")


def assumptions(count):
    """Each says what no other does."""
    return "etch 1\nparam a, b\n" + "".join(f"assume a*{i + 2} >= b - {i * 3}\n" for i in range(count))


def plans(count):
    return TRAINED.format(mesh="[dp]", more="") + "".join(
        f"parallel p{i} {{ mesh [dp]; shard B @ dp }}\n" for i in range(count - 1))


def trained(mesh="[dp]", more=""):
    return lambda _: TRAINED.format(mesh=mesh, more=more)


def lowered(*options, **sets):
    """Lowers without writing, `sets` given by functions of the size."""
    def arguments(size):
        given = {"batch": lambda n: 4, "hidden": lambda n: 4, "dp": lambda n: 1, **sets}
        return ["lower", "s.etch", "-n", *options, "--set",
                ",".join(f"{name}={of(size)}" for name, of in given.items())]
    return arguments


def swept(count):
    """That many plans, each of which a sweep takes with a hundred configs."""
    return ("etch 1\nparam a\n" + "".join(f"config c{i} {{ a = {i + 1} }}\n" for i in range(100)) +
            "".join(f"parallel p{i} {{ mesh [d{i} = 1] }}\n" for i in range(count)))


def named(letter, count):
    return ",".join(f"{letter}{i}" for i in range(count))


def varint(number):
    encoded = bytearray()
    while number >= 128:
        encoded.append(number % 128 + 128)
        number //= 128
    return bytes(encoded) + bytes([number])


def framed(raw):
    return varint(len(raw)) + raw


def text(field, raw):
    """A field of a message that is a text or a message."""
    return varint(field << 3 | 2) + framed(raw)


def whole(field, number):
    """A field of a message that is an integer."""
    return varint(field << 3) + varint(number)


def attribute(name, value):
    return text(10, text(1, name) + value)


def node(number=0, more=b""):
    """A computation of a trace."""
    return (whole(1, number) + text(2, b"n") + whole(3, 4) + attribute(b"is_cpu_op", whole(27, 0)) +
            attribute(b"num_ops", whole(9, 1000)) + attribute(b"tensor_size", whole(13, 65536)) + more)


def trace(*nodes):
    return framed(text(1, b"0.0.4")) + b"".join(map(framed, nodes))


def traced(more, *arguments):
    """A folder with the trace of one rank, in which one node has `more` of the size."""
    return dict(files=lambda n: {"t/t.0.et": trace(node(0), node(1, whole(5, 0) + more(n)))},
                arguments=lambda n: arguments or ["verify", "t"])


def filled(size):
    """An attribute that makes the node as long as `size`."""
    rest = size - len(node(1, whole(5, 0)))
    for header in range(8, 24):
        made = attribute(b"x", text(29, b"y" * (rest - header)))
        if len(made) == rest:
            return made
    raise AssertionError("no attribute has this size")


BYTE = [bytes([i]) for i in range(256)]
NODE_OF_4 = text(2, b"n") + whole(3, 4) + attribute(b"is_cpu_op",
                                                    whole(27, 0)) + attribute(b"num_ops",
                                                                              whole(9, 1)) + attribute(
b"tensor_size", whole(13, 1))


def many_nodes(count):
    """A trace; numbers of nodes have four bytes each, so that blocks of nodes are alike but for two of
    them."""
    begin = varint(len(NODE_OF_4) + 5) + whole(1, 0)[:1]
    blocks = []
    for block in range(0, count, 1 << 14):
        end = BYTE[block >> 14 & 127 | 128] + BYTE[block >> 21] + NODE_OF_4
        blocks.append(b"".join([begin + BYTE[i & 127 | 128] + BYTE[i >> 7 | 128] + end
                                for i in range(min(1 << 14, count - block))]))
    return {"t/t.0.et": framed(text(1, b"0.0.4")) + b"".join(blocks)}


def many_dependencies(count):
    """A trace in which every node waits for all before it, and the last one for the rest of the count."""
    packed = [varint(i) for i in range(8192)]
    nodes, left, number, before = [node(0)], count, 0, b""
    while left:
        number += 1
        before += packed[number - 1]
        if number > left:
            before = b"".join(packed[:left])
        left -= min(number, left)
        nodes.append(node(number, text(5, before)))
    return {"t/t.0.et": trace(*nodes)}


def commented(length):
    return "#" * (length - 1) + "\n"


def large_texts(size):
    """A spec and what it imports, of `size` bytes together."""
    texts = {"s.etch": 'etch 1\nimport "f.etch"\nimport "g.etch"\nparam a\n', "f.etch": "etch 1\nparam b\n",
             "g.etch": "etch 1\nparam c\n"}
    left = size - sum(map(len, texts.values()))
    each = left // len(texts)
    return {name: head + commented(left - 2 * each if name == "s.etch" else each) for name,
            head in texts.items()}


def assembled(size):
    head = 'file t.0.et\nmetadata "0.0.4"\n'
    return {"t.txt": head + commented(size - len(head))}


def groups(size):
    return {"t/t.0.et": trace(node()), "t/comm_group.json": '{' + " " * (size - 2) + "}"}


def cut(stages="pp", chunks="1", micro="micro"):
    """A plan of a pipeline, to be shown."""
    spec = TRAINED.format(mesh="[dp, pp]", more=f"; stage (layer) @ pp, schedule = interleaved(virtual = v)")
    return dict(files=lambda n: {"s.etch": spec.replace("micro = 1", "micro = 1, v = 1")},
                arguments=lambda n: ["show", "s.etch", "--pipeline", "--set",
                                     f"batch={micro},hidden=4,dp=1,layers={stages},pp={stages},micro={micro},"
                                     f"v={chunks}".replace("SIZE", str(n))])


def config(make, **how):
    """A config, imported."""
    return dict(files=lambda n: {"c.json": make(n)}, arguments=lambda n: ["import", "c.json"], **how)


def fractions(count):
    return "+".join(f"1/(v{i}+a)" for i in range(count))


# Limits that no input of the program shows alone, or none that is small enough: the test that does, by its
# name.
ELSEWHERE = {
    "MAX_ERRORS": "tests/acceptance/test_limits.py test_errors",
    "nesting": "tests/symbolic/test_limits.c brackets",
    "atoms": "tests/symbolic/test_limits.c different_functions",
    "MOST_LOOPED": "tests/symbolic/test_limits.c added_terms",
    "ETCH_MOST_LOOPED": "tests/symbolic/test_program.c sums_are_loops",
    "ETCH_MEMORY_LIMIT": "tests/session/test_api.c a_memory_limit_ends_a_call_and_not_the_process",
    "MOST_BYTES": "tests/trace/test_limits.c programs_fill_their_room",
    "MAX_INSTRUCTIONS": "tests/symbolic/test_limits.c compiled_instructions",
    "MAX_LOOPS": "tests/symbolic/test_limits.c compiled_loops",
    "CLI_MOST_EVENTS": "tests/simulate/test_pictures.py test_refused",
    "ETCH_MOST_CLASSES": "tests/simulate/test_run.py test_most_classes",
    "MOST_PICOSECONDS": "tests/simulate/test_run.py test_longest_node",
    "ETCH_LEVEL_SIDES": "tests/machine/test_shipped.py check_limits",
    "MOST_PLACES": "tests/machine/test_shipped.py check_limits",
    "MOST_WINDOW_LOG": "tests/acceptance/test_compressed.py test_what_a_frame_asks_for",
    "ETCH_SERIES_MOST": "tests/acceptance/test_loops.py test_longest_text",
    "ETCH_SHEET_COLUMNS": "tests/machine/test_shipped.py check_limits",
    "MOST_JOBS": "tests/acceptance/test_limits.py test_counts_of_options",
    "MOST_COUNTED": "tests/acceptance/test_limits.py test_counts_of_options",
    "MOST_NAMES": "tests/acceptance/test_limits.py test_rows",
    "MOST_OUTER": "tests/acceptance/test_solve.py test_many_combinations",
    "MOST_POINTS": "tests/acceptance/test_limits.py test_rows",
    "MOST_FITTED": "tests/acceptance/test_recompute_fit.py test_most_layers",
    "MOST_TILES": "tests/acceptance/test_limits.py test_rows",
}

CASES = {
    "ETCH_AST_DEPTH": Limit(499, 501, "E0901", **spec(lambda n: f"etch 1\nparam a = {'(' * n}1{')' * n}\n")),
    "ETCH_NAME_LIMIT": Limit(200, 201, "E0123", **spec(lambda n: f"etch 1\nparam {'a' * n}\n")),
    "ETCH_FILE_LIMIT": Limit(64 * 1024 * 1024, 64 * 1024 * 1024 + 1, "E0203", status=3,
                             **spec(lambda n: "etch 1\nparam a\n" + "#" * (n - 16) + "\n")),
    "ETCH_TOTAL_LIMIT": Limit(1 << 27, (1 << 27) + 1, "E0903", nightly=True, files=large_texts,
                              arguments=lambda _: ["check", "s.etch"]),
    "ETCH_CONFIG_LIMIT": Limit(4 << 20, (4 << 20) + 1, "E0289",
                               **config(lambda n: '{"model_type": "llama"}' + " " * (n - 23))),
    "ETCH_CONFIG_DEPTH": Limit(64, 65, "E0901",
                               **config(lambda n: '{"model_type": "llama", "id2label": ' + "[" * (n - 1) +
                                        "]" * (n - 1) + "}")),
    "ETCH_CONFIG_MOST_SIZE": Limit(10**9, 10**9 + 1, "E0283",
                                   **config(lambda n: f'{{"model_type": "llama", "vocab_size": {n}}}')),
    "ETCH_CONFIG_MOST_LAYERS": Limit(10**5, 10**5 + 1, "E0283", **config(
        lambda n: f'{{"model_type": "llama", "num_hidden_layers": {n}}}')),
    "ETCH_IMPORT_DEPTH": Limit(64, 65, "E0902", files=imports, arguments=lambda _: ["check", "s.etch"]),
    "ETCH_SPEC_NAMES": Limit(100000, 100001, "E0906", **spec(declared)),
    "ETCH_SPEC_TOKENS": Limit(1500000, 1500001, "E0906", says="words and signs",
                              **spec(tokens, "query", "a")),
    "ETCH_SPEC_ASSUMPTIONS": Limit(1000, 1001, "E0906", says="assumptions", **spec(assumptions)),
    "ETCH_SPEC_PLANS": Limit(500, 501, "E0906", **spec(plans)),
    "ETCH_CALL_DEPTH": Limit(64, 65, "E0243", **spec(calls)),
    "ETCH_LOOPS_NESTED": Limit(400, 401, "E0913", **spec(loops, "query", "flops(forward)")),
    "ETCH_MODEL_OPS": Limit(50000, 50001, "E0920", **spec(ops, "query", "flops(forward)")),
    "ETCH_MODEL_STATEMENTS": Limit(400000, 400001, "E0920", **spec(statements)),
    "MOST_BREAKS": Limit(30, 31, "E0250", **spec(conditions)),
    "MOST_INTERVALS": Limit(8, 9, "E0250", **spec(nested_conditions)),
    "MOST_PERIOD": Limit(256, 257, "E0250", **spec(period)),
    "MOST_CLASSES": Limit(64, 65, "E0250", **spec(classes)),
    "ETCH_DIM_DEPTH": Limit(200, 201, "E0901", **spec(dims)),
    "ETCH_VALUE_DEPTH": Limit(200, 201, "E0901", **spec(values, "query", "p0", "--config", "c")),
    "ETCH_MAX_AXES": Limit(16, 17, "E0422", **spec(axes)),
    "terms": Limit(17, 18, "E0904", status=4, says="terms of one expression: 200000",
                   **formula(fractions, lambda n: n)),
    "exponent": Limit(1000000, 1000001, "E0904", status=4, says="exponent of one factor: 1000000",
                      **formula(lambda n: f"a^{n}")),
    "digits": Limit(99999, 102000, "E0904", status=4, says="digits of one number: 100000",
                    **formula(lambda n: f"(10^{n // 2})*(10^{n - n // 2})*7/(a+b)")),
    "depth": Limit(100, 101, "E0904", status=4, says="depth of opaque functions: 100",
                   files=lambda n: {"s.etch": "etch 1\nparam a\ndim E0 = a\n" + "".join(
                       f"dim E{i + 1} = (E{i} + 1)//2*a\n" for i in range(n))},
                   arguments=lambda n: ["query", "s.etch", f"E{n}"]),
    "MOST_OPEN": Limit(10, 11, "E0904", status=4, says="iterations, one after the other: 10",
                       files=lambda n: {"s.etch": open_loops(n)},
                       arguments=lambda n: ["query", "s.etch", "saved(of=m)"]),
    "ETCH_REQUEST_OPERATIONS": Limit(106, 107, "E0904", status=4, says="counted operations: 250000000",
                        **formula(lambda n: "+".join(f"1/(a+{i + 1})" for i in range(n)))),
    # 16*149 powers of a, and more variables than a packed monomial has
    "MOST_LISTED": Limit(65, 66, "E0904", status=4, says="in one multiplication: 6000000",
                         **formula(lambda n: f"(({'+'.join(f'a^{i}' for i in range(16))})"
                                             f"*({'+'.join(f'a^{16 * i}' for i in range(149))})"
                                             f"+{'+'.join(f'v{i}' for i in range(n))})^2", lambda n: n)),
    "MOST_HASHED": Limit(63, 64, "E0904", status=4, says="in one multiplication: 40000000",
                         **formula(lambda n: f"(a+b+v0+v1)^{n}", 2)),
    "MOST_ADDED": Limit(14142, 14143, "E0904", status=4, says="in one multiplication: 200000000",
                        # 14142^2 is just below
                        **formula(lambda n: f"((a^{n}-1)/(a-1))*((a^14142-1)/(a-1))")),
    "ETCH_SYM_MAX_WORK": Limit(9, 10, "E0904", status=4, says="words of coefficients at a time: 50000000",
                               **dict(
formula(fractions, lambda n: n), arguments=lambda n: ["query", "s.etch", fractions(n), "--format", "json"])),
    "ETCH_MOST_RUNS": Limit(2**22, 2**22 + 1, "E0911", status=4, **dict(  # all but one of them do nothing
        spec(lambda _: TRAINED.format(mesh="[dp]", more="").replace(
            "repeat layers as layer {", "repeat layers as layer {\n if layer == 5 {").replace(
            "\n  }\n  l[]", "\n } }\n  l[]")), arguments=lowered(layers=lambda n: n))),
    "ETCH_MOST_RANK_NODES": Limit(1048575, 1048576, "E0911", status=4, says="at most 4194304 nodes", **dict(
        spec(trained()), arguments=lowered(layers=lambda n: n))),
    "ETCH_MOST_NODES": Limit(262143, 262144, "E0710", status=0, severity="warning", **dict(
        spec(trained()), arguments=lowered(layers=lambda n: n))),  # four nodes a layer, and two
    "ETCH_MOST_JOB_CELLS": Limit(463, 464, "E0911", status=4, **dict(
        spec(lambda n: trained("[dp, pp]")(n).replace("@ dp }", "@ dp; stage layer @ pp }")),
        arguments=lowered(**dict.fromkeys(("layers", "micro", "pp"), lambda n: n), batch=lambda n: 4 * n))),
    "ETCH_MOST_GROUP_ID": Limit(2145, 2146, "E0711", status=0, severity="warning", **dict(
        spec(trained("[dp, tp]", "; shard H @ tp")),
        # and two more
        arguments=lowered("--groups", "file", dp=lambda n: n, tp=lambda n: 2, batch=lambda n: 4 * n,
                          hidden=lambda n: 8))),
    # plans, of a hundred configs each
    "MOST_FRAMES": Limit(100, 101, "E0652", says="10000", files=lambda n: {"s.etch": swept(n)},
                         arguments=lambda n: ["sweep", "s.etch", "--plans", named("p", n), "--configs",
                                              named("c", 100), "--select", "a", "-q"]),
    "ETCH_LOOP_DEPTH": Limit(64, 65, "E0913", status=4,
                             files=lambda n: {"s.etch": loops(n).replace("repeat 2", "repeat 1") +
                                              "parallel p { mesh [dp]; shard B @ dp }\n"},
                             arguments=lowered()),
    "ETCH_MAX_RANKS": Limit(2**20, 2**20 + 1, "E0910", status=4, **dict(
        spec(trained()), arguments=lowered(dp=lambda n: n, batch=lambda n: n))),
    "MOST_RANKS": Limit(2**20, 2**20 + 1, "E0930", status=4, below_status=1, below_code="E0803",
                        files=lambda n: {f"t/t.{n - 1}.et": trace(node())},
                        arguments=lambda n: ["verify", "t"]),
    "ETCH_RANK_NODE_LIMIT": Limit(1 << 22, (1 << 22) + 1, "E0930", status=4, nightly=True,
                                  files=many_nodes, arguments=lambda _: ["verify", "t"]),
    "ETCH_RANK_DEP_LIMIT": Limit(1 << 24, (1 << 24) + 1, "E0930", status=4, nightly=True,
                                 files=many_dependencies,
                                 arguments=lambda _: ["verify", "t"]),
    "ETCH_TRACE_MESSAGE_LIMIT": Limit(16 << 20, (16 << 20) + 1, "E0802", **traced(
        lambda n: filled(n))),
    "ETCH_TRACE_ATTR_LIMIT": Limit(4096, 4097, "E0802", **traced(
        lambda n: b"".join(attribute(b"x%d" % i, whole(27, 1)) for i in range(n - 3)))),
    "ETCH_TRACE_VALUE_LIMIT": Limit(2**18, 2**18 + 1, "E0802", **traced(
        lambda n: attribute(b"x", text(10, whole(1, 7) * (n - 3))))),
    "ETCH_TRACE_DEP_LIMIT": Limit(2**20, 2**20 + 1, "E0802", **traced(
        lambda n: whole(5, 0) * (n - 1))),
    "FILE_LIMIT": Limit(64 << 20, (64 << 20) + 1, "E0801", status=3, files=groups,
                        arguments=lambda n: ["verify", "t"]),
    "GROUP_FILE_LIMIT": Limit(48 << 20, (48 << 20) + 1, "E0891", status=3, nightly=True, files=groups,
                              arguments=lambda n: ["dump", "t", "--text"]),
    "ETCH_MOST_STAGES": Limit(2**20, 2**20 + 1, "E0521", below_status=4, below_code="E0919",
                              **cut(stages="SIZE", micro="8")),
    "ETCH_MOST_CHUNKS": Limit(2**20, 2**20 + 1, "E0521", below_status=4, below_code="E0919",
                              **cut(stages="2", chunks="SIZE", micro="8")),
    "ETCH_MOST_MICROBATCHES": Limit(2**32, 2**32 + 1, "E0521", below_status=4, below_code="E0919",
                                    **cut(stages="2", micro="SIZE")),
    "MOST_CELLS": Limit(174760, 174761, "E0919", status=4, **cut(stages="2", micro="SIZE")),
    "MOST_CURVE_ROWS": Limit(32768, 32769, "E0919", status=4, files=cut()["files"], arguments=lambda n: [
        "memory", "s.etch", "--set", f"batch={n},hidden=4,dp=1,layers=1,pp=1,micro={n},v=1"]),
}

# The same limits where they end otherwise.
ALSO = [
    Limit(1 << 27, (1 << 27) + 1, "E0903", status=4, nightly=True, files=assembled,
          arguments=lambda _: ["assemble", "t.txt", "-o", "made"]),
]


def chain(step):
    """Sizes of dims, each made from the one before it: `@`."""
    def make(size):
        lines = [f"dim E{i + 1} = {step.replace('@', f'E{i}').replace('#', f'v{i}')}\n" for i in range(size)]
        return "dim E0 = a\n" + "".join(lines), f"E{size}"
    return make


def joined(operator, part):
    return lambda size: ("", operator.join(part.format(i=i, k=(i + 1) % size, n=i + 1) for i in range(size)))


# By name, from a size: definitions, and an expression in a, b, v0, v1 ...
EXPRESSIONS = {
    "sum of fractions": joined("+", "1/(v{i}+a)"),
    "sum of squared fractions": joined("+", "1/(v{i}+a)^2"),
    "sum of fractions of one variable": joined("+", "1/(a+{n})"),
    "sum of fractions of pairs": joined("+", "1/(v{i}*v{k}+a)"),
    "product of sums": joined("*", "(v{i}+a+b)"),
    "product of maxima": joined("*", "max(v{i},a)"),
    "product of distances": joined("*", "abs(v{i}-v{k})"),
    "product of floors": joined("*", "(1+floor(a/(v{i}+1)))"),
    "power of a sum": lambda n: ("", f"(a+b+v0+v1)^{n}"),
    "reciprocal of a power": lambda n: ("", f"(a+b+v0)^-{n}"),
    "power of fractions": lambda n: ("", f"(1/(a+b)+1/(v0+v1))^{n}"),
    "quotient of powers": lambda n: ("", f"((a+b)^{n}-(a-b)^{n})/((a+b)^{n}+(a-b)^{n})"),
    "greatest of products": lambda n: ("", f"max({','.join(f'v{i}*v{(i * 7 + 3) % n}' for i in range(n))})"),
    "greatest of fractions": lambda n: ("", f"max({','.join(f'1/(v{i}+a)' for i in range(n))})"),
    "maxima inside maxima": chain("max(@+#,@-#)"),
    "floors inside floors": chain("floor(@/#)+1"),
    "remainders of remainders": chain("(@*#+1)%(#+2)"),
    "fractions inside fractions": chain("1/(#+@)"),
}
