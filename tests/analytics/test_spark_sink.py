"""The sink `mqbroker`: rows of a frame, or of a stream, are sent as messages, each once under its id."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from mqbroker_client import Consumer
from mqbroker_client.contrib.spark import RowRefused, WriteRefused
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from analytics.stream import BrokerSource, register
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.tellings import received_until_empty
from tests.broker.wire import Wire

ROWS = 60


@pytest.fixture(scope="module")
def session(spark: SparkSession, broker: RunningBroker) -> Iterator[SparkSession]:
    """A session that knows the sink and the broker."""
    names = {"MQBROKER_URL": broker.url, "MQBROKER_API_KEY": API_KEY}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in names.items():
            patch.setenv(name, value)
        register(spark)
        yield spark
    for name in names:
        spark.sparkContext.environment.pop(name)


def prices(spark: SparkSession, seed: str) -> DataFrame:
    """Rows whose ids are made of what they are."""
    number = F.col("id").cast("string")
    return spark.range(0, ROWS, 1, 3).select(
        F.md5(F.concat(F.lit(seed), number)).alias("message_id"), F.concat(F.lit("price "), number).alias("body")
    )


def save(frame: DataFrame, **options: str) -> None:
    """Sends the rows."""
    frame.write.format("mqbroker").options(**options).mode("append").save()


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


def test_what_the_sink_refuses_is_what_spark_raises(session: SparkSession, orders: str) -> None:
    with pytest.raises(PySparkException, match=r"The frame has no column message_id: add it\."):
        save(session.createDataFrame([("x",)], "body string"), topic=orders)


def row_of(columns: str, *values: object) -> tuple[StructType, Row]:
    """A row as a task of Spark has it."""
    schema = StructType.fromDDL(columns)
    assert isinstance(schema, StructType)
    return schema, Row(*schema.names)(*values)


ID = str(UUID(int=8))


@pytest.mark.parametrize(
    ("columns", "values", "said"),
    [
        ("body string", ("x",), "The frame has no column message_id: add it."),
        ("body int, message_id string", (1, ID), "The column body is int: make it binary or string."),
        ("body string, message_id string, price int", ("x", ID, 1), "A message has no price: leave the column out"),
        ("body string, message_id string", ("x", "7"), "message_id of the row .* is no UUID"),
        ("body string, message_id string", (None, ID), "body is null in the row .*: each row needs it"),
    ],
)
def test_a_frame_that_is_no_messages_is_refused_by_a_sentence(
    session: SparkSession, consumer: Consumer, orders: str, columns: str, values: tuple[object, ...], said: str
) -> None:
    schema, row = row_of(columns, *values)

    with pytest.raises((RowRefused, WriteRefused), match=said):
        BrokerSource({"topic": orders}).writer(schema, False).write(iter([row]))

    assert consumer.receive(orders) == []


def test_a_row_without_a_topic_is_refused_by_a_sentence(session: SparkSession) -> None:
    schema, row = row_of("body string, message_id string, topic string", "x", ID, None)

    with pytest.raises(RowRefused, match=r"topic is null in the row .*: each row needs it"):
        BrokerSource({}).writer(schema, False).write(iter([row]))


@pytest.mark.parametrize(
    ("overwrite", "options", "said"),
    [
        (True, {"topic": "t"}, r'Messages are only added: give mode("append")'),
        (False, {"topik": "t"}, "There is no option topik of writing"),
        (False, {}, "The frame has no column topic: add it, or give the option topic."),
    ],
)
def test_an_option_that_is_not_understood_is_refused(
    session: SparkSession, overwrite: bool, options: dict[str, str], said: str
) -> None:
    with pytest.raises(WriteRefused) as refused:
        BrokerSource(options).writer(prices(session, "refused").schema, overwrite)

    assert said in str(refused.value)
