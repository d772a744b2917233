"""What a baseline is: a command of the program on a line, and behind a tab what the program said, as JSON.
Commands name specs relative to the repository; what differs from run to run, or from version to version, is
left out."""

import hashlib
import json
import lzma
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile

SOURCE = pathlib.Path(os.environ.get("ETCH_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[2])
COMPRESSION = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 28}]


# ---- files -------------------------------------------------------------------------------------------------


def write(path, lines):
    """`lines`: command -> answer. Sorted, so that equal baselines are equal files; `.xz` is compressed."""
    text = "".join(f"{command}\t{answer}\n" for command, answer in sorted(lines.items())).encode()
    if str(path).endswith(".xz"):
        text = lzma.compress(text, filters=COMPRESSION)
    pathlib.Path(path).write_bytes(text)


def read(path):
    raw = pathlib.Path(path).read_bytes()
    text = (lzma.decompress(raw) if str(path).endswith(".xz") else raw).decode()
    return dict(line.split("\t", 1) for line in text.splitlines())


# ---- answers -----------------------------------------------------------------------------------------------


def answer(program, command):
    """What the program says to a command, as one line of JSON."""
    arguments = shlex.split(command)
    if arguments[0] == "spec":
        found = {"sha256": digest((SOURCE / arguments[1]).read_bytes())}
    elif arguments[0] == "lower" and "--dry-run" not in arguments:
        found = lowered(program, arguments)
    else:
        found = said(program, arguments)
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def digest(data):
    return hashlib.sha256(data).hexdigest()


def said(program, arguments):
    """Status, messages and result: as JSON, or the lines of another format that the command asks for."""
    other = arguments[0] == "help" or "--format" in arguments
    more = [] if arguments[0] == "help" else ["--json"] if other else ["--format", "json", "--json"]
    done = subprocess.run([program, *arguments, *more], cwd=SOURCE, stdin=subprocess.DEVNULL,
                          capture_output=True,
                          text=True, check=False)
    result = {"status": done.returncode, "messages": messages(done.stderr)}
    if done.stdout:
        result["result"] = done.stdout.splitlines() if other else plain(json.loads(done.stdout))
    return result


def messages(text):
    """Each message on a line: what it is, where, and what it says, with its notes and helps."""
    if not text.startswith("{"):
        return text.splitlines()
    lines = []
    for message in json.loads(text)["messages"]:
        texts = " | ".join(part["message"] for part in (message, *message["notes"], *message["helps"]))
        lines.append(f"{message['severity']} {message['code']} {place(message['location'])}{texts}")
    return lines


def place(location):
    return f"{location['file']}:{location['line']}:{location['column']}: " if location else ""


def plain(value):
    """A result without what says the same a second time: the query, and formulas as data. Rows by their
    labels."""
    if isinstance(value, dict):
        return {key: by_label(part) if key == "rows" else plain(part) for key, part in value.items()
                if key not in ("query", "expression")}
    return [plain(part) for part in value] if isinstance(value, list) else value


def by_label(rows):
    labels = [row["label"] for row in rows]
    if len(set(labels)) < len(labels):
        return plain(rows)
    return {row["label"]: plain({key: part for key, part in row.items() if key != "label"}) for row in rows}


def lowered(program, arguments):
    """The same, and what was written."""
    folder = tempfile.mkdtemp(prefix="etch-baseline.")
    try:
        result = said(program, [*arguments, "-o", f"{folder}/out", "-j", "1"])
        if result["status"] == 0:
            result["result"].pop("written", None)
            result |= written(pathlib.Path(folder, "out"))
        return result
    finally:
        shutil.rmtree(folder)


def written(folder):
    """The manifest, but for the version of the program and the text of the spec; digests of all other files,
    those of traces as one, and the beginnings of the digest of each, so that one knows which ranks differ."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    del manifest["tool"], manifest["spec"]
    digests = {path.name: digest(path.read_bytes()) for path in folder.iterdir()}
    del digests["manifest.json"]
    traces = sorted((name for name in digests if name.endswith(".et")),
                    key=lambda name: int(name.split(".")[-2]))
    listed = "".join(f"{name} {digests[name]}\n" for name in traces)
    return {"manifest": manifest, "traces": digest(listed.encode()),
            "ranks": " ".join(digests[name][:6] for name in traces),
            "files": {name: digests[name] for name in sorted(set(digests) - set(traces))}}
