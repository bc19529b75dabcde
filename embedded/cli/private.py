"""Things that live only as long as one command: a data folder, and servers on it."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from embedded import environment
from embedded.folder import DataFolder
from embedded.interrupts import Interrupts
from embedded.servers import Servers


@contextlib.contextmanager
def folder() -> Iterator[DataFolder]:
    """A claimed data folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="mqbroker-", ignore_cleanup_errors=True) as path:
        # PostgreSQL may run as another user, who has to pass through.
        Path(path).chmod(0o711)
        made = DataFolder(Path(path))
        with made.claimed():
            yield made


@contextlib.contextmanager
def servers() -> Iterator[dict[str, str]]:
    """The environment of tests and benchmarks, whose servers never are the caller's own."""
    with Interrupts() as interrupts, folder() as made:
        both = Servers(made, given={})
        try:
            both.start()
            yield environment.of_tests(made, both)
        finally:
            # A signal more must not break off the end, and leave a server to be killed with its folder gone.
            interrupts.hold()
            both.stop()
