"""Reads the expressions that all engines are measured on.

A file is lines `name = expression`, `check left == right`, `vars names`, `repeat count` ... `end` and, where
not everything is to be measured, `begin`. Expressions are + - * / ^, brackets, names and integers. What a
file says becomes one list of statements in postfix form, which every engine replays through its own
operations:

    ("let", slot, tokens)   slot := tokens; the last one is the result
    ("check", tokens)       the tokens leave two values, which must be equal
    ("begin",)              what is before it is not measured

A token is ("var", i), ("slot", i), ("int", n), or an operator "+", "-", "*", "/"; ("^", n) is a power.
"""

import ast
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent
# The least value of a size, and how many powers of two from it on are taken. Other variables are 1.
SIZES = {"B": (256, 3), "S": (2048, 3), "H": (4096, 2), "K": (8, 1), "G": (1, 4), "D": (64, 2),
         "I": (8192, 2),
         "V": (32768, 3), "L": (32, 2), "dp": (1, 5), "tp": (1, 4), "cp": (1, 3), "pp": (1, 4), "m": (1, 5),
         "c": (2, 2)}
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class Workload:
    def __init__(self, name):
        self.name = name
        self.variables = []
        self.statements = []
        self.slots = {}
        self.operations = 0
        self._read((FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines())

    def _read(self, lines):
        at = 0
        while at < len(lines):
            line = lines[at].partition("#")[0].strip()
            at += 1
            if line.startswith("repeat "):
                body = at
                while lines[at].strip() != "end":
                    at += 1
                for _ in range(int(line.split()[1])):
                    self._read(lines[body:at])
                at += 1
            elif line:
                self._statement(line)

    def _statement(self, line):
        word, _, rest = line.partition(" ")
        if word == "vars":
            self.variables = rest.split()
        elif word == "begin":
            self.statements.append(("begin",))
        elif word == "check":
            left, right = rest.split("==")
            self.statements.append(("check", self._postfix(left) + self._postfix(right)))
        else:
            tokens = self._postfix(rest.removeprefix("= "))
            self.statements.append(("let", self.slots.setdefault(word, len(self.slots)), tokens))

    def _postfix(self, text):
        tokens = []
        self._walk(ast.parse(text.strip().replace("^", "**"), mode="eval").body, tokens)
        return tokens

    def _walk(self, node, tokens):
        if isinstance(node, ast.Constant):
            tokens.append(("int", node.value))
        elif isinstance(node, ast.Name) and node.id in self.slots:
            tokens.append(("slot", self.slots[node.id]))
        elif isinstance(node, ast.Name):
            tokens.append(("var", self.variables.index(node.id)))
        elif isinstance(node.op, ast.Pow):
            self._walk(node.left, tokens)
            tokens.append(("^", node.right.value))
            self.operations += 1
        else:
            self._walk(node.left, tokens)
            self._walk(node.right, tokens)
            tokens.append(OPERATORS[type(node.op)])
            self.operations += 1

    @property
    def result(self):
        """The slot of the last statement that sets one."""
        return next(s[1] for s in reversed(self.statements) if s[0] == "let")

    def text(self):
        """The same for programs in C, one statement a line: replay.h reads it."""
        lines = [" ".join(map(str, ["var", name, *_size(name)])) for name in self.variables]
        for statement in self.statements:
            head = statement[0] if statement[0] != "let" else f"let {statement[1]}"
            lines.append(" ".join([head, *map(_word, statement[-1] if len(statement) > 1 else [])]))
        return "\n".join(lines) + "\n"


def configuration(name, i):
    """The value of a variable in configuration `i`: powers of two, so that sizes divide as they do in
    practice."""
    least, steps, factor = _size(name)
    mixed = (i + 1) * factor * 0x9e3779b97f4a7c15 % 2**64
    return least << (mixed >> 40) % steps


def _size(name):
    """The least value, the number of values, and an odd number that sets the variable apart from others."""
    least, steps = SIZES.get(name, (1, 1))
    return least, steps, 2 * list(SIZES).index(name) + 3 if name in SIZES else 1


def _word(token):
    if isinstance(token, str):
        return token
    letter = {"var": "v", "slot": "s", "int": "#", "^": "^"}[token[0]]
    return f"{letter}{token[1]}"


def replay(statements, variables, operate, slots, check):
    """Runs statements on Python values: `operate` maps operators to functions of two values, "int" to one
    that makes a value of a number and "^" to one of a value and a number."""
    for statement in statements:
        stack = []
        if statement[0] == "begin":
            continue
        for token in statement[-1]:
            if isinstance(token, str):
                right = stack.pop()
                stack.append(operate[token](stack.pop(), right))
            elif token[0] == "var":
                stack.append(variables[token[1]])
            elif token[0] == "slot":
                stack.append(slots[token[1]])
            elif token[0] == "^":
                stack.append(operate["^"](stack.pop(), token[1]))
            else:
                stack.append(operate["int"](token[1]))
        if statement[0] == "check":
            check(*stack)
        else:
            slots[statement[1]] = stack[0]
