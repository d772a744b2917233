"""Statements of tests in exact arithmetic: fractions of Python, nothing of etch. Names are integers >= 1
unless assumptions say `x from N` or `x real`; see decide.c for what a statement may be."""

import ast
import math
import operator
from fractions import Fraction

BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
          ast.FloorDiv: lambda a, b: Fraction(math.floor(a / b)), ast.Mod: lambda a,
          b: a - b * math.floor(a / b),
          ast.Pow: lambda a, b: a ** int(b)}
CALLS = {"max": max, "min": min, "abs": abs, "floor": lambda a: Fraction(math.floor(a)),
         "ceil": lambda a: Fraction(math.ceil(a)),
         "pow2": lambda a: Fraction(a.denominator == 1
                                    and a in (2**k for k in range(a.numerator.bit_length())))}


LONGEST_SUM = 3000


def parse(text):
    return ast.parse(text.strip().replace("^", "**"), mode="eval").body


def value(node, point):
    """ZeroDivisionError where it is undefined, or too long to be added up here."""
    if isinstance(node, ast.Constant):
        return Fraction(node.value)
    if isinstance(node, ast.Name):
        return point[node.id]
    if isinstance(node, ast.BinOp):
        return BINARY[type(node.op)](value(node.left, point), value(node.right, point))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -value(node.operand, point)
    if node.func.id == "sum":
        index, low, high, body = node.args
        bounds = range(math.ceil(value(low, point)), math.floor(value(high, point)) + 1)
        if len(bounds) > LONGEST_SUM:
            raise ZeroDivisionError
        return sum((value(body, point | {index.id: Fraction(i)}) for i in bounds), Fraction(0))
    return CALLS[node.func.id](*(value(a, point) for a in node.args))


def names(node):
    bound = {n.args[0].id for n in ast.walk(node) if isinstance(n, ast.Call) and n.func.id == "sum"}
    functions = {id(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in functions} - bound


class Statement:
    RELATIONS = ("==", "!=", ">=", "<=", "|", ">", "<")

    def __init__(self, text):
        self.text = text.strip()
        if self.text.startswith("integer "):
            self.relation, sides = "integer", [self.text[8:], "1"]
        else:
            self.relation = next(r for r in self.RELATIONS if r in self.text)
            sides = self.text.split(self.relation)
        self.left, self.right = map(parse, sides)
        self.names = names(self.left) | names(self.right)

    def holds(self, point):
        """None where a side is undefined."""
        try:
            left, right = value(self.left, point), value(self.right, point)
            if self.relation == "|":
                return (right / left).denominator == 1
        except ZeroDivisionError:
            return None
        return {"==": left == right, "!=": left != right, ">=": left >= right, "<=": left <= right,
                ">": left > right,
                "<": left < right, "integer": left.denominator == 1}[self.relation]


class Assumptions:
    def __init__(self, text):
        self.least, self.real, self.statements = {}, set(), []
        for part in filter(None, (p.strip() for p in text.split(";"))):
            words = part.split()
            if len(words) == 3 and words[1] == "from":
                self.least[words[0]] = int(words[2])
            elif len(words) == 2 and words[1] == "real":
                self.real.add(words[0])
            else:
                self.statements.append(Statement(part))
        self.names = set().union(*(s.names for s in self.statements), self.least, self.real)

    def allow(self, name, number):
        if name in self.real:
            return number > 0
        return number.denominator == 1 and number >= self.least.get(name, 1)

    def hold(self, point):
        return all(self.allow(n, v) for n,
                   v in point.items()) and all(s.holds(point) for s in self.statements)

    def point(self, rng, wanted, tries=200, fixed=None):
        """Random values of all names but the fixed ones that satisfy everything; None when none was found."""
        every = sorted(self.names | wanted)
        for _ in range(tries):
            most = rng.choice([2, 4, 8, 30, 1000])
            point = {n: self._draw(rng, n, most) for n in every} | (fixed or {})
            for statement in self.statements * 2:
                self._repair(rng, statement, point)
            point |= fixed or {}
            if self.hold(point):
                return point
        return None

    def _draw(self, rng, name, most):
        if name in self.real:
            return Fraction(rng.randint(1, most), rng.randint(1, 7))
        return Fraction(rng.randint(self.least.get(name, 1), most))

    @staticmethod
    def _repair(rng, statement, point):
        """Changes a side that is one name such that the statement holds."""
        left, right = statement.left, statement.right
        if statement.holds(point):
            return
        if statement.relation == "|" and isinstance(right, ast.Name):
            point[right.id] = value(left, point) * rng.randint(1, 9)
        elif statement.relation == "|" and isinstance(right, ast.BinOp) and isinstance(right.left, ast.Name):
            # d | n/m
            point[right.left.id] = value(left, point) * value(right.right, point) * rng.randint(1, 9)
        elif statement.relation == "|" and isinstance(right, ast.Constant):
            for name in names(left):
                point[name] = Fraction(rng.choice([d for d in range(1, right.value + 1)
                                                   if right.value % d == 0]))
        elif statement.relation == "==" and isinstance(left, ast.Call) and left.func.id == "pow2":
            for name in names(left):
                point[name] = Fraction(2 ** rng.randint(0, 6))
        elif statement.relation == "==" and isinstance(left, ast.Name):
            point[left.id] = value(right, point)
        elif statement.relation == "==" and isinstance(right, ast.Name):
            point[right.id] = value(left, point)
        elif statement.relation == ">=" and isinstance(left, ast.Name):
            point[left.id] = value(right, point) + rng.randint(0, 5)
        elif statement.relation == "<=" and isinstance(right, ast.Name):
            point[right.id] = value(left, point) + rng.randint(0, 5)
