"""A PostgreSQL with the defaults of `initdb`, for tests and benchmarks: a deployment without any settings."""

import os
from pathlib import Path
from typing import ClassVar

from mqbroker.embedded.servers import postgres

# The folder of the binaries; `1` means the binaries of `./mq up`.
VARIABLE = "MQ_PLAIN_POSTGRES"
# Debian and the images use UTF-8; initdb itself would use the caller's language settings.
LOCALE = "C.UTF-8"


class Plain(postgres.Server):
    """A server with the configuration of `initdb`, with another port and without a socket file."""

    settings: ClassVar = {"unix_socket_directories": ""}
    cluster = (f"--locale={LOCALE}",)

    def _find_binaries(self) -> Path:
        named = Path(os.environ.get(VARIABLE, ""))
        return named if named.is_absolute() else super()._find_binaries()


def is_wished() -> bool:
    """Whether tests and benchmarks use a server with the defaults of `initdb`."""
    return bool(os.environ.get(VARIABLE))
