"""A data folder and servers that live only as long as one command."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from embedded import environment
from embedded.folder import DataFolder
from embedded.interrupts import Interrupts
from embedded.servers.backing import Servers


@contextlib.contextmanager
def folder() -> Iterator[DataFolder]:
    """A claimed data folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="mqbroker-", ignore_cleanup_errors=True) as path:
        # PostgreSQL may run as another user, which has to pass through.
        Path(path).chmod(0o711)
        made = DataFolder(Path(path))
        with made.claimed():
            yield made


@contextlib.contextmanager
def servers() -> Iterator[dict[str, str]]:
    """The environment of tests and benchmarks: their servers are never the caller's own."""
    with several(1) as environments:
        yield environments[0]


@contextlib.contextmanager
def several(count: int) -> Iterator[list[dict[str, str]]]:
    """As many environments, each with a data folder and servers of its own."""
    with Interrupts() as interrupts, contextlib.ExitStack() as folders:
        made = [folders.enter_context(folder()) for _ in range(count)]
        started = [Servers(each, given={}) for each in made]
        try:
            for both in started:
                both.start()
            yield [environment.of_tests(each, both) for each, both in zip(made, started, strict=True)]
        finally:
            # A second signal must not break off the stop: a server would be killed after its folder is gone.
            interrupts.hold()
            for both in started:
                both.stop()
