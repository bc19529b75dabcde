"""A standby of a private PostgreSQL: a base back-up that follows the server, and can replace it, or become a cell."""

import subprocess
from pathlib import Path

import psycopg

from mqbroker.embedded.errors import ServerFailed
from mqbroker.embedded.processes import launch
from mqbroker.embedded.servers import postgres

NAME = "standby"
# pg_ctl's own limit is only a minute, even while the server still replays WAL that it has received.
PROMOTED_SECONDS = "86400"
GRANT = "GRANT EXECUTE ON FUNCTION pg_promote TO mqbroker"


class Standby(postgres.Server):
    """A copy of a running server in its own folder, with the same passwords. It follows the server until promotion."""

    def __init__(self, primary: postgres.Server, folder: Path) -> None:
        super().__init__(folder)
        self.folder.keep_secret("postgres", primary.folder.secret("postgres"))
        self._primary = primary

    @property
    def is_copied(self) -> bool:
        """Whether the base back-up is complete."""
        return (self.data / "PG_VERSION").exists()

    def copy(self) -> None:
        """Takes the base back-up in a temporary folder, then renames the folder. Raises ServerFailed."""
        draft = self.data.with_suffix(".new")
        postgres.removed(draft)
        draft.mkdir(mode=0o700)
        self._own(draft)
        words = [str(self.binaries / "pg_basebackup"), "--pgdata", str(draft), "--checkpoint", "fast"]
        words += ["--write-recovery-conf", "--dbname", f"{superuser_url(self._primary)}?application_name={NAME}"]
        done = subprocess.run(
            launch.command(self.way, 9, *words),
            env=postgres.environment(),
            cwd=self.folder.path,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise ServerFailed("PostgreSQL", done.stderr.strip(), self.folder.log("postgres"))
        draft.rename(self.data)

    def is_ready(self) -> bool:
        """Whether the process file says `ready`, or `standby` while the server follows."""
        if super().is_ready():
            return True
        lines = (
            (self.data / "postmaster.pid").read_text().splitlines() if (self.data / "postmaster.pid").exists() else []
        )
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "standby"

    @property
    def follows(self) -> bool:
        """Whether the standby follows its server, because it was not promoted yet."""
        return (self.data / "standby.signal").exists()

    def promote(self) -> None:
        """Promotes the standby; returns when it accepts writes. Raises ServerFailed."""
        # The standby ends by itself if the server ends.
        self._run("pg_ctl", "promote", "--timeout", PROMOTED_SECONDS, "-D", str(self.data))


def let_promote(server: postgres.Server, database: str) -> None:
    """Allows the broker's role to promote a standby of the server; granted in this database, because functions belong
    to a database.
    """
    with psycopg.connect(superuser_url(server, database)) as session:
        session.execute(GRANT)


def superuser_url(server: postgres.Server, database: str = "postgres") -> str:
    """The URL of a database of a private server for its superuser."""
    return server.url.replace("//mqbroker:", "//postgres:").rpartition("/")[0] + f"/{database}"
