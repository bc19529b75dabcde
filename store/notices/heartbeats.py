"""Heartbeats: each process of the broker notes that it is alive, and that it knows deliveries in bundles."""

import os
import socket
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from store.db import connections
from store.db.statements import Statement
from store.process import runtime
from store.process.models import Heartbeat

BEAT_HEART = Statement(__file__, "beat_heart")

# The least time between two heartbeats of a process.
NOTED_SECONDS = 3.0
# A process with an older last heartbeat counts as away.
AWAY_SECONDS = 10.0
MAX_PROCESSES = 100

Kind = Literal["web", "worker"]


class Alive(NamedTuple):
    """A process and its last heartbeat."""

    process: str
    kind: str
    beaten_at: datetime


class Heart:
    """The time of this process's last heartbeat."""

    def __init__(self) -> None:
        self.beaten_at = -NOTED_SECONDS


async def beat(kind: Kind) -> None:
    """Writes the heartbeat of this process: of a web process as it polls, of a worker at a tick of beat."""
    heart = runtime.control(Heart)
    if time.monotonic() - heart.beaten_at < NOTED_SECONDS:
        return
    heart.beaten_at = time.monotonic()
    await connections.read_control(BEAT_HEART, {"process": own_name(kind), "kind": kind})


def own_name(kind: Kind) -> str:
    """The name of this process in its heartbeat."""
    return f"{kind} {os.getpid()} at {socket.gethostname()}"


def alive() -> Sequence[Alive]:
    """The processes of the last day, MAX_PROCESSES at most, the latest heartbeat first."""
    rows = Heartbeat.objects.order_by("-beaten_at").values_list("process", "kind", "beaten_at")
    return [Alive(*row) for row in rows[:MAX_PROCESSES]]
