"""Rewrites specs without changing what they mean: every dim, module, tensor, config and plan gets another
name, and declarations stand in another order. Works on tokens and knows just as much of the language as that
takes."""

import random
import re

TOKEN = re.compile(r"""
    (?P<blank>[ \t\r]+|\#[^\n]*)
  | (?P<end>[\n;])
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<primes>'*)
  | (?P<number>\d+(?:\.\d+)?)
  | (?P<string>"[^"\n]*")
  | (?P<mark>->|\.\.|==|!=|<=|>=|//|[-+*/^=<>|%,.:()\[\]{}@~])
""", re.X)
KEYWORDS = set("as assume axis check cluster config device dim dtype else etch false for if import infer "
               "mesh model module offload pad "
               "parallel param pin repeat shard stage sweep tag train true use weight where zero".split())
CONTINUES = {",", "+", "-", "*", "/", "^", "="}  # a line that ends in one goes on


class Token:
    def __init__(self, match):
        self.kind = match.lastgroup if match.lastgroup != "primes" else "name"
        self.text = match["name"] or match[0]
        self.primes = match["primes"] or ""
        if self.kind == "name" and self.text in KEYWORDS:
            self.kind = "keyword"

    def __str__(self):
        return self.text + self.primes


def tokens_of(text):
    """The tokens of a spec, with line feeds inside brackets and after operators, blanks and comments left
    out. A ";" inside brackets is a mark."""
    found, at, depth = [], 0, 0
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match, text[at:at + 40]
        at = match.end()
        token = Token(match)
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if token.kind == "blank":
            continue
        if token.kind == "end":
            if depth and token.text == ";":
                token.kind = "mark"
            elif depth or not found or found[-1].kind == "end" or found[-1].text in CONTINUES:
                continue
            else:
                token.text = "\n"
        found.append(token)
    return found


# ---- names -------------------------------------------------------------------------------------------------


def is_mark(token, text):
    return token is not None and token.kind in ("mark", "keyword") and token.text == text


def listed(tokens, start):
    """Splits what follows `start` at commas outside brackets, up to the end of the statement: lists of
    tokens."""
    parts, depth = [[]], 0
    for token in tokens[start:]:
        if depth == 0 and (token.kind == "end" or token.text in (")", "{", "}") or is_mark(token, "tag")):
            break
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if depth == 0 and is_mark(token, ","):
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def closing(tokens, start):
    """Index of the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(tokens)):
        depth += (tokens[i].text in ("(", "[", "{")) - (tokens[i].text in (")", "]", "}"))
        if depth == 0:
            return i
    raise AssertionError("a bracket is open")


class Names:
    """The names of a spec by what they name, over all files that belong to it."""

    def __init__(self):
        self.dims, self.modules, self.tensors, self.configs, self.plans = set(), set(), set(), set(), set()
        self.kept = set()  # params, axes, tags, loops

    def renamed(self):
        return self.dims | self.modules | self.tensors | self.configs | self.plans

    def read(self, tokens):
        for i, token in enumerate(tokens):
            follower = tokens[i + 1] if i + 1 < len(tokens) else None
            before = tokens[i - 1] if i else None
            if token.kind == "keyword" and (before is None or before.kind == "end" or before.text == "{"):
                self.read_statement(token.text, tokens, i)
            if is_mark(token, "tag"):
                self.kept.update(part[0].text for part in listed(tokens, i + 1))
            if is_mark(token, "as") and follower.kind == "name":
                self.kept.add(follower.text)
            starts = before is not None and (before.kind == "end" or before.text == "{")
            if token.kind == "name" and starts and self.is_let(tokens, i):
                self.tensors.add(token.text)

    def read_statement(self, word, tokens, i):
        follower = tokens[i + 1]
        if word == "dim":
            self.dims.update(part[0].text for part in listed(tokens, i + 1))
        elif word == "param":
            self.kept.update(part[0].text for part in listed(tokens, i + 1))
        elif word == "weight":
            self.tensors.update(part[0].text for part in listed(tokens, i + 1))
        elif word == "config":
            self.configs.add(follower.text)
        elif word == "parallel":
            self.plans.add(follower.text)
        elif word == "mesh":
            self.kept.update(part[0].text for part in listed(tokens[:closing(tokens, i + 1)], i + 2))
        elif word in ("module", "model") and follower.kind == "name":
            self.modules.add(follower.text)
            self.read_signature(tokens, i + 2)

    def read_signature(self, tokens, start):
        end = closing(tokens, start)
        inside = tokens[start + 1:end]
        cut = next((k for k, token in enumerate(inside) if is_mark(token, ";")), len(inside))
        self.tensors.update(part[0].text for part in listed(inside[:cut], 0))
        self.dims.update(part[0].text for part in listed(inside[cut + 1:], 0))
        self.tensors.add(tokens[end + 2].text)  # behind the arrow

    @staticmethod
    def is_let(tokens, i):
        """Does the statement at `i` give a value to a tensor, inside a module?"""
        at = i + 1
        if is_mark(tokens[at], "["):
            at = closing(tokens, at) + 1
        if not is_mark(tokens[at], "="):
            return False
        depth = 0  # a module or a loop around it: the innermost open brace decides
        for k in range(i - 1, -1, -1):
            depth += (tokens[k].text == "}") - (tokens[k].text == "{")
            if depth < 0:
                head = k - 1
                while head >= 0 and tokens[head].kind != "end" and tokens[head].text not in ("{", "}"):
                    head -= 1
                return tokens[head + 1].text in ("module", "model", "repeat")
        return False


def rename(tokens, names, mapping):
    """Puts new names in place, except where a name of the list stands for something else: a tag, an option, a
    value that has no quotes."""
    parens, after_tag, line = [], False, []
    for i, token in enumerate(tokens):
        follower = tokens[i + 1] if i + 1 < len(tokens) else None
        if token.kind == "end":
            after_tag, line = False, []
            continue
        line.append(token)
        if is_mark(token, "tag"):
            after_tag = True
        if token.text in ("(", "["):
            parens.append(tokens[i - 1] if i else None)
        elif token.text in (")", "]"):
            parens.pop()
        if token.kind != "name" or token.text not in mapping or after_tag:
            continue
        if token.text in names.kept and is_selector(line):
            continue
        is_option = parens and is_mark(follower, "=") and token.text not in names.dims
        if is_option or line[0].text == "dtype":
            continue
        token.text = mapping[token.text]


def is_selector(line):
    """Is the last token of the line what `pin`, `for` or an `of =` names?"""
    return line[0].text in ("pin", "for",
                            "stage") and len(line) == 2 or len(line) > 2 and line[-3].text == "of"


def fresh_names(names, chance, taken):
    """Old name -> new name. By chance all are new ones, or the old ones change places."""
    old = sorted(names.renamed())
    if chance.random() < 0.5:
        new = [name for name in old if name not in names.kept]
        chance.shuffle(new)
    else:
        new = []
    while len(new) < len(old):
        name = "".join(chance.choice("abcdefghijklmnopqrstuvwxyzXYZ_") for _ in range(chance.randint(1, 12)))
        if name not in taken and name not in new and name not in old and name.strip("_"):
            new.append(name)
    chance.shuffle(new)
    return dict(zip(old, new))


# ---- order -------------------------------------------------------------------------------------------------


def statements(tokens):
    """Splits tokens at ends outside braces."""
    parts, depth = [[]], 0
    for token in tokens:
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0 and token.kind == "end":
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def shuffled_list(tokens, start, chance):
    """`tokens` with what the commas behind `start` separate in another order."""
    parts = listed(tokens, start)
    rest = tokens[start + sum(map(len, parts)) + len(parts) - 1:]
    chance.shuffle(parts)
    comma = Token(TOKEN.match(","))
    joined = [token for part in parts for token in (comma, *part)][1:]
    return tokens[:start] + joined + rest


def shuffled_statement(tokens, chance):
    word = tokens[0].text
    if word in ("param", "dim", "weight", "shard", "assume", "dtype"):
        return shuffled_list(tokens, 1, chance)
    if "{" not in [token.text for token in tokens]:
        return tokens
    start = [token.text for token in tokens].index("{")
    end = closing(tokens, start)
    head, inside, rest = tokens[:start + 1], tokens[start + 1:end], tokens[end:]
    inside = statements(inside)
    if word in ("config", "train"):
        inside = [shuffled_list(part, 0, chance) for part in inside]
    else:
        inside = [shuffled_statement(part, chance) for part in inside]
    if word in ("config", "train", "parallel"):
        chance.shuffle(inside)
    newline = Token(TOKEN.match("\n"))
    body = [newline] + [token for part in inside for token in (*part, newline)]
    return head + body + rest


def shuffled(tokens, chance):
    first, *others = statements(tokens)
    others = [shuffled_statement(part, chance) for part in others]
    chance.shuffle(others)
    newline = Token(TOKEN.match("\n"))
    return [token for part in (first, *others) for token in (*part, newline)]


# ---- files -------------------------------------------------------------------------------------------------


def text_of(tokens):
    return " ".join(str(token) for token in tokens).replace("\n ", "\n")


def rewrite(sources, seed, taken, new_names=True, new_order=True):
    """`sources`: name of a file -> text, all files of one spec. Gives the same files with other texts, and
    the names that took the place of the old ones. `taken`: names that mean something else in the language."""
    chance = random.Random(seed)
    files = {name: tokens_of(text) for name, text in sources.items()}
    names = Names()
    for tokens in files.values():
        names.read(tokens)
    mapping = fresh_names(names, chance, taken | names.kept) if new_names else {}
    for name, tokens in files.items():
        rename(tokens, names, mapping)
        files[name] = shuffled(tokens, chance) if new_order else tokens
    return {name: text_of(tokens) for name, tokens in files.items()}, mapping
