"""A private PostgreSQL: made, started and stopped as a direct child of this process."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from mqbroker.embedded.errors import ServerFailed
from mqbroker.embedded.folder import DataFolder, why_taken
from mqbroker.embedded.processes import identity, launch
from mqbroker.embedded.processes.child import Child, wait_until
from mqbroker.embedded.servers import binaries
from mqbroker.embedded.waiting import Say, silence, wait

# Time for processes of a killed start to end.
ENDING_SECONDS = 60
# After this time the server is killed. No commit is lost: the next start recovers the database.
STOP_SECONDS = 5
# Reasons of a failed start that pass by themselves: backends of a killed postmaster, or another program on the port.
PASSING = ("shared memory block", "could not bind", "lock file")

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    # TCP only: a Unix socket was faster only for single round trips, by 10 %, and its path must fit into 107 bytes.
    "unix_socket_directories": "",
    "max_connections": "200",  # a web or worker process may hold 18 (docs/deployment.md, Sessions)
    "shared_buffers": "128MB",  # few buffers, for tests; the class `Sized` has more
    "wal_buffers": "16MB",  # the size of a WAL file, PostgreSQL's own choice for 512 MB of buffers and more
    "huge_pages": "try",
    "fsync": "on",
    "synchronous_commit": "on",
    "wal_compression": "on",
    # Checkpoints are rare, so that a page is written once per burst; a recovery replays the WAL of at most this time.
    "checkpoint_timeout": "15min",
    "max_wal_size": "2GB",
    # Files of WAL are written again rather than removed: for a new file, every 16 MB, commits wait 10 to 40 ms.
    "min_wal_size": "1GB",
    # After a kill -9: syncing the whole file system takes 0.15 s, syncing each file 0.4 to 3 s.
    **({"recovery_init_sync_method": "syncfs"} if sys.platform == "linux" else {}),
    "log_checkpoints": "off",
    "log_min_messages": "warning",
    # With longer pauses an idle server does not keep the machine busy.
    "autovacuum_naptime": "60s",
    "bgwriter_delay": "10s",
    "wal_writer_delay": "10s",
    "max_logical_replication_workers": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
}

# Options that `manage.py prepare` requires, and page checksums.
CLUSTER = ("-E", "UTF8", "--locale=C", "-k")

ROLE = """\
CREATE ROLE mqbroker LOGIN CREATEDB PASSWORD '{password}';
GRANT pg_monitor TO mqbroker;
CREATE DATABASE mqbroker OWNER mqbroker;
"""


class Server:
    """PostgreSQL in `<data folder>/postgres`, with its own password and port.

    The role `mqbroker` owns its database and may make others; `postgres`, with the same password, is the superuser.
    """

    settings: ClassVar[Mapping[str, str]] = SETTINGS
    cluster: ClassVar[Sequence[str]] = CLUSTER

    def __init__(self, data_folder: Path) -> None:
        self.folder = DataFolder(data_folder)
        self.folder.make()
        self.data = self.folder.path / "postgres"
        self.binaries = self._find_binaries()
        self.way = binaries.way_to_run(self.binaries, self.folder.path)
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """The value of DATABASE_URL."""
        return (
            f"postgresql://mqbroker:{self.folder.secret('postgres')}@127.0.0.1:{self.folder.port('postgres')}/mqbroker"
        )

    @property
    def pid(self) -> int:
        """The id of the postmaster."""
        return self.child.pid

    @property
    def child(self) -> Child:
        """The server's process, for the supervisor."""
        if self._child is None:
            self._child = Child(
                "PostgreSQL",
                self._command(),
                environment(),
                self.folder.log("postgres"),
                self.folder.path,
                stop_signal=signal.SIGINT,  # the fast shutdown: sessions are ended, everything is flushed
                stop_seconds=STOP_SECONDS,
                way=self.way,
            )
        return self._child

    def start(self, say: Say = silence) -> None:
        """Creates the database at the first start. Returns when the server accepts connections, however late.

        Raises ServerFailed with PostgreSQL's own reason.
        """
        self.prepare()
        deadline = time.monotonic() + ENDING_SECONDS
        while not self._try_to_start(say):
            reason = self._reason()
            if time.monotonic() > deadline or not any(word in reason for word in PASSING):
                raise ServerFailed("PostgreSQL", reason, self.child.log)
            if why_taken(self.folder.port("postgres")):
                self.folder.choose_port("postgres")
                self._child = None
            time.sleep(0.2)

    def prepare(self) -> None:
        """Brings files and port into a state that a start can use."""
        if not (self.data / "PG_VERSION").exists():
            self._make()
        self._own(self.data)
        self._clear_process_file()
        if why_taken(self.folder.port("postgres")):
            self.folder.choose_port("postgres")
            self._child = None

    def prepare_as(self, other: "Server") -> None:
        """Prepares the server by copying the files and the password of another server that has not started: creating
        files takes 0.4 s of CPU.
        """
        self.folder.keep_secret("postgres", other.folder.secret("postgres"))
        shutil.copytree(other.data, self.data)
        self.prepare()

    def stop(self) -> None:
        """Stops the server by a fast shutdown, or kills it if that takes long; then the next start needs a recovery."""
        self.child.stop()

    def kill(self) -> None:
        """Kills the postmaster with SIGKILL; the next start waits for the end of its backends."""
        self.child.kill()

    def is_ready(self) -> bool:
        """Whether PostgreSQL's process file (postmaster.pid) says `ready`; pg_ctl also waits for this word."""
        with contextlib.suppress(FileNotFoundError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"
        return False

    def _find_binaries(self) -> Path:
        return binaries.folder()

    def _try_to_start(self, say: Say) -> bool:
        self.child.start()
        wait(lambda: self.is_ready() or not self.child.is_running(), "Waiting for PostgreSQL, which runs", say)
        return self.child.is_running()

    def _reason(self) -> str:
        complaints = [line for line in self.child.last_lines().splitlines() if "FATAL" in line or "could not" in line]
        return "; ".join(line.partition(": ")[2].strip() for line in complaints[-2:]) or self.child.exit_status

    def _command(self) -> list[str]:
        settings = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        return [
            str(self.binaries / "postgres"),
            "-D",
            str(self.data),
            "-p",
            str(self.folder.port("postgres")),
            *settings,
        ]

    def _make(self) -> None:
        """Runs initdb in a temporary folder, then renames it, so that a killed start leaves no incomplete database."""
        draft, password_file = self.data.with_suffix(".new"), self.data.with_suffix(".password")
        # The initdb of a killed start may still write there.
        wait_until(lambda: removed(draft), ENDING_SECONDS)
        draft.mkdir(mode=0o700)
        password = self.folder.secret("postgres")
        with os.fdopen(os.open(password_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
            opened.write(password)
        self._own(draft)
        self._own(password_file)
        try:
            words = ["-U", "postgres", "-A", "scram-sha-256", "--pwfile", str(password_file), "--no-instructions"]
            self._run("initdb", "-D", str(draft), *words, *self.cluster)
        finally:
            password_file.unlink()
        statements = ROLE.format(password=password)
        self._run("postgres", "--single", "-D", str(draft), "-c", "exit_on_error=on", "postgres", given=statements)
        draft.rename(self.data)

    def _run(self, program: str, *options: str, given: str = "") -> None:
        command = launch.command(self.way, signal.SIGKILL, str(self.binaries / program), *options)
        log = self.folder.log("postgres")
        with log.open("a") as opened:
            done = subprocess.run(
                command, input=given, stdout=opened, stderr=opened, text=True, env=environment(), cwd=self.folder.path
            )
        if done.returncode != 0:
            raise ServerFailed("PostgreSQL", f"{program} ended with exit code {done.returncode}", log)

    def _own(self, path: Path) -> None:
        """Makes PostgreSQL's user the owner of the files; an earlier start may have used another user."""
        owner = launch.UNPRIVILEGED_USER if self.way == "unprivileged" else os.geteuid()
        if os.geteuid() != 0 or path.stat().st_uid == owner:
            return
        # The top folder is changed last, so that an interrupted change is repeated.
        for file in sorted(path.rglob("*"), reverse=True):
            os.chown(file, owner, owner, follow_symlinks=False)
        os.chown(path, owner, owner)

    def _clear_process_file(self) -> None:
        """Removes postmaster.pid if its id belongs to another process, as after the restart of a container."""
        file = self.data / "postmaster.pid"
        try:
            pid = int(file.read_text().split("\n", 1)[0])
            working_folder = Path(f"/proc/{pid}/cwd").readlink()
        except (OSError, ValueError):
            return  # no such process: PostgreSQL itself checks this at its start, and that no backend is left
        if working_folder != self.data:
            file.unlink(missing_ok=True)
            return
        # This is a server of the folder whose supervisor was killed before it had recorded the server.
        os.kill(pid, signal.SIGINT)
        if not wait_until(lambda: identity.of(pid) is None, STOP_SECONDS):
            os.kill(pid, signal.SIGKILL)


def environment() -> dict[str, str]:
    """The caller's environment, without variables that libpq and PostgreSQL read."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return kept | {"LC_ALL": "C"}


def removed(folder: Path) -> bool:
    """Deletes a folder as far as possible; returns whether nothing is left of it."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()
