"""Chakra messages for tests: random ones, made and encoded by the official protobuf runtime, and bytes that
no encoder would write but every decoder must take."""

import math
import os
import sys

sys.path.insert(0, os.path.join(os.environ["ETCH_SOURCE_DIR"], "tests", "oracle"))
import trace  # noqa: E402

SCALARS = ["double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64",
           "sfixed32",
           "sfixed64", "bool", "string", "bytes"]
TEXTS = ["", "x", "F0.layer3.q", 'a "quote" and a \\', "two\nlines\ttab", "größe 大小 \U0001f642", "\x01\x7f",
         "=", "#", "doc"]


def varint(number):
    encoded = bytearray()
    while number >= 128:
        encoded.append(number % 128 + 128)
        number //= 128
    encoded.append(number)
    return bytes(encoded)


def framed(raw):
    return varint(len(raw)) + raw


def serialize(message):
    return message.SerializeToString(deterministic=True)


def pack(metadata, nodes):
    """The bytes of a trace."""
    return b"".join(framed(serialize(message)) for message in [metadata, *nodes])


def scalar(random, kind):
    """A random value of a kind, its limits more often than chance would have them."""
    if kind == "bool":
        return random.random() < 0.5
    if kind == "string":
        return random.choice(TEXTS)
    if kind == "bytes":
        return random.randbytes(random.randrange(6))
    if kind in ("double", "float"):
        choices = [0.0, -0.0, 0.1, -1.5, 1e30, 5e-324, math.inf, -math.inf, math.nan,
                   random.uniform(-1e6, 1e6)]
        return random.choice(choices)
    bits = int(kind[-2:])
    low, high = (0, 2**bits - 1) if kind[0] in "uf" else (-2**(bits - 1), 2**(bits - 1) - 1)
    return random.choice([low, high, 0, 1, random.randint(low, high)])


def add_attribute(random, message):
    attribute = message.attr.add()
    attribute.name = random.choice(TEXTS + ["num_ops", "tensor_size", "phase"])
    if random.random() < 0.1:
        attribute.doc_string = random.choice(TEXTS)
    kind = random.choice(SCALARS)
    if random.random() < 0.05:
        return
    if random.random() < 0.5:
        setattr(attribute, kind + "_val", scalar(random, kind))
        return
    values = getattr(attribute, kind + "_list")
    values.SetInParent()
    values.values.extend(scalar(random, kind) for _ in range(random.randrange(4)))


def random_metadata(random):
    metadata = trace.MetadataMessage(version=random.choice(["0.0.4", "1.0.0", ""]))
    for _ in range(random.randrange(3)):
        add_attribute(random, metadata)
    return metadata


def random_node(random, number):
    node = trace.NodeMessage(id=random.choice([number, number, 2**64 - 1]), name=random.choice(TEXTS))
    node.type = random.choice([0, 1, 2, 3, 4, 5, 6, 7, 7, 4, 8, 9, 99, -1])
    for deps in (node.data_deps, node.ctrl_deps):
        deps.extend(random.choice([0, 1, 127, 128, 2**64 - 1]) for _ in range(random.choice([0, 0, 1, 3])))
    for io in (node.inputs, node.outputs):
        if random.random() < 0.2:
            io.SetInParent()
            io.values, io.shapes, io.types = (random.choice(TEXTS) for _ in range(3))
    if random.random() < 0.2:
        node.start_time_micros, node.duration_micros = random.randrange(3), random.randrange(2**64)
    for _ in range(random.randrange(6)):
        add_attribute(random, node)
    return node


def odd_encoding(random, message):
    """The bytes of a message in an order and form that is allowed and that no encoder chooses."""
    if isinstance(message, trace.MetadataMessage) and not message.version:
        message.version = "1"  # without it, metadata with an unknown field can be a node
    raw = serialize(message)
    extras = [b"\x98\x06\x07", b"\x9b\x06\x08\x01\x9c\x06", b"\xa2\x06\x02hi", b"\x20\x03",
              b"\x88\x80\x00\x05"]
    parts = [raw, random.choice(extras)]
    random.shuffle(parts)
    body = b"".join(parts)
    if random.random() < 0.5:
        return framed(body)
    padded = bytearray(varint(len(body)))
    padded[-1] |= 128
    return bytes(padded) + b"\x80\x00" + body
