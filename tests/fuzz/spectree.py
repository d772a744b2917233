"""Specs as trees, for what breeds new ones of them: a statement is a list of tokens and blocks, a block a
list of statements. What is written of a tree is read as the same tree, and means the same."""

import re

TOKEN = re.compile(r"""(?P<space>[ \t\r]+|\#[^\n]*)|(?P<end>\n|;)|(?P<name>[A-Za-z_][A-Za-z0-9_]*'*)
                       |(?P<number>\d+(?:\.\d+)?)|(?P<string>"[^"\n]*")
                       |(?P<sign>->|\.\.|//|==|!=|<=|>=|[^\s])""", re.X)
GOES_ON = {",", "+", "-", "*", "/", "^", "="}


class Block(list):
    """Statements between braces."""


def tokens(text):
    """Words and signs; None where a statement ends."""
    depth, last = 0, None
    for match in TOKEN.finditer(text):
        word = match[0]
        if match["space"]:
            continue
        if match["end"]:
            if depth:
                if word == ";":
                    yield word
                continue
            if word == ";" or last not in GOES_ON:
                yield None
            continue
        depth += (word in "([") - (word in ")]")
        last = word
        yield word


def read(text):
    """The block of a file."""
    root = Block()
    stack, statement = [root], []

    def close():
        nonlocal statement
        if statement:
            stack[-1].append(statement)
        statement = []

    waiting = []
    for word in tokens(text):
        if word is None:
            close()
        elif word == "{":
            block = Block()
            statement.append(block)
            waiting.append(statement)
            stack.append(block)
            statement = []
        elif word == "}":
            close()
            if len(stack) == 1:
                raise ValueError("a brace too many")
            stack.pop()
            statement = waiting.pop()
        else:
            statement.append(word)
    close()
    return root


def write(block, indent=""):
    """The text of a block, a line for each statement."""
    lines = []
    for statement in block:
        text = ""
        for part in statement:
            if isinstance(part, Block):
                inner = write(part, indent + "  ")
                text += " {" + ("\n" + inner + "\n" + indent if inner else "") + "}"
            else:
                glued = (not text or part in ",()[];'" or part == ".." or text[-1] in "([" or
                         text.endswith(".."))
                apart = text and text[-1] not in "([" and (not glued or part == "(")
                text += " " + part if apart else part
        lines.append(indent + text)
    return "\n".join(lines)


def flat(statement):
    """All tokens of a statement, those of its blocks too."""
    for part in statement:
        if isinstance(part, Block):
            for inner in part:
                yield from flat(inner)
        else:
            yield part


def blocks(block):
    """A block, and those inside of it."""
    yield block
    for statement in block:
        for part in statement:
            if isinstance(part, Block):
                yield from blocks(part)


def split(words, sign=","):
    """The parts of a list of tokens between commas, but for those in brackets."""
    found, depth = [[]], 0
    for word in words:
        if not isinstance(word, Block):
            depth += (word in ("(", "[")) - (word in (")", "]"))
        if word == sign and depth == 0:
            found.append([])
        else:
            found[-1].append(word)
    return [part for part in found if part]
