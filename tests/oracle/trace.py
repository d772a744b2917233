"""Reads a folder of Chakra traces with the official protobuf runtime and holds it against every rule that
simulators rely on. It knows the schema and the manifest, and nothing of how traces are made.

    trace.py check FOLDER     prints what is wrong, one line each; status 1 when something is
    trace.py totals FOLDER    prints sums over the nodes of a rank as JSON: a list of rows, one for each set
                              of ranks with equal sums

As a module: `check(folder)` gives the list of complaints, `read(folder)` the folder as a `Folder`,
`totals(folder)` the rows. The schema is compiled with the program that $PROTOC names, else `protoc`.
"""

import collections
import json
import os
import pathlib
import re
import stat
import subprocess
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "src" / "emit" / "chakra.proto"
LOAD, STORE, COMP, SEND, RECV, COLL = 2, 3, 4, 5, 6, 7
MESSAGES = {SEND: "send", RECV: "recv"}
COLLECTIVES = {0: "all_reduce", 2: "all_gather", 6: "all_to_all", 7: "reduce_scatter"}
# The attributes of a node: exactly these, each as a value of exactly this kind.
ATTRIBUTES = {
    COMP: {"is_cpu_op": "bool_val", "num_ops": "int64_val", "tensor_size": "uint64_val"},
    **dict.fromkeys((LOAD, STORE), {"is_cpu_op": "bool_val", "tensor_size": "uint64_val"}),
    COLL: {"is_cpu_op": "bool_val", "comm_type": "int64_val", "comm_size": "int64_val",
           "pg_name": "string_val"},
    **dict.fromkeys(MESSAGES, {"is_cpu_op": "bool_val", "comm_size": "int64_val", "comm_src": "int32_val",
                               "comm_dst": "int32_val", "comm_tag": "int32_val"}),
}
# What nodes may have beside them, for people.
ANNOTATIONS = {"phase": "string_val", "layer": "int64_val", "microbatch": "int64_val",
               "op_type": "string_val",
               "module": "string_val"}
LEAST_PAYLOAD = 64
TAGS = range(500_000_000)  # simulators number other messages from here on
MANIFEST_KEYS = ["format", "format_version", "tool", "spec", "model", "plan", "config", "bindings", "mesh",
                 "ranks",
                 "traces", "comm_groups", "classes", "stages"]

# `collective` and `group` of collectives; `message` of sends and receives: source, destination, tag.
Node = collections.namedtuple("Node", "id type deps num_ops tensor_size collective comm_size group message")
# `traces` by rank, each a list of nodes; `groups` by id, each a list of ranks.
Folder = collections.namedtuple("Folder", "manifest groups traces trace_bytes")


class Broken(Exception):
    """A rule is broken in a way that leaves nothing to look at further."""


# ---- the schema --------------------------------------------------------------------------------------------


def message_classes():
    """The classes of Node and GlobalMetadata, made from the schema."""
    command = [os.environ.get("PROTOC") or "protoc", f"--proto_path={SCHEMA.parent}",
               "--descriptor_set_out=/dev/stdout", SCHEMA.name]
    compiled = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(compiled).file:
        pool.Add(file)
    made = []
    for name in ("ChakraProtoMsg.Node", "ChakraProtoMsg.GlobalMetadata"):
        descriptor = pool.FindMessageTypeByName(name)
        if hasattr(message_factory, "GetMessageClass"):
            made.append(message_factory.GetMessageClass(descriptor))
        else:
            made.append(message_factory.MessageFactory(pool).GetPrototype(descriptor))
    return made


NodeMessage, MetadataMessage = message_classes()

# ---- one message -------------------------------------------------------------------------------------------


def canonical(kind, raw):
    """The message in `raw`, which must be all of it and written in the one canonical way."""
    parsed = kind()
    try:
        parsed.ParseFromString(raw)
    except message.DecodeError as error:
        raise Broken(f"a message cannot be decoded: {error}") from error
    known = kind()
    known.CopyFrom(parsed)
    known.DiscardUnknownFields()
    if known.SerializeToString(deterministic=True) != raw:
        raise Broken("a message has unknown fields or is not in canonical form")
    return parsed


def attributes_of(parsed):
    """name -> value; every kind as the table says, none missing, none too many."""
    needed = ATTRIBUTES[parsed.type]
    kinds = {**needed, **ANNOTATIONS}
    values = {}
    for attribute in parsed.attr:
        kind = attribute.WhichOneof("value")
        if attribute.name in values:
            raise Broken(f"attribute {attribute.name} is given twice")
        if attribute.name not in kinds:
            raise Broken(f"attribute {attribute.name} does not belong here")
        if kind != kinds[attribute.name]:
            raise Broken(f"attribute {attribute.name} is a {kind}, not a {kinds[attribute.name]}")
        if attribute.doc_string:
            raise Broken(f"attribute {attribute.name} has a doc_string")
        values[attribute.name] = getattr(attribute, kind)
    for name in needed:
        if name not in values:
            raise Broken(f"attribute {name} is missing")
    if values["is_cpu_op"]:
        raise Broken("is_cpu_op is true")
    return values


def check_deps(parsed):
    deps = list(parsed.data_deps)
    if parsed.ctrl_deps:
        raise Broken("an edge is in ctrl_deps")
    if len(set(deps)) != len(deps):
        raise Broken("a dependency is given twice")
    if deps != sorted(deps):
        raise Broken("dependencies do not ascend")
    if deps and deps[-1] >= parsed.id:
        raise Broken("a dependency is not an earlier node")
    return tuple(deps)


def group_of(text):
    if not re.fullmatch("[1-9][0-9]*", text):
        raise Broken(f"pg_name {text!r} is no id of a group")
    return int(text)


def read_node(raw):
    parsed = canonical(NodeMessage, raw)
    if parsed.type not in ATTRIBUTES:
        raise Broken(f"type {parsed.type} is neither COMP_NODE nor COMM_COLL_NODE, COMM_SEND_NODE, "
                     f"COMM_RECV_NODE, MEM_LOAD_NODE, MEM_STORE_NODE")
    tensors = parsed.HasField("inputs") or parsed.HasField("outputs")
    if parsed.start_time_micros or parsed.duration_micros or tensors:
        raise Broken("fields are set that have no meaning here")
    values = attributes_of(parsed)
    node = Node(parsed.id, parsed.type, check_deps(parsed), None, None, None, None, None, None)
    if parsed.type in (LOAD, STORE):
        if values["tensor_size"] < 1:
            raise Broken("tensor_size is less than 1")
        return node._replace(tensor_size=values["tensor_size"])
    if parsed.type == COMP:
        if values["num_ops"] < 1:
            raise Broken("num_ops is less than 1")
        if values["tensor_size"] < 1:
            raise Broken("tensor_size is less than 1")
        return node._replace(num_ops=values["num_ops"], tensor_size=values["tensor_size"])
    if values["comm_size"] < LEAST_PAYLOAD:
        raise Broken(f"comm_size is less than {LEAST_PAYLOAD}")
    node = node._replace(comm_size=values["comm_size"])
    if parsed.type in MESSAGES:
        if values["comm_tag"] not in TAGS:
            raise Broken(f"comm_tag {values['comm_tag']} is not one that messages may have")
        return node._replace(message=(values["comm_src"], values["comm_dst"], values["comm_tag"]))
    if values["comm_type"] not in COLLECTIVES:
        raise Broken(f"comm_type {values['comm_type']} cannot be simulated")
    return node._replace(collective=COLLECTIVES[values["comm_type"]], group=group_of(values["pg_name"]))


# ---- one file ----------------------------------------------------------------------------------------------


def frames(content):
    """The messages of a file: each behind its length, a varint of the fewest bytes."""
    at = 0
    while at < len(content):
        length = shift = 0
        while True:
            if at == len(content) or shift > 63:
                raise Broken("the file ends within a length")
            byte = content[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if shift > 7 and byte == 0:
            raise Broken("a length is longer than it must be")
        if at + length > len(content):
            raise Broken("the file ends within a message")
        yield content[at:at + length]
        at += length


def read_trace(path, known):
    """The nodes of a file. `known`: raw message -> Node; ranks share most of their messages."""
    content = path.read_bytes()
    messages = frames(content)
    first = next(messages, None)
    if first is None:
        raise Broken("the file is empty")
    metadata = canonical(MetadataMessage, first)
    if metadata.version != "0.0.4" or metadata.attr:
        raise Broken("the first message is not GlobalMetadata of version 0.0.4")
    nodes = []
    for raw in messages:
        node = known.get(raw)
        if node is None:
            try:
                node = known[raw] = read_node(raw)
            except Broken as error:
                raise Broken(f"node {len(nodes)}: {error}") from error
        if node.id != len(nodes):
            raise Broken(f"node {len(nodes)} has id {node.id}: ids are not dense from 0")
        nodes.append(node)
    if not nodes:
        raise Broken("there are no nodes")
    return nodes


def check_order(nodes):
    """Every collective and every send must wait, through dependencies, for the one before it."""
    latest = []  # of every node: the last of them that it waits for or is, or -1
    previous = -1
    for node in nodes:
        waits_for = max((latest[dep] for dep in node.deps), default=-1)
        if node.type not in (COLL, SEND):
            latest.append(waits_for)
            continue
        if waits_for != previous:
            raise Broken(f"node {node.id} does not wait for node {previous}, the communication before it")
        previous = node.id
        latest.append(node.id)


def check_start(nodes):
    """The first computation of a rank takes a nanosecond on any machine: ASTRA-sim ends otherwise."""
    start = next((node for node in nodes if node.type == COMP and not node.deps), None)
    if start and start.tensor_size < 2**15 and start.num_ops < 2**25:
        raise Broken(f"node {start.id}, which the rank begins with, may take no time")


def trace_files(folder, name):
    """rank -> path; exactly one file for every rank."""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.suffix != ".et":
            continue
        match = re.fullmatch(re.escape(name) + r"\.(0|[1-9][0-9]*)\.et", path.name)
        if not match:
            raise Broken(f"{path.name} is no name of a trace")
        found[int(match[1])] = path
    for rank in range(len(found)):
        if rank not in found:
            raise Broken(f"there is no trace of rank {rank}")
    return found


def check_file(path):
    mode = path.lstat().st_mode
    if not stat.S_ISREG(mode):
        raise Broken(f"{path.name} is no regular file")
    if mode & 0o600 != 0o600:
        raise Broken(f"{path.name} cannot be read and written by its owner")


# ---- groups ------------------------------------------------------------------------------------------------


def unique_keys(pairs):
    if len({key for key, _ in pairs}) != len(pairs):
        raise Broken("a JSON object has a key twice")
    return dict(pairs)


def read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique_keys)
    except OSError as error:
        raise Broken(f"{path.name} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Broken(f"{path.name} is not JSON: {error}") from error


def read_groups(path, rank_count):
    groups = {}
    content = read_json(path)
    if not isinstance(content, dict):
        raise Broken("the group file is not an object")
    for key, ranks in content.items():
        if not re.fullmatch("[1-9][0-9]*", key):
            raise Broken(f"group {key!r} has no decimal id from 1 on")
        if not isinstance(ranks, list) or any(type(rank) is not int for rank in ranks):
            raise Broken(f"group {key} is not a list of integers")
        if any(rank not in range(rank_count) for rank in ranks):
            raise Broken(f"group {key} has a rank that does not exist")
        if len(set(ranks)) != len(ranks):
            raise Broken(f"group {key} has a rank twice")
        if len(ranks) < 2:
            raise Broken(f"group {key} has fewer than two ranks")
        groups[int(key)] = ranks
    if sorted(groups) != list(range(1, len(groups) + 1)):
        raise Broken("the ids of groups have gaps")
    return groups


def check_membership(groups, traces):
    used = set()
    for rank, nodes in traces.items():
        for node in nodes:
            if node.group is None:
                continue
            if node.group not in groups:
                raise Broken(f"rank {rank}, node {node.id}: group {node.group} does not exist")
            if rank not in groups[node.group]:
                raise Broken(f"rank {rank}, node {node.id}: the rank is not in group {node.group}")
            used.add(node.group)
    for group in groups:
        if group not in used:
            raise Broken(f"no node uses group {group}")


def check_agreement(groups, traces):
    """All members of a group must issue the same collectives of the same sizes in the same order."""
    issued = {(group, rank): [] for group, ranks in groups.items() for rank in ranks}
    for rank, nodes in traces.items():
        for node in nodes:
            if node.group is not None:
                issued[node.group, rank].append((node.collective, node.comm_size))
    for group, ranks in groups.items():
        for rank in ranks[1:]:
            if issued[group, rank] != issued[group, ranks[0]]:
                raise Broken(f"group {group}: ranks {ranks[0]} and {rank} issue different collectives")


def check_messages(traces):
    """Every message is sent once and received once, with one size, between two ranks that say who they
    are."""
    found = {SEND: {}, RECV: {}}
    for rank, nodes in traces.items():
        for node in nodes:
            if node.type not in MESSAGES:
                continue
            at = f"rank {rank}, node {node.id}"
            source, destination, tag = node.message
            if rank != (source if node.type == SEND else destination):
                raise Broken(f"{at}: a {MESSAGES[node.type]} of another rank")
            if source == destination or not {source, destination} <= traces.keys():
                raise Broken(f"{at}: a message from rank {source} to rank {destination}")
            if node.message in found[node.type]:
                raise Broken(f"{at}: tag {tag} from rank {source} to rank {destination} for a second time")
            found[node.type][node.message] = node.comm_size
    for message in found[SEND].keys() ^ found[RECV].keys():
        raise Broken("the message from rank {} to rank {} with tag {} has one end only".format(*message))
    for message, size in found[SEND].items():
        if size != found[RECV][message]:
            raise Broken("the message from rank {} to rank {} with tag {} has two sizes".format(*message))


def events_of(traces):
    """(rank, id) -> what happens there: a node, or a collective of all members, that is (group, how many came
    before). Members issue the collectives of a group in one order: check_agreement."""
    events = {}
    for rank, nodes in traces.items():
        issued = collections.Counter()
        for node in nodes:
            events[rank, node.id] = (rank, node.id)
            if node.type == COLL:
                events[rank, node.id] = ("group", node.group, issued[node.group])
                issued[node.group] += 1
    return events


def check_progress(traces):
    """Lets everything happen that waits for nothing any more: all of it must. Sends do not wait for
    receives."""
    events = events_of(traces)
    waits, children = collections.Counter(dict.fromkeys(events.values(), 0)), collections.defaultdict(list)
    senders = {node.message: (rank, node.id) for rank,
               nodes in traces.items() for node in nodes if node.type == SEND}
    for (rank, at), event in events.items():
        node = traces[rank][at]
        parents = [events[rank, dep] for dep in node.deps]
        if node.type == RECV:
            parents.append(senders[node.message])
        waits[event] += len(parents)
        for parent in parents:
            children[parent].append(event)
    able = [event for event, count in waits.items() if not count]
    while able:
        for child in children[able.pop()]:
            waits[child] -= 1
            if not waits[child]:
                able.append(child)
    for (rank, at), event in sorted(events.items()):
        if waits[event]:
            raise Broken(f"rank {rank} waits for ever, in node {at}: opposite orders")


# ---- the manifest ------------------------------------------------------------------------------------------


def mixed_radix(numbers, sizes):
    value = 0
    for number, size in zip(numbers, sizes):
        value = value * size + number
    return value


def coordinates(value, sizes):
    numbers = []
    for size in reversed(sizes):
        numbers.append(value % size)
        value //= size
    return numbers[::-1]


def family_groups(manifest, family):
    """id -> ranks, from nothing but the mesh: a group for each place along the other axes."""
    mesh = manifest["mesh"]
    inside = [axis["axis"] in family["mesh_axes"] for axis in mesh]
    groups = collections.defaultdict(list)
    for rank in range(manifest["ranks"]):
        place = coordinates(rank, [axis["size"] for axis in mesh])
        outer = [(number, axis["size"]) for number, axis, is_in in zip(place, mesh, inside) if not is_in]
        groups[family["first_id"] + mixed_radix([o[0] for o in outer], [o[1] for o in outer])].append(rank)
    return dict(groups)


def check_some_groups(manifest, family, groups, whole):
    """A family that only some stages use: some of the groups of the mesh; or, of each, the ranks of some
    stages."""
    found = list(groups.values())
    if all(ranks in whole for ranks in found):
        if len(set(map(tuple, found))) != len(found):
            raise Broken(f"manifest: family {family['axes']} has a group twice")
        return
    sizes = [axis["size"] for axis in manifest["mesh"]]
    inside = [axis["axis"] in family["mesh_axes"] for axis in manifest["mesh"]]
    rest = [sorted(ranks) for ranks in whole]
    places = set()
    for ranks in found:
        of = [index for index, others in enumerate(rest) if set(ranks) <= set(others)]
        if len(of) != 1 or ranks != sorted(ranks):
            raise Broken(f"family {family['axes']} does not hold the groups of the mesh")
        del rest[of[0]]
        places.add(tuple(tuple(number for number, is_in in zip(coordinates(rank, sizes), inside) if is_in)
                         for rank in ranks))
    if len(places) != 1:
        raise Broken(f"manifest: the groups of family {family['axes']} have ranks of different stages")


def check_families(manifest, groups):
    seen = set()
    for family in manifest["comm_groups"]["families"]:
        ids = range(family["first_id"], family["first_id"] + family["groups"])
        of_family = {group: groups[group] for group in ids if group in groups}
        if len(of_family) != family["groups"] or any(len(ranks) != family["size"]
                                                     for ranks in of_family.values()):
            raise Broken(f"manifest: family {family['axes']} has other numbers of groups or ranks")
        if seen & set(ids):
            raise Broken(f"manifest: family {family['axes']} has ids of another one")
        seen.update(ids)
        whole = family_groups(manifest, family)
        if len(of_family) == len(whole) and family["size"] == len(whole[family["first_id"]]):
            if of_family != whole:
                raise Broken("the group file does not hold the groups of the mesh")
        else:
            check_some_groups(manifest, family, of_family, list(whole.values()))
    if seen != set(groups):
        raise Broken("the group file does not hold the groups of the mesh")
    if manifest["comm_groups"]["groups"] != len(groups):
        raise Broken("manifest: another number of groups")


def message_axes(manifest, traces):
    """Two ends of a message -> what is sent, and the axes along which it goes, as a query names both. What
    goes round a ring has ends that differ along its axis alone; all else is between stages."""
    names, sizes = [axis["axis"] for axis in manifest["mesh"]], [axis["size"] for axis in manifest["mesh"]]
    rings = {row["axes"] for stage in manifest["stages"] for row in stage["comm"]
             if row["collective"] == "permute"}
    found, stages = {}, set()
    for source, destination in {node.message[:2] for nodes in traces.values() for node in nodes
                                if node.message}:
        ends = zip(names, coordinates(source, sizes), coordinates(destination, sizes))
        along = [name for name, here, there in ends if here != there]
        ring = len(along) == 1 and along[0] in rings
        found[source, destination] = ("permute", along[0]) if ring else None
        stages.update(() if ring else along)
    together = [name for name in names if name in stages]
    label = together[0] if len(together) == 1 else f"({','.join(together)})"
    return {ends: kind or ("send", label) for ends, kind in found.items()}


def group_axes(manifest):
    """id of a group -> axes, as a query names them."""
    axes = {}
    for family in manifest["comm_groups"]["families"]:
        for group in range(family["first_id"], family["first_id"] + family["groups"]):
            axes[group] = family["axes"]
    return axes


def rank_totals(nodes, axes, messages):
    """Sums over the nodes of one rank: (nodes, num_ops, tensor_size, rows of (collective, axes, nodes,
    comm_size), (loads, bytes of them, stores, bytes))."""
    comm = collections.defaultdict(lambda: [0, 0])
    num_ops = tensor_size = 0
    host = {LOAD: [0, 0], STORE: [0, 0]}
    for node in nodes:
        if node.type == COMP:
            num_ops += node.num_ops
            tensor_size += node.tensor_size
            continue
        if node.type in (LOAD, STORE):
            host[node.type][0] += 1
            host[node.type][1] += node.tensor_size
            continue
        key = messages[node.message[:2]] if node.message else (node.collective, axes[node.group])
        if MESSAGES.get(node.type) == "recv":
            key = ("recv", key[1])
        row = comm[key]
        row[0] += 1
        row[1] += node.comm_size
    rows = tuple(sorted((collective, axis, *row) for (collective, axis), row in comm.items()))
    return len(nodes), num_ops, tensor_size, rows, (*host[LOAD], *host[STORE])


def stage_totals(stage):
    """The same from a stage of the manifest, with paddings."""
    rows = tuple(sorted((row["collective"], row["axes"], row["nodes"],
                         int(row["bytes"]) + int(row["bytes_padding"]))
                        for row in stage["comm"]))
    return (stage["nodes"], int(stage["flop"]) + int(stage["flop_padding"]),
            int(stage["bytes"]) + int(stage["bytes_padding"]), rows,
            tuple(int(stage.get("host", {}).get(key, 0))
                  for key in ("loads", "bytes_loaded", "stores", "bytes_stored")))


def check_totals(manifest, traces):
    axes, messages = group_axes(manifest), message_axes(manifest, traces)
    found = collections.Counter(rank_totals(nodes, axes, messages) for nodes in traces.values())
    told = collections.Counter()
    for stage in manifest["stages"]:
        told[stage_totals(stage)] += stage["ranks"]
    if found != told:
        raise Broken("manifest: the totals of the stages are not those of the traces")
    sizes = collections.Counter(len(nodes) for nodes in traces.values())
    classes = collections.Counter()
    for row in manifest["classes"]:
        classes[row["nodes"]] += row["ranks"]
    if sizes != classes:
        raise Broken("manifest: the classes are not those of the traces")


def read_manifest(path):
    manifest = read_json(path)
    keys = list(MANIFEST_KEYS)
    if isinstance(manifest, dict) and "run" in manifest:  # of a named train or infer block
        keys.insert(keys.index("config") + 1, "run")
    if not isinstance(manifest, dict) or list(manifest) != keys:
        raise Broken("manifest: other keys, or in another order")
    if manifest["format"] != "etch-manifest" or manifest["format_version"] != 1:
        raise Broken("manifest: another format")
    if not re.fullmatch("[0-9a-f]{64}", manifest["spec"]["sha256"]):
        raise Broken("manifest: the hash of the spec is none")
    size = 1
    for axis in manifest["mesh"]:
        size *= axis["size"]
    if size != manifest["ranks"]:
        raise Broken("manifest: the mesh has another number of ranks")
    return manifest


# ---- the folder --------------------------------------------------------------------------------------------


def read(folder):
    """The folder, when every file can be read and every node by itself is right; else Broken."""
    folder = pathlib.Path(folder)
    manifest = read_manifest(folder / "manifest.json")
    files = trace_files(folder, manifest["traces"]["name"])
    if len(files) != manifest["ranks"]:
        raise Broken(f"there are {len(files)} traces of {manifest['ranks']} ranks")
    groups = read_groups(folder / "comm_group.json", len(files))
    traces, known = {}, {}
    for rank, path in files.items():
        try:
            check_file(path)
            traces[rank] = read_trace(path, known)
        except Broken as error:
            raise Broken(f"rank {rank}: {error}") from error
    return Folder(manifest, groups, traces, sum(path.stat().st_size for path in files.values()))


def check(folder):
    """What is wrong, a list of texts; empty when nothing is."""
    complaints = []
    try:
        content = read(folder)
    except Broken as error:
        return [str(error)]
    for rank, nodes in content.traces.items():
        for rule in (check_order, check_start):
            try:
                rule(nodes)
            except Broken as error:
                complaints.append(f"rank {rank}: {error}")
    for rule, *arguments in ((check_membership, content.groups, content.traces),
                             (check_agreement, content.groups, content.traces),
                             (check_messages, content.traces),
                             (check_progress, content.traces),
                             (check_families, content.manifest, content.groups),
                             (check_totals, content.manifest, content.traces)):
        try:
            rule(*arguments)
        except Broken as error:
            complaints.append(str(error))
        except KeyError:
            continue  # of a group or a message that does not exist: an earlier rule has said so
    if int(content.manifest["traces"]["bytes"]) != content.trace_bytes:
        complaints.append("manifest: the traces have another size")
    return complaints


def totals(folder):
    """Rows of sums with the ranks that they are true of, in the order of the first rank."""
    content = read(folder)
    axes, messages = group_axes(content.manifest), message_axes(content.manifest, content.traces)
    ranks = collections.defaultdict(list)
    for rank in sorted(content.traces):
        ranks[rank_totals(content.traces[rank], axes, messages)].append(rank)
    rows = []
    for (nodes, num_ops, tensor_size, comm, host), members in ranks.items():
        rows.append({"ranks": members, "nodes": nodes, "num_ops": num_ops, "tensor_size": tensor_size,
                     "comm": [dict(zip(("collective", "axes", "nodes", "comm_size"), row)) for row in comm],
                     "host": dict(zip(("loads", "bytes_loaded", "stores", "bytes_stored"), host))})
    return rows


def main(arguments):
    if len(arguments) != 2 or arguments[0] not in ("check", "totals"):
        sys.stderr.write(__doc__)
        return 2
    if arguments[0] == "totals":
        json.dump(totals(arguments[1]), sys.stdout, indent=2)
        print()
        return 0
    complaints = check(arguments[1])
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
