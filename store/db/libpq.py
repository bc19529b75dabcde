"""What libpq does by itself on a connection: it reports notices, and sends buffered bytes when it closes."""

import contextlib
import os
import socket

import structlog
from psycopg.pq.abc import PGresult

logger = structlog.stdlib.get_logger(__name__)


def shut(number: int) -> None:
    """Shuts the socket down, so that nothing more is sent: libpq would send its buffer before it closes a connection.

    The server would then commit a transaction although its caller learns that it was not sent.
    """
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(number)) as line:
        line.shutdown(socket.SHUT_RDWR)


def log_notice(notice: PGresult) -> None:
    """Logs a notice: a message that the server sends in addition to answers."""
    logger.info("the database says", notice=notice.error_message.decode("utf-8", "replace").strip())
