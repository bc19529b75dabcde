"""The web process: listens on its own port and serves until a signal.

`python -m mqbroker.web --port 8000 --processes auto`. With `--socket` it serves on an inherited listening socket: a
supervisor keeps the socket open while one web process ends and the next one starts.
"""

import argparse
import gc
import importlib
import logging.config
import os
import signal
import socket
import sys
from collections.abc import Collection, Sequence
from functools import partial

from mqbroker import logs
from mqbroker.web import counts, listener, processes
from mqbroker.web.processes import Handover

IMPORTED_BY_FORKS = ("uvloop", "mqbroker.urls", "mqbroker.web.application", "mqbroker.wire.server")


def load() -> None:
    """Imports everything that forks of this process need.

    It opens no connections and starts no threads, because they would not survive the fork.
    """
    # Objects of the start stay in memory: collecting them repeatedly takes 8 % of the start. The lifespan turns
    # collection on.
    gc.disable()
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    django.setup()

    for name in IMPORTED_BY_FORKS:
        importlib.import_module(name)
    from mqbroker.web import application

    application.load()
    # Garbage collection in a fork does not write to these objects, so their memory stays shared.
    gc.freeze()


def serve(listening: socket.socket, handover: Handover = processes.ALONE) -> None:
    """Serves on the socket in this process until a signal."""
    gc.disable()
    # The parent does not import this module if children restart on changed code: a new child imports the present code.
    import django
    import uvloop

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    django.setup()

    from django.conf import settings

    from mqbroker.web import application
    from mqbroker.wire import room, server
    from store.db.guards import Unfit

    most = room.most_connections()
    connections = room.Room(most, settings.CONNECTIONS_PER_ADDRESS, settings.TRUSTED_PROXIES)
    try:
        running = partial(application.serving, handover.begin, is_known=handover.is_known)
        uvloop.run(server.run(listening, running, connections, handover.leave))
    except Unfit as problem:
        print(f"mqbroker.web: {problem}", file=sys.stderr, flush=True)
        sys.exit(processes.UNFIT)


def start_anew(words: Sequence[str], listening: socket.socket, pids: Collection[int]) -> None:
    """Replaces this process by a new program with the present code, keeping its process id and its children."""
    # A second SIGHUP must not end the process before the new program handles the signal.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    listening.set_inheritable(True)
    given = ["--socket", str(listening.fileno()), "--children", ",".join(map(str, pids))]
    # The arguments of the command line, without the arguments that an earlier `start_anew` has added.
    own = words[: words.index("--children") - 2] if "--children" in words else words
    os.execv(sys.executable, [sys.executable, "-m", "mqbroker.web", *own, *given])


def parser() -> argparse.ArgumentParser:
    """The parser of the command's arguments."""
    made = argparse.ArgumentParser("mqbroker.web", description=__doc__)
    made.add_argument("--host", default="127.0.0.1")
    made.add_argument("--port", type=int, default=8000)
    made.add_argument("--socket", type=int, metavar="FD", help="the number of an inherited listening socket")
    made.add_argument("--processes", type=counts.parse, default="1", help=f"{counts.MEANING} (default: 1)")
    made.add_argument("--reload", action="store_true", help="start again when code changes")
    made.add_argument("--children", type=children, default=(), help=argparse.SUPPRESS)
    return made


def children(text: str) -> list[int]:
    """The process ids of children, which `start_anew` passes on."""
    return [int(word) for word in text.split(",") if word]


def main(words: list[str]) -> int:
    """Serves until a signal."""
    given = parser().parse_args(words)
    logging.config.dictConfig(logs.configure(os.environ.get("MQBROKER_LOG", logs.FORMS[0])))
    logs.take_over()
    try:
        inherited = given.socket is not None
        listening = socket.socket(fileno=given.socket) if inherited else listener.listen(given.host, given.port)
    except listener.PortInUse as problem:
        print(f"mqbroker.web: {problem}", file=sys.stderr)
        return 1
    if not given.processes.has_standby and not given.reload:
        serve(listening)
        return 0
    started = processes.Processes(partial(serve, listening), given.processes.serving, given.children)
    status = started.run(load, reload=given.reload)
    if status is None:
        start_anew(words, listening, started.pids)
    return status or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
