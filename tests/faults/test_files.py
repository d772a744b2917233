"""Each call of the operating system fails once: no file can be created, read, written, closed, renamed or
removed. Calls that are interrupted, or do less than they were asked for, are continued and change nothing."""

import faulty


def leaves_the_earlier_run(usual, seen):
    """The new run is there; what it replaced could not be removed, and where that is, is said."""
    own = {path: data for path, data in seen.files.items() if ".etch-" not in path}
    return (seen.status, seen.out, own) == (usual.status, usual.out,
                                            usual.files) and b"warning[E0706]" in seen.err


faulty.hold("faults.files",
            ("open", "read", "write", "close", "rename", "folder", "remove", "look", "mode", "cut",
             "interrupt", "sync"),
            or_else=leaves_the_earlier_run)
