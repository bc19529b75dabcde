"""The version of the map from topics to cells: a request whose cell was found by an old map is not written in this
cell.

A topic leaves a cell in these steps: all sessions of the cell are ended and its epoch is raised; the topic's row at the
control names another cell and the map gets a new version; sessions may write again. So a session that can write was
opened after the move, and its connection has the new version.
"""

import asyncio

from store.db import connections
from store.db.connections import Connection
from store.db.statements import Statement
from store.errors import SystemBusy
from store.process import runtime

READ_MAP = Statement(__file__, "read_map", one=int)
# How long a new session waits for the control; sessions are also opened while the control is away.
CONTROL_SECONDS = 1.0


class Known:
    """The newest version of the map that this process has read, and the epoch of each cell at that time."""

    def __init__(self) -> None:
        self.version = 0
        self.epochs: dict[int, int] = {}


async def connect(application: str) -> Connection:
    """Opens a connection as `connections.connect` does. With several cells, the connection gets the current version of
    the map.

    Raises SystemBusy if the control is away and the epoch of the cell has changed: topics may have left the cell.
    """
    connection = await connections.connect(application)
    # If there was only one cell and it was fenced, it may have been split into two.
    if runtime.placement.topics_move or connection.epoch:
        try:
            connection.map_version = await _version(runtime.here().cell, connection.epoch)
        except BaseException:
            await connection.close()
            raise
    return connection


async def has_changed(version: int) -> bool:
    """Whether the map's version is no longer `version`. Raises SystemBusy while the control is away."""
    known = runtime.control(Known)
    [found] = await connections.read_control(READ_MAP)
    known.version = max(known.version, found)
    return known.version != version


async def _version(cell: int, epoch: int) -> int:
    """The current version of the map. While the control is away: the version that this process has read last."""
    known = runtime.control(Known)
    try:
        async with asyncio.timeout(CONTROL_SECONDS):
            [found] = await connections.read_control(READ_MAP)
    except (SystemBusy, TimeoutError):
        # A cell that is new to this process counts as never fenced: cached data about the cell may be older than a
        # fence.
        if known.epochs.get(cell, 0) != epoch:
            raise
        return known.version
    known.version = max(known.version, found)
    known.epochs[cell] = epoch
    return known.version
