"""Holds documents against a JSON Schema, as far as docs/show.schema.json uses that language. A word of a
schema that is not known here is refused, not passed over. `breaches` is the list of what is wrong.

One keyword is etch's own: "indexOf": "ops" says that the number is an index into the list `ops` of the
document."""

import re

KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "properties", "required", "items",
         "additionalProperties", "enum", "const", "minimum", "minLength", "oneOf", "anyOf", "indexOf"}
TYPES = {"string": lambda v: isinstance(v, str), "null": lambda v: v is None,
         "boolean": lambda v: isinstance(v, bool), "object": lambda v: isinstance(v, dict),
         "array": lambda v: isinstance(v, list),
         "integer": lambda v: isinstance(v, int) and not isinstance(v, bool)}


class Schema:
    def __init__(self, schema):
        self.root = schema
        self.check_words(schema, "#")

    def check_words(self, schema, where):
        """A keyword that this file does not know would be a check that is not made."""
        for word, inner in schema.items():
            if word not in KNOWN:
                raise ValueError(f"{where}: '{word}' is no keyword that is known here")
            if word in ("properties", "$defs"):
                for name, part in inner.items():
                    self.check_words(part, f"{where}/{word}/{name}")
            elif word in ("oneOf", "anyOf"):
                for part in inner:
                    self.check_words(part, f"{where}/{word}")
            elif word == "items":
                self.check_words(inner, f"{where}/items")
            elif word == "$ref":
                self.resolve(inner)
            elif word == "additionalProperties" and inner is not False:
                raise ValueError(f"{where}: additionalProperties is false, or is left out")

    def resolve(self, reference):
        assert reference.startswith("#/$defs/"), reference
        return self.root["$defs"][reference.removeprefix("#/$defs/")]

    def breaches(self, document):
        found = []
        self.check(document, self.root, "$", document, found)
        return found

    def check(self, value, schema, where, document, found):
        if "$ref" in schema:
            self.check(value, self.resolve(schema["$ref"]), where, document, found)
        for word, fits in (("oneOf", lambda n: n == 1), ("anyOf", lambda n: n >= 1)):
            if word in schema:
                self.check_choice(value, schema[word], fits, where, document, found)
        types = schema.get("type")
        types = [types] if isinstance(types, str) else types
        if types and not any(TYPES[name](value) for name in types):
            found.append(f"{where}: {value!r:.80} is not of type {' or '.join(types)}")
            return
        if "const" in schema and value != schema["const"]:
            found.append(f"{where}: {value!r:.80} is not {schema['const']!r}")
        if "enum" in schema and value not in schema["enum"]:
            found.append(f"{where}: {value!r:.80} is none of {schema['enum']}")
        if isinstance(value, dict):
            self.check_members(value, schema, where, document, found)
        elif isinstance(value, list) and "items" in schema:
            for i, item in enumerate(value):
                self.check(item, schema["items"], f"{where}[{i}]", document, found)
        elif isinstance(value, str) and len(value) < schema.get("minLength", 0):
            found.append(f"{where}: a text of {len(value)} characters")
        elif TYPES["integer"](value):
            self.check_number(value, schema, where, document, found)

    @staticmethod
    def check_number(value, schema, where, document, found):
        if value < schema.get("minimum", value):
            found.append(f"{where}: {value} is less than {schema['minimum']}")
        if "indexOf" in schema and value >= len(document[schema["indexOf"]]):
            found.append(f"{where}: {value} is no index into {schema['indexOf']}")

    def check_members(self, value, schema, where, document, found):
        members = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                found.append(f"{where}: there is no '{name}'")
        for name, inner in value.items():
            if name in members:
                self.check(inner, members[name], f"{where}.{name}", document, found)
            elif schema.get("additionalProperties") is False:
                found.append(f"{where}: '{name}' is not said")

    def check_choice(self, value, choices, fits, where, document, found):
        tries = []
        for choice in choices:
            tries.append([])
            self.check(value, choice, where, document, tries[-1])
        if not fits(sum(not failed for failed in tries)):
            found += min((failed for failed in tries if failed), key=self.distance,
                         default=[f"{where}: fits twice"])

    @staticmethod
    def distance(failed):
        """How far a document is from a choice: what is called otherwise is meant to be another one."""
        return any(re.search(r": '.*' is not '", line) for line in failed), len(failed)
