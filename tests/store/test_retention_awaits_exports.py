"""Retention that waits for exports: a segment stays until one holds it whole, as long as there is room."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from structlog.testing import capture_logs

from analytics.files import noted
from analytics.files.manifest import Manifest, Reached
from store.db import connections
from store.rows import ExportWait
from store.segments import exports, lifecycle
from tests.broker import characters
from tests.store.keeper import Keeper

NIGHTLY = "/exports/nightly"
NAMES = ("RETAIN_UNTIL_EXPORTED", "RETAIN_UNTIL_EXPORTED_MAX_BYTES", "EXPORT_NIGHTLY_TO")


@pytest.fixture
def waiting(keeper: Keeper) -> Iterator[Keeper]:
    """Segments 1 to 3 are closed and over, 4 is open, and retention waits for exports."""
    before = {name: getattr(settings, name) for name in NAMES}
    settings.RETAIN_UNTIL_EXPORTED = True
    orders = characters.name("orders")
    for number in range(3):
        keeper.send(orders, f"order {number}")
        keeper.roll()
    keeper.send(orders, "the last order")
    yield keeper
    for name, value in before.items():
        setattr(settings, name, value)


def exported(keeper: Keeper, open_segment: int, to: str = "/exports/any") -> None:
    """An export whose files are in place; a segment was open at its moment."""
    ends = Reached(open_segment, 2 * open_segment, -1, [])
    taken_at = "2026-03-01T12:00:00+00:00"
    rows = {"messages": 3, "transactions": 1, "transactions_open": 1}
    made = Manifest(database="1/1", taken_at=taken_at, rows=rows, ends=ends, holes=[], unused=[], parts=[])
    assert noted.note(keeper.url, to, made) is None


def wait(keeper: Keeper) -> ExportWait:
    """What waits, as metrics and the console read it."""
    [found] = keeper.do(connections.read(exports.FIND_EXPORT_WAIT, {"target": settings.EXPORT_NIGHTLY_TO}))
    return found


def test_a_segment_stays_until_an_export_holds_it_whole(waiting: Keeper) -> None:
    assert waiting.drop_old() == []

    # Segment 2 was open at that moment: what was written to it since is in no file.
    exported(waiting, open_segment=2)

    assert waiting.drop_old() == [1]
    assert waiting.drop_old() == []
    assert wait(waiting) == (2, 0, None)
    exported(waiting, open_segment=4)
    assert waiting.drop_old() == [2, 3]
    assert wait(waiting) == (0, 0, None)


def test_where_a_nightly_folder_is_set_only_exports_to_it_count(waiting: Keeper) -> None:
    settings.EXPORT_NIGHTLY_TO = NIGHTLY
    exported(waiting, open_segment=4)
    assert waiting.drop_old() == []

    exported(waiting, open_segment=3, to=NIGHTLY)

    assert waiting.drop_old() == [1, 2]


def test_a_tick_leaves_what_waits_and_takes_what_was_exported(waiting: Keeper) -> None:
    waiting.sql("UPDATE segment SET closed_at = closed_at - interval '100 hours' WHERE state = 'closed'")
    waiting.do(lifecycle.run())
    assert waiting.states()[1] == "closed"
    exported(waiting, open_segment=4)

    waiting.do(lifecycle.run())

    assert waiting.states() == {1: "dropped", 2: "dropped", 3: "closed", 4: "open", 5: "ready"}


def test_above_the_limit_retention_goes_on_and_says_so(waiting: Keeper) -> None:
    settings.RETAIN_UNTIL_EXPORTED_MAX_BYTES = 0
    exported(waiting, open_segment=2)

    with capture_logs() as logged:
        assert waiting.drop_old() == [1, 2, 3]

    said = [line for line in logged if line["event"] == "a segment is dropped before its export"]
    assert [(line["segment"], line["log_level"]) for line in said] == [(2, "warning"), (3, "warning")]
    found = wait(waiting)
    assert (found.waiting, found.dropped, found.last_dropped_at is not None) == (0, 2, True)


def test_without_the_setting_nothing_waits(waiting: Keeper) -> None:
    settings.RETAIN_UNTIL_EXPORTED = False

    assert waiting.drop_old() == [1, 2, 3]
    assert wait(waiting).dropped == 0


def test_an_export_to_the_same_folder_takes_the_place_of_the_one_before(waiting: Keeper) -> None:
    exported(waiting, open_segment=4)

    # The folder was deleted meanwhile, say, and an older export was put in its place.
    exported(waiting, open_segment=1)

    assert waiting.drop_old() == []


def test_folders_that_were_exported_to_once_are_forgotten(waiting: Keeper) -> None:
    for number in range(exports.MAX_KEPT + 5):
        exported(waiting, open_segment=1, to=f"/exports/{number}")

    kept = {row.target for row in waiting.sql("SELECT target FROM export")}

    assert kept == {f"/exports/{number}" for number in range(5, exports.MAX_KEPT + 5)}
