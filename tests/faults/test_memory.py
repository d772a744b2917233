"""Memory runs out at each allocation, and no thread can be started: every command says so and leaves nothing
behind."""

import faulty

faulty.hold("faults.memory", ("memory", "thread"))
