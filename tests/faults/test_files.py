"""Each call of the operating system fails once: no file can be created, read, written, closed, renamed or
removed. Calls that are interrupted, or do less than they were asked for, are continued and change nothing."""

import faulty


def leaves_the_earlier_run(usual, seen):
    """The new run is there; what it replaced could not be removed, and where that is, is said."""
    own = {path: data for path, data in seen.files.items() if ".etch-" not in path}
    return (seen.status, seen.out, own) == (usual.status, usual.out,
                                            usual.files) and b"warning[E0706]" in seen.err


def links_less(usual, seen):
    """A trace that cannot be a further name of another one is a file of its own."""
    def without_links(out):
        return [line for line in out.splitlines() if not line.startswith(b"links ")]

    return (seen.status, without_links(seen.out), seen.files) == (usual.status, without_links(usual.out),
                                                                  usual.files)


faulty.hold("faults.files",
            ("open", "read", "write", "close", "rename", "link", "folder", "remove", "look", "mode", "cut",
             "interrupt", "sync"),
            or_else=lambda usual, seen: leaves_the_earlier_run(usual, seen) or links_less(usual, seen))
