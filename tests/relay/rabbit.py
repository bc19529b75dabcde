"""A RabbitMQ of the tests' own: in a folder of its own, on loopback, with a node, a cookie and an epmd of its own."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import amqp

from mqbroker.embedded.processes.child import Child
from tests import packages
from tests.broker.polling import eventually
from tests.broker.ports import free_port

# Not the script of Debian's package, which changes to its user.
PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
# As the other targets have it; RabbitMQ's own limit is above ours.
MAX_MESSAGE_BYTES = 1_000_000


class Server:
    """A node that may be killed; its durable queues are there again after a start."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        own = {
            "HOME": str(folder),
            "RABBITMQ_NODENAME": f"mq{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "ERL_EPMD_PORT": str(free_port()),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"-rabbit max_message_size {MAX_MESSAGE_BYTES}",
            "LANG": "C.UTF-8",
        }
        theirs = {name: value for name, value in os.environ.items() if name in ("PATH", "TMPDIR")}
        self._child = Child("rabbitmq", [str(PROGRAM)], theirs | own, folder / "rabbitmq.log", folder, stop_seconds=30)

    def start(self) -> None:
        """Returns once it takes messages."""
        self._child.start()
        eventually(self._answers, within_seconds=90)

    def kill(self) -> None:
        """As by `kill -9`."""
        self._child.kill()

    def stop(self) -> None:
        """Ends it."""
        self._child.stop()

    def last_lines(self) -> str:
        """The end of what the server has printed."""
        return self._child.last_lines()

    def waiting(self, queue: str) -> int:
        """How many messages of a queue no worker holds."""
        with amqp.Connection(f"127.0.0.1:{self.port}") as connection:
            found = connection.channel().queue_declare(queue, passive=True)
            assert found is not None
            _, waiting, _ = found
            return waiting

    def has(self, queue: str, count: int) -> bool:
        """Whether a queue is there with so many messages that no worker holds."""
        try:
            return self.waiting(queue) >= count
        except amqp.NotFound:
            return False

    def _answers(self) -> bool:
        assert self._child.is_running(), self._child.last_lines()
        try:
            with amqp.Connection(f"127.0.0.1:{self.port}", connect_timeout=2):
                return True
        except (OSError, amqp.AMQPError):
            return False


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """Skips the test where the package is not installed."""
    if not PROGRAM.exists() or shutil.which("erl") is None:
        packages.skip_for_want_of("rabbitmq-server", "RabbitMQ")
    folder.mkdir()
    server = Server(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()
