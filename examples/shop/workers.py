"""Worker processes on one listening socket: a killed one loses only its own request, and is replaced."""

import multiprocessing
import os
import select
import socket
from collections.abc import Callable, Iterable
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

Application = Callable[..., Iterable[bytes]]

# Fork: a worker starts in milliseconds, because all modules are imported already.
_processes = multiprocessing.get_context("fork")
BACKLOG = 128
# A killed worker is replaced at once; one that failed by itself would fail again at once.
PAUSE_AFTER_FAILURE_SECONDS = 1.0


def listen(host: str, port: int) -> socket.socket:
    """A socket for `serve`; port 0 takes any free one."""
    listening = socket.create_server((host, port), backlog=BACKLOG)
    # All workers wake for one connection and one of them gets it: the others must not block in accept.
    listening.setblocking(False)
    return listening


def serve(listening: socket.socket, make_application: Callable[[], Application], count: int, lifeline: int) -> None:
    """Keep `count` workers until `lifeline`, a file descriptor, is at its end; then let them finish their requests.

    Each worker makes its own application after the fork: connections of any kind must not be shared.
    """
    workers_lifeline, keep_alive = os.pipe()

    def start() -> ForkProcess:
        worker = _processes.Process(target=_work, args=(listening, make_application, workers_lifeline, keep_alive))
        worker.start()
        return worker

    workers = [start() for _ in range(count)]
    while lifeline not in wait([lifeline, *(worker.sentinel for worker in workers)]):
        alive = [worker for worker in workers if worker.is_alive()]
        if any((worker.exitcode or 0) > 0 for worker in workers):
            select.select([lifeline], [], [], PAUSE_AFTER_FAILURE_SECONDS)
        workers = alive + [start() for _ in range(count - len(alive))]
    os.close(keep_alive)
    for worker in workers:
        worker.join()


def _work(
    listening: socket.socket, make_application: Callable[[], Application], lifeline: int, keep_alive: int
) -> None:
    # Only the parent holds the other end, so the end of the parent, also by a kill, ends this process too.
    os.close(keep_alive)
    server = _Server(listening, make_application())
    while True:
        ready, _, _ = select.select([listening.fileno(), lifeline], [], [])
        if lifeline in ready:
            return
        server.handle_request()


class _Server(WSGIServer):
    """One request at a time on a socket that is already listening."""

    timeout = 0

    def __init__(self, listening: socket.socket, application: Application) -> None:
        host, port = listening.getsockname()[:2]
        super().__init__((host, port), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.server_name, self.server_port = host, port
        self.setup_environ()
        self.set_app(application)


class _Handler(WSGIRequestHandler):
    # A caller that sends nothing must not hold a worker. HTTP/1.0, the default here, closes after each answer likewise.
    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:
        pass
