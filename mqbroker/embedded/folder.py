"""The data folder: secrets, ports, logs and servers of a checkout, held by one ./mq at a time."""

import contextlib
import fcntl
import os
import random
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

from mqbroker.embedded.errors import FolderInUse, FolderUnusable
from mqbroker.embedded.processes import leftovers
from mqbroker.embedded.processes.child import wait_until

# These ports are above the usual services, and below 32768, where the kernel's ports for outgoing connections begin.
PORTS = range(20_000, 32_000)
PATIENCE_SECONDS = 0.5


class DataFolder:
    """The files of one installation. Secrets are readable only by their owner; ports stay the same between starts.

    lock          held (flock) by the ./mq that uses the folder, so that kill -9 releases it
    processes     the processes that run, for the next start after a kill -9
    secrets/      one file each: django, sealing, postgres, valkey, api-key
    ports/        one file each: postgres, valkey, web (the last one only while the broker runs)
    postgres/ valkey/ logs/
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.processes = self.path / "processes"
        self._lock: int | None = None

    def make(self) -> None:
        """Makes the folder, and its subfolders for the owner only."""
        try:
            # PostgreSQL may run as another user, which must be able to enter the folder.
            self.path.mkdir(mode=0o711, parents=True, exist_ok=True)
            for subfolder in ("secrets", "ports", "logs"):
                (self.path / subfolder).mkdir(mode=0o700, exist_ok=True)
        except OSError as problem:
            raise FolderUnusable(self.path, problem.strerror or str(problem)) from problem

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Holds the folder for this process, and ends processes that a killed `./mq` has left running.

        Raises FolderInUse when another process holds it, FolderUnusable when it cannot be written.
        """
        self.make()
        # A process that only calls `is_claimed` also holds the lock, for a moment, so this first waits until the lock
        # is free.
        wait_until(lambda: not self.is_claimed(), PATIENCE_SECONDS)
        self._take_lock()
        try:
            leftovers.end(self.processes, self.path)
            self.forget_port("web")
            yield
        finally:
            self.forget_port("web")
            self._release_lock()

    def is_claimed(self) -> bool:
        """Whether a process holds the folder."""
        if not (self.path / "lock").exists():
            return False
        try:
            self._take_lock()
        except FolderInUse:
            return True
        self._release_lock()
        return False

    def _take_lock(self) -> None:
        try:
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as problem:
            raise FolderUnusable(self.path, problem.strerror or str(problem)) from problem
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(lock, 32).decode() or "another ./mq"
            os.close(lock)
            raise FolderInUse(self.path, owner) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()}".encode(), 0)
        self._lock = lock

    def _release_lock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def secret(self, name: str) -> str:
        """A random secret, made at its first use and kept."""
        kept = self.kept_secret(name)
        if kept is None:
            kept = secrets.token_urlsafe(40)
            self.keep_secret(name, kept)
        return kept

    def kept_secret(self, name: str) -> str | None:
        """A secret that the folder keeps, or None."""
        try:
            return (self.path / "secrets" / name).read_text().strip() or None
        except FileNotFoundError:
            return None

    def keep_secret(self, name: str, value: str) -> None:
        """Replaces a secret's file in one step, so that a killed start leaves the old or the new secret."""
        file = self.path / "secrets" / name
        draft = file.with_suffix(".new")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(value + "\n")
            opened.flush()
            os.fsync(opened.fileno())
        draft.replace(file)

    def port(self, name: str) -> int:
        """The port that the folder has stored for a server. If there is none, a free port is chosen and stored."""
        return self.kept_port(name) or self.choose_port(name)

    def kept_port(self, name: str) -> int | None:
        try:
            return int((self.path / "ports" / name).read_text())
        except (FileNotFoundError, ValueError):
            return None

    def choose_port(self, name: str) -> int:
        """Chooses another free port for a server and stores it."""
        port = free_port()
        self.keep_port(name, port)
        return port

    def keep_port(self, name: str, port: int) -> None:
        (self.path / "ports" / name).write_text(f"{port}\n")

    def forget_port(self, name: str) -> None:
        (self.path / "ports" / name).unlink(missing_ok=True)

    def log(self, name: str) -> Path:
        return self.path / "logs" / f"{name}.log"


def why_taken(port: int) -> str | None:
    """The reason why this process cannot listen on a port of 127.0.0.1; None if it can."""
    with socket.socket() as probe:
        # The servers set this option, too: connections that linger from an earlier run do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as problem:
            return problem.strerror or str(problem)
    return None


def free_port() -> int:
    """A port that is free now, chosen at random, so that two starts at the same time rarely choose the same port."""
    while True:
        port = random.choice(PORTS)
        if why_taken(port) is None:
            return port
