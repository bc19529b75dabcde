"""A data folder and servers that live only as long as one command."""

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from mqbroker.embedded import environment
from mqbroker.embedded.folder import DataFolder
from mqbroker.embedded.interrupts import Interrupts
from mqbroker.embedded.servers import plain, postgres, sized
from mqbroker.embedded.servers.backing import Servers

# Linux mounts a file system in memory here.
MEMORY = Path("/dev/shm")  # noqa: S108  # the files there have names that no other process can foresee
# Several times the memory that the servers of one process of the tests have used.
MEMORY_BYTES_EACH = 1024 * 1024 * 1024
PREFIX = "mqbroker-"
# A younger folder without a claim may belong to a command that is just starting, so it is not removed.
UNCLAIMED_SECONDS = 60


@contextlib.contextmanager
def folder(place: Path | None = None) -> Iterator[DataFolder]:
    """A claimed data folder that is removed after the block. It is made in `place`, or in the system's folder for
    temporary files.
    """
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=place, ignore_cleanup_errors=True) as path:
        # PostgreSQL may run as another user, which must be able to enter the folder.
        Path(path).chmod(0o711)
        made = DataFolder(Path(path))
        with made.claimed():
            yield made


@contextlib.contextmanager
def servers() -> Iterator[dict[str, str]]:
    """The environment of a benchmark: private servers with the settings of `./mq up`, never the caller's."""
    with several(1, kind=sized.Sized) as environments:
        yield environments[0]


def memory(count: int) -> Path | None:
    """A place in memory for the folders of `count` environments; None if there is too little memory.

    First removes the folders of killed runs, which would stay until the machine starts again.
    """
    try:
        for left in MEMORY.glob(f"{PREFIX}*"):
            if time.time() - left.stat().st_mtime > UNCLAIMED_SECONDS and not DataFolder(left).is_claimed():
                shutil.rmtree(left, ignore_errors=True)
        free = min(shutil.disk_usage(MEMORY).free, psutil.virtual_memory().available)
    except OSError:
        return None
    return MEMORY if free >= count * MEMORY_BYTES_EACH else None


@contextlib.contextmanager
def several(
    count: int, place: Path | None = None, kind: type[postgres.Server] = postgres.Server
) -> Iterator[list[dict[str, str]]]:
    """A number of environments, each with a separate data folder and servers. With MQ_PLAIN_POSTGRES, PostgreSQL has
    the configuration of `initdb`.
    """
    with Interrupts() as interrupts, contextlib.ExitStack() as folders:
        made = [folders.enter_context(folder(place)) for _ in range(count)]
        started = [Servers(each, {}, plain.Plain if plain.is_wished() else kind) for each in made]
        try:
            started[0].prepare()
            for both in started[1:]:
                both.prepare_as(started[0])
            # Servers are started in this thread, because a server ends with the thread that started it.
            for both in started:
                both.start()
            yield [environment.of_tests(each, both) for each, both in zip(made, started, strict=True)]
        finally:
            # A second signal must not interrupt the stop: a server would be killed after its folder is removed.
            interrupts.hold()
            for both in started:
                both.stop()
