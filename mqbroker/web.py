"""The web process: granian with the broker's options, on a port that it has alone.

`python -m mqbroker.web --port 8000 --processes 2`. With `--socket` it serves on a listening socket that it inherits,
which a supervisor keeps open from one web process to the next.
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

from mqbroker import listener, logs

# Waiting consumers hold a connection each. At granian's own limit, 1024 by the number of workers, a worker takes no
# further connection: whoever sends would wait for them.
MAX_CONNECTIONS_PER_WEB_PROCESS = 65536
# A connection whose headers are not complete by then is closed, and so is one that was idle for so long.
HEADER_READ_MS = 30_000
# Of each connection, for the headers and for what comes of the body before it is asked for; granian's own is 408 KiB.
# 1,000 unfinished bodies of 200 kB made the process 154 MB larger with 64 KiB and 100 MB with 16.
READ_BUFFER_BYTES = 16 * 1024
KILL_TIMEOUT_SECONDS = 2
RESPAWN_SECONDS = 0.2


class ExclusiveServer(MPServer):
    """granian on one socket that its workers share by inheritance.

    By itself granian has each worker bind the port with SO_REUSEPORT, and so any other process of the same user can
    take a part of the connections unnoticed.
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
        # HTTP/2 without TLS would buffer megabytes of headers and of bodies per connection before anybody is known.
        "http": HTTPModes.http1,
        "http1_settings": HTTP1Settings(header_read_timeout=HEADER_READ_MS, max_buffer_size=READ_BUFFER_BYTES),
        "websockets": False,
        "backlog": listener.BACKLOG,
        "backpressure": MAX_CONNECTIONS_PER_WEB_PROCESS,
        "log_level": LogLevels.warning,
        "log_dictconfig": logs.OF_SERVER,
        "workers_kill_timeout": KILL_TIMEOUT_SECONDS,
        # A single worker's death ends granian, and its supervisor starts it again; one of several is replaced in place.
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
