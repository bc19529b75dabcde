"""The stream of what is committed: each visible message once, also when it is killed, and nothing of other halves.

`MQ_KILLS=5 MQ_COMMITTED=200000 ./mq test tests/analytics/test_export_committed.py` has the size of a day.
"""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.analytics import sources, streaming
from tests.analytics.kills import KILLS
from tests.analytics.parquet import rows
from tests.analytics.test_export_kills import kill_within_a_batch
from tests.analytics.writers import Connection

# Of every three messages one is sent, one is committed, and one is rolled back or left.
MESSAGES = int(os.environ.get("MQ_COMMITTED", "240"))
BATCHES = 4
FILL = Path(__file__).with_name("committed.sql")


def fill(writer: Connection, messages: int) -> None:
    """Stores messages, of which a third stays without a commit."""
    writer.execute(FILL.read_text(encoding="utf-8"), {"messages": messages})
    writer.commit()


def visible(connection: Connection) -> list[tuple[int, int]]:
    """The queue and the offset of each message that consumers can see."""
    found = connection.execute("SELECT queue_id, queue_offset FROM consume_queue ORDER BY queue_id, queue_offset")
    return [(int(queue), int(offset)) for queue, offset in found.fetchall()]


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_a_stream_of_what_is_committed_that_is_killed_has_each_message_once_and_none_else(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    fill(writer, MESSAGES)
    visible_messages = MESSAGES - MESSAGES // 3
    options: dict[str, str | int] = {"table": "committed", "maxOffsetsPerTrigger": visible_messages // BATCHES}

    for number in range(KILLS):
        kill_within_a_batch(busy_database, tmp_path, options, has_written=number % 2 == 1)
    streaming.to_files(streaming.frame(spark, busy_database, **options), tmp_path)

    # By the list of the sink: a killed batch leaves files of its own.
    read = spark.read.parquet(str(tmp_path / "files")).select("queue_id", "queue_offset", "state").collect()
    assert sorted((row["queue_id"], row["queue_offset"]) for row in read) == visible(writer)
    assert len(read) == visible_messages
    assert {row["state"] for row in read} == {None, "COMMITTED"}
    assert len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))) >= BATCHES


def test_what_is_committed_has_the_due_time_and_no_retry_no_copy_and_no_second_sending(
    busy_database: str, writer: Connection
) -> None:
    fill(writer, 9)
    before = visible(writer)
    first, second, third = before[:3]
    writer.execute("INSERT INTO topic (name, queues, permission) VALUES ('%RETRY%shop', 1, 'rw')")
    [(due_at,)] = writer.execute(
        "UPDATE consume_queue SET due_at = now() WHERE (queue_id, queue_offset) = (%s, %s) RETURNING due_at", first
    ).fetchall()
    for topic, of, offset in (("%RETRY%shop", second, 0), ("orders", third, 1_000)):
        writer.execute(
            "INSERT INTO consume_queue (segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, "
            "tags_code, reconsume_times, entered_at) SELECT 1, t.id, 0, %s, 1, c.log_offset, 0, 0, "
            "clock_timestamp() FROM consume_queue AS c, topic AS t "
            "WHERE t.name = %s AND (c.queue_id, c.queue_offset) = (%s, %s)",
            (offset, topic, *of),
        )
    writer.execute("INSERT INTO redrive (segment_id, group_id, queue_offset, redriven_at) VALUES (1, 1, 0, now())")
    writer.commit()

    read = sources.streamed(busy_database)

    assert sorted((row["queue_id"], row["queue_offset"]) for row in read) == before
    dues = {(row["queue_id"], row["queue_offset"]): row["due_at"] for row in read if row["due_at"]}
    assert dues == {first: due_at}
    assert {row["topic"] for row in read} == {"orders"}


def test_a_stream_begins_where_its_options_say_and_tells_how_far_it_is_behind(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    fill(writer, 30)
    [(since,)] = writer.execute("SELECT now() + interval '1 ms'").fetchall()
    writer.rollback()
    fill(writer, 9)
    ends = {queue: offset + 1 for queue, offset in visible(writer)}

    def read(table: str = "entries", **options: str) -> int:
        return len(sources.streamed(busy_database, table=table, **options))

    assert read(startingOffsets="latest") == 0
    assert read(startingTimestamp=since.isoformat()) == 6
    assert read(startingOffsets=f'{{"orders": {{"0": {ends[0] - 2}, "1": -1}}}}') == 2
    assert read("messages", startingOffsets='{"log_offset": 36}') == 3

    starting: dict[str, str | int] = {
        "startingOffsets": f'{{"orders": {{"0": {ends[0] - 3}}}}}',
        "maxOffsetsPerTrigger": 10,
    }
    query = streaming.frame(spark, busy_database, table="entries", **starting).writeStream.format("noop")
    running = query.option("checkpointLocation", str(tmp_path / "progress")).trigger(availableNow=True).start()
    running.awaitTermination()
    batches = [progress for progress in running.recentProgress if progress["numInputRows"]]
    assert [progress["numInputRows"] for progress in batches] == [10, 6]
    assert batches[0]["sources"][0]["latestOffset"] == batches[-1]["sources"][0]["endOffset"]


@pytest.mark.long
def test_what_is_committed_joins_the_outcomes_as_streams(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: Path
) -> None:
    fill(writer, 60)
    committed = streaming.frame(spark, busy_database, table="committed").withWatermark("entered_at", "1 minute")
    outcomes = streaming.frame(spark, busy_database, table="transactions").withWatermark("decided_at", "1 minute")
    is_of = F.expr(
        "c.transaction_id = o.transaction_id AND o.decided_at BETWEEN c.entered_at - INTERVAL 1 MINUTE "
        "AND c.entered_at + INTERVAL 1 MINUTE"
    )

    joined = committed.alias("c").join(outcomes.alias("o"), is_of).select("c.message_id", "o.decided_by", "o.state")

    streaming.to_files(joined, tmp_path)

    found = rows(tmp_path / "files")
    assert len({row["message_id"] for row in found}) == len(found) == 20
    assert {(row["decided_by"], row["state"]) for row in found} == {("producer", "COMMITTED")}
