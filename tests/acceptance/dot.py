"""A parser of the language of Graphviz, for tests of pictures."""

import re

TOKEN = re.compile(r'\s+|(?P<name>[A-Za-z_][A-Za-z_0-9]*|-?(?:\.\d+|\d+(?:\.\d*)?)|"(?:[^"\\]|\\.)*")'
                   r'|(?P<mark>->|[{}\[\]=;,])')


class Dot:
    """Reads the language of Graphviz (graphviz.org/doc/info/lang.html), without ports and HTML."""

    def __init__(self, text):
        self.tokens, self.at = [], 0
        position = 0
        while position < len(text):
            match = TOKEN.match(text, position)
            if not match:
                raise AssertionError(f"no DOT at {text[position:position + 40]!r}")
            position = match.end()
            if match.lastgroup:
                self.tokens.append(match[0])
        self.nodes, self.edges, self.clusters = {}, [], {}
        self.take("digraph")
        self.name()
        self.body(())
        assert self.at == len(self.tokens), "text behind the graph"

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, wanted):
        assert self.peek() == wanted, f"{wanted} expected, not {self.peek()}"
        self.at += 1

    def name(self):
        token = self.peek()
        assert token and re.match(r'[A-Za-z_0-9."-]',
                                  token) and token != "->", f"a name expected, not {token}"
        self.at += 1
        return re.sub(r"\\(.)", r"\1", token[1:-1].replace("\\n", "\n")) if token[0] == '"' else token

    def attributes(self):
        found = {}
        while self.peek() == "[":
            self.take("[")
            while self.peek() != "]":
                key = self.name()
                self.take("=")
                found[key] = self.name()
                if self.peek() in (",", ";"):
                    self.at += 1
            self.take("]")
        return found

    def body(self, way):
        self.take("{")
        while self.peek() != "}":
            self.statement(way)
            if self.peek() == ";":
                self.at += 1
        self.take("}")

    def statement(self, way):
        if self.peek() == "subgraph":
            self.take("subgraph")
            self.body((*way, self.name()))
            return
        if self.peek() in ("node", "edge", "graph"):
            self.at += 1
            self.attributes()
            return
        first = self.name()
        if self.peek() == "=":
            self.take("=")
            label = self.name()
            if first == "label" and way:
                assert self.clusters.setdefault(way, label) == label
            return
        chain = [first]
        while self.peek() == "->":
            self.take("->")
            chain.append(self.name())
        attributes = self.attributes()
        if len(chain) == 1:
            assert first not in self.nodes, f"{first} stands twice"
            self.nodes[first] = (way, attributes)
        self.edges += [(a, b, attributes) for a, b in zip(chain, chain[1:])]
