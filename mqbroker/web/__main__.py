"""The web process: it listens on a port of its own, and serves until a signal.

`python -m mqbroker.web --port 8000 --processes 2`. With `--socket` it serves on a listening socket that it inherits:
a supervisor keeps that socket open while one web process ends and the next one starts.
"""

import argparse
import gc
import logging.config
import os
import socket
import sys

from mqbroker import logs
from mqbroker.web import listener, processes


def serve(listening: socket.socket) -> None:
    """Serves on the socket in this process."""
    # What a start imports stays: going through it again and again takes 8 % of the start. The lifespan enables it.
    gc.disable()
    # Only a process that serves needs them: its parent stays small, and a new child has the code of now.
    import django
    import uvloop

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mqbroker.settings")
    django.setup()

    from django.conf import settings

    from mqbroker.web import lifespan
    from store.db.guards import Unfit
    from wire import room, server

    most = room.most_connections()
    places = room.Room(most, settings.CONNECTIONS_PER_ADDRESS, settings.TRUSTED_PROXIES)
    try:
        uvloop.run(server.run(listening, lifespan.running, places))
    except Unfit as problem:
        print(f"mqbroker.web: {problem}", file=sys.stderr, flush=True)
        sys.exit(processes.UNFIT)


def main(words: list[str]) -> int:
    """Serves until a signal."""
    parser = argparse.ArgumentParser("mqbroker.web", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--socket", type=int, metavar="FD", help="a listening socket that is inherited")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--reload", action="store_true", help="start again when code changes")
    given = parser.parse_args(words)
    logging.config.dictConfig(logs.configure(os.environ.get("MQBROKER_LOG", logs.FORMS[0])))
    logs.take_over()
    try:
        inherited = given.socket is not None
        listening = socket.socket(fileno=given.socket) if inherited else listener.listen(given.host, given.port)
    except listener.PortInUse as problem:
        print(f"mqbroker.web: {problem}", file=sys.stderr)
        return 1
    if given.processes == 1 and not given.reload:
        serve(listening)
        return 0
    return processes.Processes(lambda: serve(listening), given.processes).run(reload=given.reload)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
