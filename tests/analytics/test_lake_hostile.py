"""A lake of hostile messages, killed within its batches: each message once, equal to SQL, and each fault named.

`MQ_HOSTILE=200000 MQ_KILLS=5 ./mq test tests/analytics/test_lake_hostile.py` has the size of a day.
"""

import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from analytics.readers.arrow import unpacked
from tests.analytics import lakes
from tests.analytics.history import EVERY_BYTE
from tests.analytics.kills import KILLS
from tests.analytics.past import PACK
from tests.analytics.writers import Connection

# Of three messages in a row two become visible.
MESSAGES = int(os.environ.get("MQ_HOSTILE", "600"))
FILL = Path(__file__).with_name("hostile.sql")
TEXT = "Zażółć gęślą 🐰 ".encode() * 20
BODIES = [(b"\x00", "base64"), (EVERY_BYTE, "base64"), (TEXT, "text"), (b"", "text")]
BODIES += [(PACK[form](TEXT), form) for form in ("zlib", "zstd")] + [(zlib.compress(b""), "zlib")]
# What was sent and became visible, as the broker has it: without the entries of levels, retries, dead letters, and of
# dead letters that were sent again.
SENT = """
SELECT DISTINCT ON (m.log_offset)
    m.log_offset, t.name, c.queue_id, c.queue_offset, m.message_id::text, m.transaction_id::text, m.body, m.body_form,
    m.stored_at, c.entered_at
FROM commit_log AS m
JOIN consume_queue AS c ON c.log_offset = m.log_offset AND c.topic_id = m.topic_id
JOIN topic AS t ON t.id = c.topic_id
ORDER BY m.log_offset, c.queue_offset
"""


def fill(writer: Connection, messages: int) -> None:
    """Stores messages of every kind."""
    bodies, forms = zip(*BODIES, strict=True)
    writer.execute(
        FILL.read_text(encoding="utf-8"), {"messages": messages, "bodies": list(bodies), "forms": list(forms)}
    )
    writer.commit()


def sent(writer: Connection) -> list[tuple[Any, ...]]:
    """The visible messages, as SQL has them."""
    found = writer.execute(SENT).fetchall()
    writer.commit()
    return [(*row[:6], unpacked(row[7], row[6]), *row[7:]) for row in found]


def held(folder: Path) -> list[tuple[Any, ...]]:
    """The same of the table."""
    names = ("log_offset", "topic", "queue_id", "queue_offset", "message_id", "transaction_id", "body", "body_form")
    return sorted(tuple(row[name] for name in (*names, "stored_at", "entered_at")) for row in lakes.rows(folder))


@pytest.mark.timeout(3600)
def test_a_lake_of_hostile_messages_that_is_killed_in_its_batches_has_each_once_as_sql_has_it(
    busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    folder = tmp_path / "lake"
    # In each round it gets further; the lines in between are those of its first batches.
    for number in range(KILLS):
        fill(writer, MESSAGES // (KILLS + 1))
        assert lakes.die(busy_database, folder, 40 + 30 * number)
    fill(writer, MESSAGES - MESSAGES // (KILLS + 1) * KILLS)

    lakes.caught_up(busy_database, folder)

    there = sent(writer)
    assert held(folder) == there
    assert len(there) == MESSAGES - MESSAGES // 3
    rows = lakes.rows(folder)
    assert {row["namespace"] for row in rows} == {None, "team", "other"}
    assert sum(row["due_at"] is not None for row in rows) > len(rows) // 6
    of, said = lakes.lake(busy_database, folder)
    of.verify()
    assert said == []
