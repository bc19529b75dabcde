"""A MariaDB of the tests' own: in a folder of its own, on loopback, a child of this process."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql

from mqbroker.embedded.processes.child import Child
from tests import packages
from tests.broker.polling import eventually
from tests.broker.ports import free_port

# The programs of Debian's packages, without the service that mariadb-server would start.
PROGRAMS = {"mariadbd": "mariadb-server-core", "my_print_defaults": "mariadb-client-core"}
SETTINGS = ("--no-defaults", "--skip-log-bin", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M")


@dataclass(frozen=True)
class Server:
    """Where it listens. The user `root` has no password; `reader` may write only while the server is not read-only."""

    port: int
    child: Child

    def kill(self) -> None:
        """Kills the server with SIGKILL."""
        self.child.kill()

    def start(self) -> None:
        """Starts the server, also after a kill; returns when it answers."""
        self.child.start()
        eventually(self._answers, within_seconds=60)

    def _answers(self) -> bool:
        assert self.child.is_running(), self.child.last_lines()
        with suppress(pymysql.err.OperationalError):
            self.run("CREATE USER IF NOT EXISTS reader@'127.0.0.1'")
            return True
        return False

    def connect(self, database: str = "", user: str = "root", **options: Any) -> "pymysql.Connection[Any]":
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user=user, database=database or None, ssl_disabled=True, **options
        )

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """The rows of the last statement."""
        with closing(self.connect(autocommit=True)) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    @contextmanager
    def database(self) -> Iterator[str]:
        """The name of an empty database, which is dropped afterwards."""
        name = f"test_{secrets.token_hex(6)}"
        self.run(f"CREATE DATABASE {name}", f"GRANT ALL ON {name}.* TO reader@'127.0.0.1'")
        try:
            yield name
        finally:
            self.run(f"DROP DATABASE {name}")


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """Skips the test where the package is not installed."""
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            packages.skip_for_want_of(package, "MariaDB")
    data, port = folder / "data", free_port()
    user = ["--user=root"] if os.geteuid() == 0 else []
    made = subprocess.run(
        ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", *user],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    command = ["mariadbd", *SETTINGS, f"--datadir={data}", f"--port={port}", f"--socket={folder / 'socket'}", *user]
    listening = ["--bind-address=127.0.0.1", f"--pid-file={folder / 'pid'}"]
    child = Child("MariaDB", [*command, *listening], os.environ, folder / "mariadb.log", folder, stop_seconds=10)
    server = Server(port, child)
    try:
        server.start()
        yield server
    finally:
        child.stop()
