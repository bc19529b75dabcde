"""The listening socket of one broker's web processes, which no other program can share."""

import socket
import time

BACKLOG = 1024
# The sockets of a killed web process may still be closing.
PATIENCE_SECONDS = 2.0
POLL_SECONDS = 0.05


class PortInUse(Exception):
    """Another program listens on the port."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"Port {port} of {host} cannot be used ({reason}): stop what uses it, or give another --port.")


def listen(host: str, port: int, patience_seconds: float = PATIENCE_SECONDS) -> socket.socket:
    """Opens a listening socket for this process and its children.

    It has no SO_REUSEPORT, and the kernel lets sockets share a port only if all of them have this option: a second
    program is refused even with the option. Bind and listen are the check, so no other program can come in between.
    Raises PortInUse when the port is still taken after `patience_seconds`.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            return _listening(host, port)
        except OSError as problem:
            if time.monotonic() >= deadline:
                raise PortInUse(host, port, problem.strerror or str(problem)) from problem
        time.sleep(POLL_SECONDS)


def _listening(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    opened = socket.socket(family, kind, protocol)
    try:
        # Allows a bind while connections of an earlier run are still closing.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.bind(address)
        # Several sockets with SO_REUSEADDR may be bound to a port; only one of them can listen.
        opened.listen(BACKLOG)
    except OSError:
        opened.close()
        raise
    return opened
