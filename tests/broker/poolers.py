"""PgBouncer in front of a database, and the broker behind it.

With MQ_POOLER=transaction or MQ_POOLER=session in the environment the tests' broker has one. MQ_PGBOUNCER names a
program of 1.22 or later where that on the path is older, as Debian 12's is.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from mqbroker.embedded.processes.child import Child
from tests import packages
from tests.broker.polling import eventually
from tests.broker.ports import free_port

MODE = os.environ.get("MQ_POOLER", "")
DEBIANS = "/usr/sbin/pgbouncer"
# The first that knows prepared statements again and forgets all of them when it is asked.
OLDEST = (1, 22)
CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = plain
auth_file = {folder}/users
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 1000
ignore_startup_parameters = extra_float_digits{ignored}
{more}
"""


class Pooler:
    """A PgBouncer, and the URL of a database by way of it."""

    def __init__(self, folder: Path, database_url: str, mode: str, program: str, **more: str | int) -> None:
        self.direct_url, self.mode = database_url, mode
        url, port = urlsplit(database_url), free_port()
        # What the URL says of TLS is between the pooler and the server.
        self.url = url._replace(netloc=f"{url.username}:{url.password}@127.0.0.1:{port}", query="").geturl()
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        (folder / "users").write_text(f'"{url.username}" "{url.password}"\n')
        (folder / "ini").write_text(
            CONFIGURATION.format(port=url.port, own_port=port, folder=folder, mode=mode, **more)
        )
        user = ["--user", "nobody"] if os.getuid() == 0 else []
        words = [program, *user, str(folder / "ini")]
        self.child = Child("pgbouncer", words, dict(os.environ), folder / "log", folder)

    @property
    def settings(self) -> dict[str, str]:
        """What a broker behind it is set to."""
        return {"MQBROKER_DATABASE_POOLER": self.mode, "DIRECT_DATABASE_URL": self.direct_url}

    def listens(self) -> bool:
        """Whether it gives sessions."""
        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def pooler(
    folder: Path, database_url: str, mode: str, *, program: str = "", ignored: str = "", size: int = 30, more: str = ""
) -> Iterator[Pooler]:
    """A PgBouncer in front of a database, by itself one that the broker can be behind; a pool of `size` sessions.

    `more` are lines of its configuration.
    """
    made = Pooler(folder, database_url, mode, program or fit(), ignored=ignored, size=size, more=more)
    made.child.start()
    try:
        yield made
    finally:
        made.child.stop()


def debians() -> str:
    """The program of Debian's package, whichever version that is. Skips the test without one."""
    found = shutil.which("pgbouncer") or DEBIANS
    if not Path(found).exists():
        packages.skip_for_want_of("pgbouncer", "PgBouncer")
    return found


def fit() -> str:
    """A program of OLDEST or later. Skips the test without one."""
    found = os.environ.get("MQ_PGBOUNCER") or debians()
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"PgBouncer (\d+)\.(\d+)", said)
    assert version, said
    if (int(version[1]), int(version[2])) < OLDEST:
        pytest.skip(f"PgBouncer is {version[1]}.{version[2]} on this machine, and {OLDEST[0]}.{OLDEST[1]} is needed")
    return found


def ready(made: Pooler) -> None:
    """Returns when it gives sessions."""
    eventually(made.listens, within_seconds=10)
