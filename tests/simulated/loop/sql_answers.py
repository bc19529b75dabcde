"""What the simulated server answers to the product's statements, and the server itself."""

import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from store import queues, rows
from store.cells import cells
from store.commit import locked, moved, pipelined, stalled
from store.db import fences, routing
from store.notices import peers
from store.segments import log
from tests.simulated.loop.postgres import Backend, Database, Rows, ServerError

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SILENCE = re.compile(r"idle_in_transaction_session_timeout = (\d+)")


def _join_writers(backend: Backend, text: str) -> Rows:
    backend.is_in_transaction = True
    if found := SILENCE.search(text):
        backend.silence_seconds = int(found[1]) / 1000
    backend.lock_seconds = 0.25
    return [rows.OpenSegment(backend.database.segment, NOW)]


def _join(backend: Backend, given: Mapping[str, Any]) -> Rows:
    """The statement that joins the writers and locks queues, in each of its three forms."""
    if backend.is_read_only:
        raise ServerError("25006")
    only_free = given.get("only_free") == b"\x01"
    if "queue_id" in given:
        wanted = [(_int(given["topic_id"]), _int(given["queue_id"]))]
    else:
        wanted = sorted(zip(_ints(given.get("locked_topic_id")), _ints(given.get("locked_queue_id")), strict=True))
    for queue in wanted:
        if only_free and backend.database.locks.get(("queue", queue), backend) is not backend:
            continue
        backend.hold(("queue", queue))
        backend.locked_queues.add(queue)
    return [struct.pack("!i", backend.database.segment)]


def _int(packed: Any) -> int:
    return int.from_bytes(packed)


def _ints(packed: Any) -> list[int]:
    """The numbers of an array of int4 in its binary form."""
    if not packed:
        return []
    dimensions, _, _ = struct.unpack_from("!iii", packed)
    if not dimensions:
        return []
    [many] = struct.unpack_from("!i", packed, 12)
    return [struct.unpack_from("!i", packed, 24 + 8 * place)[0] for place in range(many)]


def _append_messages(backend: Backend, given: Mapping[str, Any]) -> Rows:
    places = zip(given["message_id"], given["topic_id"], given["queue_id"], strict=True)
    return [rows.Appended(backend.append(id_.bytes, (topic, queue)), id_) for id_, topic, queue in places]


def _lock_queues(backend: Backend, given: Mapping[str, Any]) -> Rows:
    for queue in sorted(zip(given["topic_id"], given["queue_id"], strict=True)):
        backend.hold(("queue", queue))
    return ()


def _enqueue(backend: Backend, given: Mapping[str, Any], *, is_first: bool) -> Rows:
    found = []
    by_offset = {offset: key for key, (offset, _) in backend.appended.items()}
    begun = set(backend.database.begun) | {queue for queue, _ in backend.entered}
    places = zip(given["topic_id"], given["queue_id"], given["log_offset"], strict=True)
    for topic_id, queue_id, log_offset in places:
        queue = (topic_id, queue_id)
        if is_first or queue in begun:
            offset = backend.enter(queue, by_offset[log_offset])
            found.append(rows.Enqueued(topic_id, queue_id, offset, log_offset))
    return found


def _identify(backend: Backend, _: Mapping[str, Any]) -> Rows:
    here = backend.database
    is_fenced = here.fence_until is not None
    return [rows.CellIdentity(here.cell, here.epoch, is_fenced, False, list(here.departed), [])]


def _find_guard(backend: Backend, _: Mapping[str, Any]) -> Rows:
    return [f"topic_id <> ALL ({sorted(backend.database.guard)})"]


def _notify(backend: Backend, given: Mapping[str, Any]) -> Rows:
    backend.database.notify(given["channel"], given["payload"])
    return ()


def _find_holders(backend: Backend, _: Mapping[str, Any]) -> Rows:
    holders = {holder.pid: holder.application for holder in backend.database.locks.values()}
    return [rows.Holder(pid, name) for pid, name in sorted(holders.items())[: locked.MAX_HOLDERS]]


STATEMENTS: dict[Any, Callable[[Backend, Mapping[str, Any]], Rows]] = {
    **dict.fromkeys(pipelined.JOINS, _join),
    log.APPEND_MESSAGES: _append_messages,
    queues.LOCK_QUEUES: _lock_queues,
    queues.ENQUEUE_ENTRIES: lambda backend, given: _enqueue(backend, given, is_first=False),
    queues.ENQUEUE_FIRST_ENTRIES: lambda backend, given: _enqueue(backend, given, is_first=True),
    fences.IDENTIFY_CELL: _identify,
    routing.READ_MAP: lambda backend, _: [backend.database.map_version],
    cells.LIST_CELLS: lambda backend, _: backend.database.cells,
    moved.FIND_GUARD: _find_guard,
    peers.NOTIFY: _notify,
    locked.FIND_HOLDERS: _find_holders,
    stalled.END_STALLED_WRITERS: lambda backend, _: (),
}


def server(cell: int = 0) -> Database:
    """A server that knows the product's statements; the database of a cell."""
    database = Database(cell)
    database.begins = _join_writers
    for statement, answer in STATEMENTS.items():
        database.answer(statement, answer)
    return database
