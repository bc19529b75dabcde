"""What a connection of libpq says and does by itself: its notices, and the bytes that it sends at its end."""

import contextlib
import os
import socket

import structlog
from psycopg.pq.abc import PGresult

logger = structlog.stdlib.get_logger(__name__)


def shut(number: int) -> None:
    """Lets nothing more leave by a socket: libpq sends what its buffer holds before it closes a connection.

    The server would commit a transaction whose caller is answered that the transaction was not sent.
    """
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as line:
        line.shutdown(socket.SHUT_RDWR)


def log_notice(notice: PGresult) -> None:
    """Logs what the server says beside its answers."""
    logger.info("the database says", notice=notice.error_message.decode("utf-8", "replace").strip())
