"""A private PostgreSQL whose buffers follow the memory of the machine, or of the container that it runs in."""

from contextlib import suppress
from pathlib import Path
from typing import ClassVar

import psutil

from mqbroker.embedded.servers import postgres

MEGABYTE = 1024 * 1024
# The server shares the machine with the broker and with other programs.
SHARE_OF_MEMORY = 8
# The most buffers of one server, in bytes. Further pages are in the file cache of the system.
LEAST_BYTES, MOST_BYTES = 128 * MEGABYTE, 1024 * MEGABYTE
# The limit of a container, by version 2 and 1 of the kernel's groups.
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def buffers(memory: int) -> str:
    """The value of `shared_buffers` for a machine with this memory in bytes."""
    return f"{min(max(memory // SHARE_OF_MEMORY, LEAST_BYTES), MOST_BYTES) // MEGABYTE}MB"


def memory_bytes() -> int:
    """The memory of the machine, or the limit of the container if there is one."""
    found = [psutil.virtual_memory().total]
    for limit in LIMITS:
        # A group without a limit says `max`.
        with suppress(OSError, ValueError):
            found.append(int(limit.read_text(encoding="ascii")))
    return min(found)


class Sized(postgres.Server):
    """A private server with the configuration of `./mq up` and of benchmarks.

    Servers of tests have the least buffers.
    """

    settings: ClassVar = {**postgres.SETTINGS, "shared_buffers": buffers(memory_bytes())}


class OfTests(postgres.Server):
    """The private server of one process of tests. Brokers of several test files use it at the same time."""

    settings: ClassVar = {**postgres.SETTINGS, "max_connections": "500"}
