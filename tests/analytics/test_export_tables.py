"""What the export holds: every row of the broker, each column of it, exactly."""

from tests.analytics.conftest import Exported
from tests.analytics.parquet import ordered, rows, transactions, types
from tests.analytics.past import Past


def test_every_message_is_exported_once_with_every_byte(exported: Exported, past: Past) -> None:
    found = rows(exported.folder / "messages")

    assert ordered(found, "log_offset") == ordered(past.messages, "log_offset")
    assert [row["copy_of"] for row in found if row["copy_of"] is not None] == [past.messages[0]["log_offset"]]


def test_every_entry_is_exported_and_points_at_its_message(exported: Exported, past: Past) -> None:
    found = rows(exported.folder / "entries")

    assert ordered(found, "topic", "queue_id", "queue_offset") == ordered(
        past.entries, "topic", "queue_id", "queue_offset"
    )
    stored = {(row["segment"], row["log_offset"]) for row in rows(exported.folder / "messages")}
    assert {(row["log_segment"], row["log_offset"]) for row in found} <= stored


def test_every_transaction_is_exported_once_with_its_outcome(exported: Exported, past: Past) -> None:
    found = transactions(exported.folder)

    assert ordered(found, "transaction_id") == ordered(past.transactions, "transaction_id")
    assert {row["state"] for row in found} == {"PREPARED", "COMMITTED", "ROLLED_BACK", "DISCARDED"}


def test_every_check_is_exported(exported: Exported, past: Past) -> None:
    found = rows(exported.folder / "checks")

    assert ordered(found, "asked_at") == ordered(past.checks, "asked_at")


def test_every_timer_is_exported_with_its_due_time(exported: Exported, past: Past) -> None:
    found = rows(exported.folder / "timers")

    assert ordered(found, "due_at") == ordered(past.timers, "due_at")


def test_a_segment_is_a_folder_of_its_own_and_a_day_one_in_it(exported: Exported) -> None:
    for table in ("messages", "entries", "transactions", "checks"):
        folders = sorted((exported.folder / table).glob("*/*"))
        assert [path.parent.name for path in folders] == ["segment=1", "segment=2"]
        assert {path.name for path in folders} == {"day=2026-03-01"}


def test_times_are_in_utc_to_the_microsecond(exported: Exported) -> None:
    times = {
        (table, column): type_
        for table in ("messages", "entries", "transactions", "checks")
        for column, type_ in types(exported.folder / table).items()
        if column.endswith("_at")
    }

    assert len(times) == 8
    assert set(times.values()) == {"timestamp[us, tz=UTC]"}
