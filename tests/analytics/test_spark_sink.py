"""The sink `mqbroker`: rows of a frame, or of a stream, are sent as messages, each once under its id."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from mqbroker_client import Consumer
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analytics.stream import register
from tests.broker import characters
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import received_until_empty
from tests.broker.wire import Wire

ROWS = 2_500


@pytest.fixture
def session(spark: SparkSession, broker: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkSession]:
    """A session that knows the sink and the broker."""
    monkeypatch.setenv("MQBROKER_URL", broker.url)
    monkeypatch.setenv("MQBROKER_API_KEY", API_KEY)
    register(spark)
    yield spark
    for name in ("MQBROKER_URL", "MQBROKER_API_KEY"):
        spark.sparkContext.environment.pop(name)


def prices(spark: SparkSession, seed: str) -> DataFrame:
    """Rows whose ids are made of what they are."""
    number = F.col("id").cast("string")
    return spark.range(0, ROWS, 1, 3).select(
        F.md5(F.concat(F.lit(seed), number)).alias("message_id"), F.concat(F.lit("price "), number).alias("body")
    )


def save(frame: DataFrame, mode: str = "append", **options: str) -> None:
    """Sends the rows."""
    frame.write.format("mqbroker").options(**options).mode(mode).save()


def test_each_row_is_one_message_also_when_the_frame_is_written_again(
    session: SparkSession, consumer: Consumer, orders: str
) -> None:
    frame = prices(session, orders)

    save(frame, topic=orders)
    save(frame, topic=orders)

    found = [delivery.body.decode() for delivery in received_until_empty(consumer, orders)]
    assert sorted(found) == sorted(f"price {number}" for number in range(ROWS))


def test_a_row_has_the_fields_of_a_message(session: SparkSession, wire: Wire, consumer: Consumer, orders: str) -> None:
    id_, due = UUID(int=2**127), datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    row = (orders, b"\x00\xff", str(id_), "paid", ["7", "8"], {"region": "eu"}, "customer 7", due, None)
    columns = "topic string, body binary, message_id string, tags string, keys array<string>"
    more = "properties map<string,string>, sharding_key string, deliver_at timestamp, delay_level int"
    plain = (orders, b"now", str(UUID(int=2**127 + 1)), None, None, None, None, None, None)

    save(session.createDataFrame([row, plain], f"{columns}, {more}"))

    found = wire.get(f"/v1/messages/{id_}").document
    stored = found["message"]
    assert (stored["body_base64"], stored["tags"], stored["keys"]) == ("AP8=", "paid", ["7", "8"])
    assert (stored["sharding_key"], stored["properties"]) == ("customer 7", {"region": "eu"})
    # It waits for its time.
    assert found["queue_offset"] is None
    assert [delivery.body for delivery in consumer.receive(orders)] == [b"now"]


def test_a_stream_sends_each_row_once_also_when_its_checkpoint_is_lost(
    session: SparkSession, consumer: Consumer, orders: str, tmp_path: Path
) -> None:
    prices(session, orders).write.parquet(str(tmp_path / "prices"))
    for attempt in ("first", "again"):
        stream = session.readStream.schema("message_id string, body string").parquet(str(tmp_path / "prices"))
        query = (
            stream.writeStream.format("mqbroker")
            .option("topic", orders)
            .option("checkpointLocation", str(tmp_path / attempt))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    found = [delivery.body.decode() for delivery in received_until_empty(consumer, orders)]
    assert sorted(found) == sorted(f"price {number}" for number in range(ROWS))


def test_what_the_broker_refuses_is_the_error_of_the_task(
    session: SparkSession, consumer: Consumer, orders: str
) -> None:
    id_ = UUID(int=7)
    frame = session.createDataFrame([(str(id_), "x", " ")], "message_id string, body string, tags string")

    with pytest.raises(PySparkException, match=rf"The message {id_} to {orders} was refused: message_illegal \(422\)"):
        save(frame, topic=orders)

    assert consumer.receive(orders) == []


@pytest.mark.parametrize(
    ("rows", "columns", "said"),
    [
        ([("x",)], "body string", "The frame has no column message_id: add it."),
        ([(1, "7")], "body int, message_id string", "The column body is int: make it binary or string."),
        ([("x", "7", 1)], "body string, message_id string, price int", "A message has no price: leave the column out"),
        ([("x", "7")], "body string, message_id string", "message_id of the row .* is no UUID"),
        ([(None, characters.name("7"))], "body string, message_id string", "is null in the row|is no UUID"),
    ],
)
def test_a_frame_that_is_no_messages_is_refused_by_a_sentence(
    session: SparkSession, consumer: Consumer, orders: str, rows: list[tuple[object, ...]], columns: str, said: str
) -> None:
    with pytest.raises(PySparkException, match=said):
        save(session.createDataFrame(rows, columns), topic=orders)

    assert consumer.receive(orders) == []


def test_a_row_without_a_topic_is_refused_by_a_sentence(session: SparkSession) -> None:
    frame = session.createDataFrame([(str(UUID(int=8)), "x", None)], "message_id string, body string, topic string")

    with pytest.raises(PySparkException, match=r"topic is null in the row .*: each row needs it"):
        save(frame)


@pytest.mark.parametrize(
    ("mode", "options", "said"),
    [
        ("overwrite", {"topic": "t"}, r'Messages are only added: give mode\("append"\)'),
        ("append", {"topik": "t"}, "There is no option topik of writing"),
        ("append", {}, "The frame has no column topic: add it, or give the option topic."),
    ],
)
def test_an_option_that_is_not_understood_is_refused(
    session: SparkSession, mode: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(PySparkException, match=said):
        save(prices(session, "refused"), mode, **options)
