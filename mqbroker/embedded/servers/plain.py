"""A PostgreSQL as `initdb` makes it, for tests and benchmarks: that of a deployer who has set nothing."""

import os
from pathlib import Path
from typing import ClassVar

from mqbroker.embedded.servers import postgres

# The folder of the binaries; `1` takes those of `./mq up`.
VARIABLE = "MQ_PLAIN_POSTGRES"
# Debian and the images have UTF-8; initdb itself takes what the caller's language says.
LOCALE = "C.UTF-8"


class Plain(postgres.Server):
    """A server with `initdb`'s own configuration: what differs is the port, and that it has no socket file."""

    settings: ClassVar = {"unix_socket_directories": ""}
    cluster = (f"--locale={LOCALE}",)

    def _find_binaries(self) -> Path:
        named = Path(os.environ.get(VARIABLE, ""))
        return named if named.is_absolute() else super()._find_binaries()


def is_wished() -> bool:
    """Whether tests and benchmarks are to run on such a server."""
    return bool(os.environ.get(VARIABLE))
