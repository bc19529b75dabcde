"""Hashes passwords in a separate process with low priority, so that hashing does not delay messages."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from store.db import patience, sync
from store.errors import SystemBusy
from store.process import runtime

# A hash takes 0.4 s of a free core, and longer on a busy machine, where messages come first.
MAX_SECONDS = 30
# The most password hashes that may wait to be computed. Each occupies a thread of the web process; a further attempt is
# refused.
MAX_WAITING = 16
# The password comes by stdin, because the list of processes shows arguments and environment. With niceness 10 the hash
# gets a tenth of the time of a broker's process on a busy core; with niceness 19 it would get a seventieth, and a
# sign-in would take too long.
PROGRAM = """
import base64, hashlib, json, os, sys
os.nice(10)
given = json.load(sys.stdin)
salt, password = given["salt"].encode(), given["password"].encode()
print(base64.b64encode(hashlib.pbkdf2_hmac("sha256", password, salt, given["iterations"])).decode())
"""


class Turns:
    """Allows one hash at a time in each web process, and bounds the number that wait."""

    def __init__(self) -> None:
        self._slots = threading.BoundedSemaphore(MAX_WAITING)
        self._turn = threading.Lock()

    @contextmanager
    def take(self) -> Iterator[None]:
        """Waits for the caller's turn; the turn lasts for the block.

        Raises SystemBusy when too many wait, or when the turn does not come within MAX_SECONDS.
        """
        if not self._slots.acquire(blocking=False):
            raise busy()
        try:
            if not self._turn.acquire(timeout=MAX_SECONDS):
                raise busy()
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._slots.release()


class SeparateHasher(PBKDF2PasswordHasher):
    """Django's PBKDF2, computed in a child process.

    In a thread the hash would release the interpreter's lock, but take a core from the event loop that serves messages,
    and a thread has the same priority as its process.
    """

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        self._check_encode_args(password, salt)  # type: ignore[attr-defined]  # Django's own, which its stubs leave out
        rounds = iterations or self.iterations
        return f"{self.algorithm}${rounds}${salt}${derived(password, salt, rounds)}"


def derived(password: str, salt: str, iterations: int) -> str:
    """The PBKDF2-HMAC-SHA256 of a password, in base64.

    Raises SystemBusy when too many are being computed at once.
    """
    given = json.dumps({"password": password, "salt": salt, "iterations": iterations})
    # The child reads neither the environment nor installed packages, so it starts in 15 ms.
    words = [sys.executable, "-I", "-S", "-c", PROGRAM]
    sync.give_connection_back()
    with runtime.control(Turns).take():
        try:
            done = subprocess.run(
                words, input=given, capture_output=True, text=True, timeout=MAX_SECONDS, check=True, env={}
            )
        except subprocess.TimeoutExpired as problem:
            raise busy() from problem
    patience.current().renew()
    return done.stdout.strip()


def busy() -> SystemBusy:
    """The refusal when a password cannot be checked now."""
    return SystemBusy("Too many passwords are being checked: try again in some seconds.")
