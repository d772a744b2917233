"""Rewritings of the text of a spec that mean the same: operands swapped, values passed on under other names,
modules written out, calls written in place, loops and classes of iterations that have none, a loop as two."""

import re

NAME = r"[A-Za-z_]\w*"


def swap_operands(text):
    """a * b and a + b of two names, with or without dims declared."""
    return re.sub(rf"(=\s+)({NAME}) ([*+]) ({NAME})(?= *(#|tag|$))", r"\1\4 \3 \2", text, flags=re.M)


def pass_on(text):
    """The first operand of such a statement is another name for the value."""
    return re.sub(rf"(=\s+)({NAME}) ([*+]) ({NAME})(?= *(#|tag|$))", r"\1identity(\2) \3 \4", text,
                  flags=re.M)


def pass_on_weights(text):
    """The second operand, which is a weight for most, is another name for the value."""
    return re.sub(rf"(=\s+)({NAME}) ([*+]) ({NAME})(?= *(#|tag|$))", r"\1\2 \3 identity(\4)", text,
                  flags=re.M)


def outline(text):
    """A product with a weight is a module of its own, which has the weight as an argument."""
    dims = set(re.findall(r"[A-Z]\w*(?= *=)", " ".join(re.findall(r"^dim (.*)$", text, re.M))))
    for names in re.findall(r"^import .*\((.*)\)", text, re.M):
        dims |= {name.strip() for name in names.split(",")}
    modules = []

    def called(match):
        indent, result, shape, space, first, second = match.groups()
        declared = re.findall(rf"\b{second}\[([^\]]*)\]", text[:match.start()])
        used = {name.rstrip("'") for name in (declared[-1:] or [".."])[0].split(",") + shape.split(",")}
        if not used <= dims:
            return match.group()
        name = f"outlined_{len(modules)}"
        modules.append(f"\nmodule {name}(a[..], w[{declared[-1]}]) -> y[{shape}] {{\n"
                       f"  y[{shape}] = a * w\n}}\n")
        return f"{indent}{result}[{shape}]{space}= {name}({first}, {second})"

    text = re.sub(rf"^( +)({NAME})\[([^\]]*)\]( *)= ({NAME}) \* ({NAME})(?= *(?:#|tag|$))", called, text,
                  flags=re.M)
    return text + "".join(modules)


def terms_of(text):
    """What a sum adds up, as `a + b - c`: signs and terms; what is in brackets is of a term."""
    depth, found = 0, [["+", ""]]
    for at, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if not depth and sign in "+-" and text[at - 1:at + 2] == f" {sign} ":
            found.append([sign, ""])
        else:
            found[-1][1] += sign
    return [(sign, term.strip()) for sign, term in found]


def each_sum(text, write):
    """`write` gives, of its terms, a name that is new, its dims, and whether it is tagged, what stands before
    a sum, and the sum."""
    count = 0

    def written(match):
        nonlocal count
        indent, result, body, behind = match.groups()
        terms, dims = terms_of(body), re.sub(r"^[^[ ]*", "", result).strip()
        if len(terms) < 2 or (not dims and any("*" in re.sub(r"\(.*\)", "", term) for _, term in terms)):
            return match.group()
        count += 1
        before, body = write(terms, f"part_{count}", dims, "tag" in behind)
        return "".join(f"{indent}{line}\n" for line in before) + f"{indent}{result}= {body}{behind}"

    body = r"[^=#{}\n]*?"
    return re.sub(rf"^( +)({NAME}(?:\[[^\]]*\])? *)= ({body} [+-] {body})( *(?:#.*|tag .*)?)$", written, text,
                  flags=re.M)


def sum_of(terms):
    (_, first), *others = terms
    return first + "".join(f" {sign} {term}" for sign, term in others)


def name_sums(text):
    """What a sum has added before its last term has a name."""
    def named(terms, name, dims, _):
        if len(terms) == 2:
            return [], sum_of(terms)
        return [f"{name}{dims} = {sum_of(terms[:-1])}"], sum_of([("+", name), terms[-1]])
    return each_sum(text, named)


def pass_on_sums(text):
    """The same under another name, with a number that is taken away again."""
    def passed(terms, name, dims, is_tagged):
        if len(terms) == 2 and is_tagged:  # what is computed elsewhere is not what the tag speaks of
            return [], sum_of(terms)
        if len(terms) == 2:
            return [f"{name}{dims} = {sum_of(terms)} + 2"], f"identity({name}) - 2"
        first = f"{name}{dims} = {sum_of(terms[:2])} + 1"
        return [first], sum_of([("+", f"identity({name})"), *terms[2:], ("-", "1")])
    return each_sum(text, passed)


def negate_terms(text):
    """The last term has a name, with the other sign, where it is a value or a call."""
    def negated(terms, name, *_):
        sign, last = terms[-1]
        if re.fullmatch(r"[\d.]+|param.*", last) or "*" in re.sub(r"\(.*\)", "", last):
            return [], sum_of(terms)
        return [f"{name} = -{last}"], sum_of([*terms[:-1], ("-" if sign == "+" else "+", name)])
    return each_sum(text, negated)


def there_and_back(text):
    """x[H->H'] and back, in front of every contraction of a tensor that has H."""
    def renamed(match):
        indent, result, first, second = match.groups()
        return f"{indent}there_{first} = {first}[H->H']\n{indent}{result} = there_{first}[H'->H] * {second}"
    return re.sub(rf"^( +)([qkv]\[B,S'?,K?,?G?,?A?,?D\]) *= (x) \* ({NAME}) *$", renamed, text, flags=re.M)


UNUSED = """
module nobody_calls(x[B,S,H]) -> y[B,S,H] {
  weight unused_up[H,F], unused_down[F,H]
  t[B,S,F] = x * unused_up
  y        = gelu(t) * unused_down
}
"""


def add_module(text):
    return text + (UNUSED if re.search(r"^model ", text, re.M) else "")


def loops_of(text):
    """Outer loops: where each begins and ends, its indent, count, index, and what is in it."""
    found, done = [], 0
    for match in re.finditer(r"^( *)repeat (\w+) as (\w+) \{\n", text, re.M):
        if match.start() < done:
            continue
        depth, done = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[done], 0)
            done += 1
        found.append((match.start(), done, *match.groups(), text[match.end():done - 1]))
    return found


def each_loop(text, write):
    """`write` gives the text that stands for a loop, of the text that it has, indent, count, index, body."""
    for start, end, *parts in reversed(loops_of(text)):
        text = text[:start] + write(text[start:end], *parts) + text[end:]
    return text


def without_index(index, body):
    """The loop's body where there is no such index."""
    return re.sub(rf"\b{index}\b", "nothing", body)


def with_param(text, name):
    """The text with one more param, if it has something of it."""
    return text.replace("etch 1\n", f"etch 1\nparam {name} >= 0 = 0\n", 1) if name in text else text


def empty(count, index, body, indent):
    return f"{indent}repeat {count} as nothing {{\n{without_index(index, body)}}}"


def add_empty_loop(text):
    """In front of every outer loop stands one that does the same, and never."""
    return each_loop(text, lambda loop, indent, _, index, body:
                     f"{empty(0, index, body, indent)}\n{loop}")


def add_empty_loop_behind(text):
    return each_loop(text, lambda loop, indent, _, index, body:
                     f"{loop}\n{empty(0, index, body, indent)}")


def add_open_loops(text):
    """Loops that have no iteration unless a param is set."""
    return with_param(each_loop(text, lambda loop, indent, _, index, body:
                                f"{empty('unset', index, body, indent)}\n{loop}\n"
                                f"{empty('unset', index, body, indent)}"), "unset")


def with_own_weights(body):
    """The statements, with other weights."""
    declared = "".join(re.findall(r"^ *weight .*\n", body, re.M))
    names = re.findall(rf"(?:\bweight |\], *)({NAME})(?=\[)", declared)
    return re.sub(rf"\b({'|'.join(names)})\b", r"\1_more", body) if names else body


def add_open_loops_of_chain(text):
    """The same but in front of a loop that another one precedes. What a loop hands on is made where the last
    of what it reads is made (docs/pipelines.md): one in front of a decoder, which reads what the encoder ends
    with, takes what the decoder begins with to the last stage of the encoder."""
    for start, end, indent, _, index, body in reversed(loops_of(text)):
        idle, loop = empty("unset", index, body, indent), text[start:end]
        begin = max(text.rfind(f"\n{block} ", 0, start) for block in ("model", "module"))
        follows = re.search(r"^ *repeat ", text[begin:start], re.M)
        text = text[:start] + ("" if follows else f"{idle}\n") + f"{loop}\n{idle}" + text[end:]
    return with_param(text, "unset")


def add_empty_class(text):
    """Iterations before the first one do everything twice, with weights of their own."""
    return with_param(each_loop(text, lambda _, indent, count, index, body:
                                f"{indent}repeat {count} as {index} {{\n{indent}if {index} < unset {{\n"
                                f"{with_own_weights(body)}{indent}}}\n{body}{indent}}}"), "unset")


def split_loops(text, counts):
    """Each outer loop that does not ask for its index as two of the same name. `counts`: filled with the name
    of the count of each loop, which the two params NAME_begun and NAME_left add up to."""
    def two(loop, indent, count, index, body):
        if re.search(rf"\b{index}\b", body):
            return loop
        counts.add(count)
        return (f"{indent}repeat {count}_begun as {index} {{\n{body}{indent}}}\n"
                f"{indent}repeat {count}_left as {index} {{\n{body}{indent}}}")

    return each_loop(text, two)


def with_halves(text, counts):
    """The params that such counts are sums of; the second may be 0."""
    added = "".join(f"param {count}_begun, {count}_left >= 0\n" for count in sorted(counts))
    return text.replace("etch 1\n", f"etch 1\n{added}", 1)


def write_in_place(text):
    """The statements of modules stand where they are called, each time with names of their own."""
    modules = dict(re.findall(rf"^module ({NAME})\(x\[[^\n]*\{{\n(.*?)^\}}\n", text, re.M | re.S))
    calls = []

    def placed(match):
        indent, result, module, argument = match.groups()
        if module not in modules:
            return match.group()
        calls.append(module)
        body = re.sub(r"\b([a-z]+\d+)\b", rf"\1_at{len(calls)}", modules[module])
        body = re.sub(r"\bx\b", argument, re.sub(r"\by\b", result, body))
        return "".join(f"{indent}{line.strip()}\n" for line in body.splitlines()).rstrip("\n")

    return re.sub(rf"^( *)({NAME}) = ({NAME})\(({NAME})\)$", placed, text, flags=re.M)


REWRITINGS = {"sums named": name_sums, "sums passed on": pass_on_sums, "terms negated": negate_terms,
              "operands swapped": swap_operands, "passed on": pass_on, "weights passed on": pass_on_weights,
              "modules outlined": outline, "there and back": there_and_back,
              "a module more": add_module, "an empty loop added": add_empty_loop,
              "an empty loop added behind": add_empty_loop_behind}
# These are as they were with `unset = 0`.
OPEN = {"loops that a param keeps empty": add_open_loops, "a class that a param keeps empty": add_empty_class}
# The same where a plan has a chain of several loops: which stage makes what stays as it is.
OPEN_OF_CHAIN = OPEN | {"loops that a param keeps empty": add_open_loops_of_chain}
