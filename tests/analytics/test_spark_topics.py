"""The options topic, topicPattern, assign and namespace: only slices of those topics are read."""

import pytest
from pyspark.sql import SparkSession

from analytics.errors import OptionRefused
from tests.analytics import sources, streaming
from tests.analytics.parquet import Row, ordered
from tests.analytics.past import Past
from tests.analytics.test_export_committed import fill
from tests.analytics.writers import Connection

KEYS = {
    "committed": ("topic", "queue_id", "queue_offset"),
    "entries": ("topic", "queue_id", "queue_offset"),
    "messages": ("log_offset",),
    "timers": ("message_id",),
    "transactions": ("transaction_id",),
}


def is_chosen(row: Row, option: str) -> bool:
    """Whether a row belongs to the choice of the test."""
    topic = row.get("topic") or ""
    return {
        "topic": topic in ("orders", "team%orders"),
        "topicPattern": topic.endswith("orders"),
        "assign": (topic, row.get("queue_id")) in (("orders", 0), ("%RETRY%coupons", 1), ("%RETRY%coupons", 2)),
        "namespace": row.get("namespace") == "team",
    }[option]


GIVEN = {
    "topic": "orders, team%orders",
    "topicPattern": ".*orders",
    "assign": '{"orders": [0], "%RETRY%coupons": [1, 2]}',
    "namespace": "team",
}
CASES = [
    *((table, option) for table in ("committed", "entries") for option in GIVEN),
    *((table, option) for table in ("messages", "timers") for option in ("topic", "topicPattern")),
    *((table, "namespace") for table in ("messages", "transactions")),
]


@pytest.mark.parametrize(("table", "option"), CASES)
def test_a_choice_of_topics_is_read_as_it_would_be_chosen_from_all_rows(
    reader: str, past: Past, table: str, option: str
) -> None:
    expected = [row for row in sources.read(reader, table=table) if is_chosen(row, option)]

    found = sources.read(reader, table=table, rows_per_slice=50, **{option: GIVEN[option]})

    assert ordered(found, *KEYS[table]) == ordered(expected, *KEYS[table])
    assert expected


def test_of_the_queues_of_other_topics_no_slice_is_read(busy_database: str, writer: Connection) -> None:
    fill(writer, 60)
    other(writer, 40)

    def slices(**options: str) -> int:
        of = sources.source(busy_database, table="committed", rows_per_slice=1, **options)
        return len(of.reader(of.schema()).partitions())

    assert (slices(), slices(topic="other"), slices(topic="orders")) == (80, 40, 40)
    assert slices(assign='{"other": [0]}', startingOffsets='{"other": {"0": 30}}') == 10


def test_a_stream_of_one_topic_counts_and_reads_its_offsets_only(busy_database: str, writer: Connection) -> None:
    fill(writer, 60)
    other(writer, 40)
    [(topic_id,)] = writer.execute("SELECT id FROM topic WHERE name = 'other'").fetchall()

    of = sources.stream(busy_database, topic="other", maxOffsetsPerTrigger=15)

    start = of.initialOffset()
    assert (start, of.latestOffset(start, of.getDefaultReadLimit())) == ({f"{topic_id}/0": 0}, {f"{topic_id}/0": 15})
    assert {row["topic"] for row in sources.streamed(busy_database, topic="other")} == {"other"}


def test_a_stream_of_a_pattern_takes_in_a_topic_that_was_made_since(busy_database: str, writer: Connection) -> None:
    fill(writer, 30)
    of = sources.stream(busy_database, topicPattern="oth.*")
    start = of.initialOffset()
    other(writer, 40)

    later = sources.stream(busy_database, topicPattern="oth.*")

    assert start == {}
    assert list(later.latestOffset(start, later.getDefaultReadLimit()).values()) == [40]


def other(writer: Connection, entries: int) -> None:
    """Makes a topic whose only queue has the first message again and again."""
    writer.execute("INSERT INTO topic (name, queues, permission) VALUES ('other', 1, 'rw')")
    writer.execute(
        "INSERT INTO commit_log (segment_id, log_offset, stored_at, topic_id, queue_id, message_id, body, body_form) "
        "SELECT 1, nextval('commit_log_offset'), now(), t.id, 0, gen_random_uuid(), 'a body', 'text' "
        "FROM topic AS t, generate_series(1, %s) WHERE t.name = 'other'",
        (entries,),
    )
    writer.execute(
        "INSERT INTO consume_queue (segment_id, topic_id, queue_id, queue_offset, log_segment, log_offset, tags_code, "
        "reconsume_times, entered_at) SELECT 1, t.id, 0, row_number() OVER (ORDER BY l.log_offset) - 1, 1, "
        "l.log_offset, 0, 0, clock_timestamp() FROM topic AS t JOIN commit_log AS l ON l.topic_id = t.id "
        "WHERE t.name = 'other'"
    )
    writer.commit()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"topic": "orders, ordes"}, "There is no topic ordes: give names of topics as the column topic has them."),
        ({"topic": "a", "topicPattern": "b"}, "topic and topicPattern are both given: give one of them."),
        ({"topicPattern": "("}, "topicPattern is (: give a regular expression (missing ), unterminated subpattern"),
        (
            {"assign": '{"orders": 1}'},
            'assign is {"orders": 1}: give queues by topic as JSON, such as {"orders": [0, 1]}.',
        ),
        (
            {"assign": "{}", "table": "messages"},
            "assign is an option of committed and entries: give topic or topicPattern.",
        ),
        ({"topic": "orders", "table": "transactions"}, "The rows of transactions have no topic: give no option topic."),
        ({"namespace": "team", "table": "checks"}, "The rows of checks have no topic: give no option namespace."),
    ],
)
def test_a_choice_that_cannot_be_read_is_refused(
    busy_database: str, writer: Connection, options: dict[str, str], sentence: str
) -> None:
    fill(writer, 3)

    with pytest.raises(OptionRefused) as refused:
        sources.read(busy_database, **options)

    assert str(refused.value).startswith(sentence)


@pytest.mark.spark
def test_a_query_of_spark_streams_one_topic_until_all_is_read(
    spark: SparkSession, busy_database: str, writer: Connection, tmp_path: object
) -> None:
    fill(writer, 60)
    other(writer, 40)
    frame = streaming.frame(spark, busy_database, topic="other", maxOffsetsPerTrigger=15)

    query = frame.writeStream.format("noop").option("checkpointLocation", f"{tmp_path}/checkpoint")
    running = query.trigger(availableNow=True).start()
    running.awaitTermination()

    assert [progress["numInputRows"] for progress in running.recentProgress] == [15, 15, 10]
