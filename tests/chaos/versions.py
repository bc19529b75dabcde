"""Versions of the broker from this clone's history, and the replacement of processes by those of another version."""

import asyncio
import os
import subprocess
import tarfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import pytest

from mqbroker.embedded.commands import ROOT
from tests.broker.running import RunningBroker
from tests.chaos.shops import Shop

ACKNOWLEDGED_BETWEEN = 200


def git(*words: str) -> bytes:
    """What git prints. Skips the test where it has nothing to say."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True)
    if done.returncode or not done.stdout.strip():
        pytest.skip("the earlier version is not in this clone's history")
    return done.stdout


def checkout(folder: Path, added: Sequence[str]) -> Path:
    """A checkout of the commit before the last one that added one of these files, or of MQ_UPGRADE_FROM."""
    found = ("log", "-1", "--format=%H", "--diff-filter=A", "--", *added)
    revision = os.environ.get("MQ_UPGRADE_FROM") or f"{git(*found).decode().strip()}~1"
    with tarfile.open(fileobj=BytesIO(git("archive", revision))) as archive:
        archive.extractall(folder, filter="data")
    return folder


async def replaced(before: RunningBroker, after: RunningBroker, shop: Shop) -> None:
    """Replaces process by process while the shop works."""
    await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN)
    for number, (old, new) in enumerate(zip(before.children, after.children, strict=True)):
        await asyncio.to_thread(old.stop)
        await asyncio.to_thread(new.start)
        if number < len(after.webs):
            await asyncio.to_thread(after.wait_until_answers, number)
        shop.forget_acknowledged()
        await shop.has_acknowledged(ACKNOWLEDGED_BETWEEN)
