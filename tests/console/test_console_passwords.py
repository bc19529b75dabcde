"""Promises about hashing a password: Django's own hash, computed beside the process that serves messages."""

import os
import resource
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, check_password, make_password

from console.users.passwords import MAX_WAITING, SeparateHasher
from store.errors import SystemBusy
from store.process import runtime
from store.process.runtime import Runtime
from tests.broker.polling import eventually


@pytest.fixture(autouse=True)
def process() -> Iterator[None]:
    """The runtime of a process that hashes."""
    with runtime.installed(Runtime()):
        yield


@pytest.mark.parametrize("password", ["let me see", "пароль ✓", 'with\nlines\0and "more"', " "])
def test_a_hash_is_the_one_that_django_makes(password: str) -> None:
    assert SeparateHasher().encode(password, "salt", 1000) == PBKDF2PasswordHasher().encode(password, "salt", 1000)


def test_the_process_that_serves_does_not_compute_the_hash() -> None:
    serving, beside = cpu_seconds(resource.RUSAGE_SELF), cpu_seconds(resource.RUSAGE_CHILDREN)

    assert check_password("let me see", make_password("let me see"))

    serving, beside = cpu_seconds(resource.RUSAGE_SELF) - serving, cpu_seconds(resource.RUSAGE_CHILDREN) - beside
    # Neither the start of the other process nor a cache that others have emptied counts for more.
    assert serving < beside / 2


def cpu_seconds(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def test_a_hash_has_a_low_priority() -> None:
    lower = min(os.nice(0) + 10, 19)

    def is_low() -> bool:
        return any(niceness == lower for niceness in children())

    with ThreadPoolExecutor(1) as beside:
        hashed = beside.submit(SeparateHasher().encode, "let me see", "salt", 2_000_000)
        eventually(is_low, within_seconds=30)
        # On a busy machine it may be given up, which is not the question here.
        hashed.exception()


def children() -> list[int]:
    """The niceness of each child of this process."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == os.getpid():
            found.append(int(fields[16]))
    return found


def test_only_so_many_passwords_wait_for_their_hash() -> None:
    together = threading.Barrier(MAX_WAITING + 8)

    def refused(number: int) -> bool:
        together.wait()
        try:
            # The first one computes for longer than the others take to ask.
            SeparateHasher().encode(f"guess {number}", "salt", 50_000)
        except SystemBusy:
            return True
        return False

    with ThreadPoolExecutor(MAX_WAITING + 8) as many:
        outcomes = list(many.map(refused, range(MAX_WAITING + 8)))

    assert outcomes.count(False) >= MAX_WAITING
    assert outcomes.count(True) >= 1
