"""C text in top-level pieces, as far as lints need it."""

import re

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[A-Za-z_]\w*|\d[\w.]*|\s+|.""", re.S)


def blank(text):
    """The same lines without comments, texts and preprocessor lines: what remains is code."""
    kept = []
    for token in TOKEN.findall(text):
        if token.startswith(("/*", "//")):
            kept.append("\n" * token.count("\n") or " ")
        elif token[0] in "\"'" and len(token) > 1:
            kept.append(token[0] * 2)
        else:
            kept.append(token)
    lines, continued = [], False
    for line in "".join(kept).split("\n"):
        directive = continued or line.lstrip().startswith("#")
        continued = directive and line.endswith("\\")
        lines.append("" if directive else line)
    return "\n".join(lines)


def functions(text):
    """Yields (name, line, body) for each function: the body with its braces, without comments and texts."""
    code = blank(text)
    depth, start, opened = 0, 0, None
    for at, character in enumerate(code):
        if character == "{":
            if depth == 0:
                opened = at
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                head = code[start:opened].rstrip()
                name = re.search(r"(\w+)\s*\([^{}]*\)\s*(?:__attribute__.*)?$", head, re.S)
                if name and "=" not in head.split("(")[0] and "typedef" not in head:
                    called = re.search(r"START_TEST\((\w+)\)", head)
                    yield called[1] if called else name[1], code.count("\n", 0,
                                                                       opened) + 1, code[opened:at + 1]
                    start = at + 1
        elif character == ";" and depth == 0:
            start = at + 1


def enumerators(text):
    """Yields (enumerator, line)."""
    code = blank(text)
    for match in re.finditer(r"\benum\b\s*\w*\s*\{([^{}]*)\}", code):
        depth, at_name = 0, True
        for token in re.finditer(r"[A-Za-z_]\w*|[(),]|\S", match[1]):
            if token[0] in "()":
                depth += 1 if token[0] == "(" else -1
            elif token[0] == "," and depth == 0:
                at_name = True
            elif at_name:
                yield token[0], code.count("\n", 0, match.start(1) + token.start()) + 1
                at_name = False


def tags(text):
    """Yields (tag or name of a type, line) for each type that is defined, not only declared."""
    code = blank(text)
    for match in re.finditer(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", code):
        yield match[1], code.count("\n", 0, match.start()) + 1
    for match in re.finditer(r"\btypedef\b[^;{}]*?(\w+)\s*;", code):
        if re.match(r"typedef\s+(?:struct|union|enum)\s+\w+\s+\w+\s*;", match[0]):
            continue
        yield match[1], code.count("\n", 0, match.start()) + 1
