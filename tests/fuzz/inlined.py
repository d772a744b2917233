"""A spec with a module of it written where it is called."""

import re

from spectree import Block, flat, read, split, write

NAME = re.compile(r"[A-Za-z_]\w*$")


def calls(spec):
    """Body, index and module of each plain call `y = module(a, b)`, as a whole statement."""
    for body in spec.bodies():
        for at, statement in enumerate(body):
            if "=" not in statement or statement[0] in ("weight", "dim", "repeat", "if", "("):
                continue
            sign = statement.index("=")
            right = statement[sign + 1:statement.index("tag") if "tag" in statement else len(statement)]
            if len(right) > 3 and right[0] in spec.modules and right[1] == "(" and right[-1] == ")":
                arguments = split(right[2:-1])
                if all(len(part) == 1 and
                       NAME.match(part[0]) for part in arguments) and ":" not in statement[:sign]:
                    yield body, at, right[0], [part[0] for part in arguments]


def signature(module):
    """Names of operands and of the one result, or None where there is more to it."""
    words = [word for word in module[2:] if isinstance(word, str)]
    if ";" in words or ".." in words or ":" in words or "=" in words:
        return None
    arrow = words.index("->")
    if words[arrow + 1] == "(":
        return None
    return [part[0] for part in split(words[1:arrow - 1])], words[arrow + 1]


def local(block):
    """Names that statements make."""
    found = set()
    for statement in block:
        if statement[0] == "weight":
            words = statement[1:statement.index("tag")] if "tag" in statement else statement[1:]
            found |= {part[0] for part in split(words)}
        elif statement[0] == "dim":
            return None
        elif statement[0] in ("repeat", "if"):
            for part in statement:
                if isinstance(part, Block):
                    inner = local(part)
                    if inner is None:
                        return None
                    found |= inner
            if "as" in statement:
                found.add(statement[statement.index("as") + 1])
        elif statement[0] == "(":
            words = statement[1:statement.index(")")]
            found |= {part[0] for part in split(words)}
        else:
            found.add(statement[0])
    return found


def renamed(block, mapping):
    """Names that are not keys of arguments, and not within the brackets of dims."""
    made = Block()
    for statement in block:
        words, depth = [], 0
        for at, part in enumerate(statement):
            if isinstance(part, Block):
                words.append(renamed(part, mapping))
                continue
            depth += (part == "[") - (part == "]")
            key = at + 1 < len(statement) and statement[at +
                                                        1] == "=" and at > 0 and statement[at - 1] in ("(",
                                                                                                       ",")
            call = at + 1 < len(statement) and statement[at + 1] == "("
            dims = depth > 0
            tagged = "tag" in statement[:at]
            words.append(part if key or call or dims or tagged else mapping.get(part, part))
        made.append(words)
    return made


def inlined(bred, chance):
    """The text with one call written out, or None: no plan and no run may speak of the module."""
    spec = bred.spec
    block = read(write(spec.block))
    copy = type(spec)(block)
    spoken = set()
    for statement in block:
        if statement[0] in ("parallel", "train", "infer", "check"):
            spoken |= set(".".join(str(word) for word in flat(statement)).split("."))
    found = [call for call in calls(copy) if call[2] not in spoken]
    if not found:
        return None
    body, at, name, arguments = chance.choice(found)
    module = copy.modules[name]
    sign = signature(module)
    names = local(module[-1])
    if sign is None or names is None or len(sign[0]) != len(arguments):
        return None
    if (names | set(sign[0])) & set(spec.dims) or (names | set(sign[0])) & set(spec.params):
        return None
    if {"tag", "cache"} & set(flat(module)) or names & spoken:
        return None
    operands, result = sign
    mapping = {old: f"{old}_here" for old in names | set(operands)}
    statement = body[at]
    made = Block()
    for operand, argument in zip(operands, arguments):
        made.append([mapping[operand], "=", argument])
    made += renamed(read(write(module[-1])), mapping)
    sign_at = statement.index("=")
    made.append([*statement[:sign_at], "=", mapping.get(result, result),
                 *(statement[statement.index("tag"):] if "tag" in statement else [])])
    body[at:at + 1] = made
    return "etch 1\n" + write(block) + "\n"
