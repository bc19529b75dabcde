"""The web process: granian with the broker's options, on a port of its own.

`python -m mqbroker.web --port 8000 --processes 2`. With `--socket` it serves on a listening socket that it inherits:
a supervisor keeps that socket open while one web process ends and the next one starts.
"""

import argparse
import socket
import sys
from typing import Any

from granian.constants import HTTPModes, Interfaces, Loops
from granian.errors import FatalError
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.net import SocketHolder  # type: ignore[attr-defined]  # as granian itself imports it
from granian.server import MPServer

from mqbroker import logs
from mqbroker.web import listener

# Each long poll holds a connection. At granian's own limit, 1024 divided by the workers, a worker accepts no further
# connection: sends would wait for long polls.
MAX_CONNECTIONS_PER_WEB_PROCESS = 65536
# A connection whose headers are incomplete for so long is closed, and so is an idle one.
HEADER_READ_MS = 30_000
# Per connection, for the headers and for the part of a body that arrives before it is read; granian's own is 408 KiB.
# 1,000 unfinished bodies of 200 kB made the process 154 MB larger with 64 KiB and 100 MB with 16.
READ_BUFFER_BYTES = 16 * 1024
KILL_TIMEOUT_SECONDS = 2
RESPAWN_SECONDS = 0.2


class ExclusiveServer(MPServer):
    """granian on one socket that its workers share by inheritance.

    granian's own workers bind the port with SO_REUSEPORT each, so that any other process of the same user could take a
    part of the connections unnoticed.
    """

    def __init__(self, listening: socket.socket, **options: Any) -> None:
        super().__init__("mqbroker.asgi:application", **options)
        self._listening = listening

    def _init_shared_socket(self) -> None:
        self._listening.set_inheritable(True)
        self._ssp = None
        self._sso = self._listening
        holder: Any = SocketHolder
        backlog = (self.backlog,) if sys.platform == "linux" else ()
        self._shd = holder(self._listening.fileno(), False, *backlog)


def options_of(given: argparse.Namespace) -> dict[str, Any]:
    """granian's options."""
    return {
        "address": given.host,
        "port": given.port,
        "interface": Interfaces.ASGI,
        "workers": given.processes,
        "loop": Loops.uvloop,
        # HTTP/2 without TLS would buffer megabytes of headers and bodies per connection before the caller is known.
        "http": HTTPModes.http1,
        "http1_settings": HTTP1Settings(header_read_timeout=HEADER_READ_MS, max_buffer_size=READ_BUFFER_BYTES),
        "websockets": False,
        "backlog": listener.BACKLOG,
        "backpressure": MAX_CONNECTIONS_PER_WEB_PROCESS,
        "log_level": LogLevels.warning,
        "log_dictconfig": logs.OF_SERVER,
        "workers_kill_timeout": KILL_TIMEOUT_SECONDS,
        # The death of a single worker ends granian, and its supervisor starts it again; one of several is replaced.
        "respawn_failed_workers": given.processes > 1 and not given.reload,
        "respawn_interval": RESPAWN_SECONDS,
        "reload": given.reload,
    }


def main(words: list[str]) -> int:
    """Serves until a signal."""
    parser = argparse.ArgumentParser("mqbroker.web", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--socket", type=int, metavar="FD", help="a listening socket that is inherited")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--reload", action="store_true")
    given = parser.parse_args(words)
    try:
        inherited = given.socket is not None
        listening = socket.socket(fileno=given.socket) if inherited else listener.listen(given.host, given.port)
        ExclusiveServer(listening, **options_of(given)).serve()
    except listener.PortInUse as problem:
        print(f"mqbroker.web: {problem}", file=sys.stderr)
        return 1
    except FatalError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
