"""The map from topics to cells, by its version: a request is written under no newer map than it was routed by.

A topic leaves a cell in this order: all sessions of the cell are ended, the topic's row at the control names another
cell and the map has a further version, sessions may write again. So a session that was opened behind that finds the new
version, and one from before it does not live. A cell's epoch is raised as its sessions are ended.
"""

import asyncio
from typing import NamedTuple

from store.db import connections
from store.db.connections import Connection
from store.db.statements import Statement
from store.errors import SystemBusy
from store.process import runtime


class MapVersion(NamedTuple):
    """The version of the map from topics to cells."""

    version: int


READ_MAP = Statement(__file__, "read_map", MapVersion)
# Sessions are opened while the control is away, too.
CONTROL_SECONDS = 1.0


class Known:
    """What this process knows of the map: its version, and the epoch that each cell had by then."""

    def __init__(self) -> None:
        self.version = 0
        self.epochs: dict[int, int] = {}


async def connect(application: str) -> Connection:
    """As `connections.connect`; over several cells the connection has the version of the map that it was opened under.

    Raises SystemBusy for a cell whose epoch is another one than this process knew, while the control is away: its
    topics may lie elsewhere.
    """
    connection = await connections.connect(application)
    # One cell that was fenced may be two by now.
    if runtime.several or connection.epoch:
        try:
            connection.map_version = await _version(runtime.here().cell, connection.epoch)
        except BaseException:
            await connection.close()
            raise
    return connection


async def has_changed(version: int) -> bool:
    """Whether the map has another version by now than this one. Raises SystemBusy while the control is away."""
    known = runtime.control(Known)
    [found] = await connections.read_control(READ_MAP)
    known.version = max(known.version, found.version)
    return known.version != version


async def _version(cell: int, epoch: int) -> int:
    """The version of the map as it is now; while the control is away, that which was known last."""
    known = runtime.control(Known)
    try:
        async with asyncio.timeout(CONTROL_SECONDS):
            [found] = await connections.read_control(READ_MAP)
    except (SystemBusy, TimeoutError):
        if known.epochs.get(cell, epoch) != epoch:
            raise
        return known.version
    known.version = max(known.version, found.version)
    known.epochs[cell] = epoch
    return known.version
