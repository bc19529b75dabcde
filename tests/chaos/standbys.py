"""A standby of a private PostgreSQL: a base back-up that follows it, and can take its place."""

import subprocess
from pathlib import Path

import psycopg

from embedded.processes import launch
from embedded.servers import postgres
from tests.broker.polling import eventually

NAME = "standby"


class Standby(postgres.Server):
    """A copy of a running server, with the same passwords. It follows until it is promoted."""

    def __init__(self, primary: postgres.Server, folder: Path) -> None:
        super().__init__(folder)
        self.folder.keep_secret("postgres", primary.folder.secret("postgres"))
        self._primary = primary

    def copy(self) -> None:
        """Takes the base back-up."""
        self.data.mkdir(mode=0o700)
        self._own(self.data)
        words = [str(self.binaries / "pg_basebackup"), "--pgdata", str(self.data), "--checkpoint", "fast"]
        words += ["--write-recovery-conf", "--dbname", f"{superuser_url(self._primary)}?application_name={NAME}"]
        subprocess.run(
            launch.command(self.way, 9, *words), env=postgres.environment(), cwd=self.folder.path, check=True
        )

    def is_ready(self) -> bool:
        """As of any server; one that follows says so instead."""
        if super().is_ready():
            return True
        lines = (
            (self.data / "postmaster.pid").read_text().splitlines() if (self.data / "postmaster.pid").exists() else []
        )
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "standby"

    def promote(self) -> None:
        """Has it take the primary's place; returns when it accepts writes."""
        with psycopg.connect(superuser_url(self), autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")


def superuser_url(server: postgres.Server) -> str:
    return server.url.replace("//mqbroker:", "//postgres:").rpartition("/")[0] + "/postgres"


def synchronize(primary: postgres.Server) -> None:
    """Has every commit wait for the standby; returns when it follows."""
    with psycopg.connect(superuser_url(primary), autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{NAME}'".encode())
        connection.execute("SELECT pg_reload_conf()")
        following = "SELECT sync_state FROM pg_stat_replication"
        eventually(lambda: connection.execute(following.encode()).fetchall() == [("sync",)])
