"""Each call of the operating system fails once: no file can be created, read, written, closed, renamed or removed. Calls
that are interrupted, or do less than they were asked for, are continued and change nothing."""

import faulty

faulty.hold(("open", "read", "write", "close", "rename", "folder", "remove", "look", "mode", "cut", "interrupt"))
