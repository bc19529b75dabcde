"""The client's list of what is never taken is the broker's: generated transactions go to both."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mqbroker_client import BrokerError, Message, limits
from mqbroker_client.calls import producer as calls
from mqbroker_client.ids import uuid7
from mqbroker_client.reserved import FIELD_INSTEAD, RESERVED_PROPERTIES, SYSTEM_PREFIXES, SYSTEM_TOPICS

from store import topics
from store.messages import properties
from tests.broker.running import RunningBroker

GROUP = "limits"
# Few letters and all that a rule names, so that each rule is met and broken often.
LETTERS = st.sampled_from(["a", "é", "_", "%", "|", " ", "\t", "\x00", "\x85", "\u3000"])
TEXTS = st.one_of(st.text(LETTERS, max_size=3), st.sampled_from(["paid", "x" * 64, "x" * 65, "é" * 64]))
LONG = st.sampled_from(["x" * 8_191, "x" * 8_192, "é" * 4_096, "x" * 2_600])
TOPICS = st.one_of(
    st.just("limits"),
    st.sampled_from(["", "a b", "täg", "x" * 127, "x" * 128, "%RETRY%a", "%DLQ%a", "SCHEDULE_TOPIC_XXXX", "limits\n"]),
)
NAMES = st.one_of(TEXTS, st.sampled_from(sorted(RESERVED_PROPERTIES - {"CHECK_IMMUNITY_TIME_IN_SECONDS"})))
MANY = st.sampled_from([127, 128, 129]).map(lambda count: {f"p{number}": "" for number in range(count)})
NOW = datetime.now(UTC)
TIMES = st.sampled_from(
    [NOW, NOW + timedelta(days=39), NOW + timedelta(days=41), datetime(1, 1, 1, tzinfo=UTC)]
    + [datetime.fromisoformat(text) for text in ("0001-01-01T00:00:00+05:00", "9999-12-31T23:00:00-05:00")]
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "tags": TEXTS | LONG,
        "keys": st.lists(TEXTS, max_size=3),
        "properties": st.dictionaries(NAMES, TEXTS | LONG, max_size=4) | MANY,
        "sharding_key": TEXTS,
        "delay_level": st.sampled_from([-1, 0, 1, 99]),
        "delay_seconds": st.sampled_from([-1, -0.5, 0, 1, 40 * 86_400, 40 * 86_400 + 1]),
        "deliver_at": TIMES,
        "born_at": TIMES,
    },
)
# Most bodies are whole, and most messages have few fields: else the first rule would hide all others.
MESSAGES = st.builds(
    lambda topic, body, fields: Message(topic, body, **fields),
    st.one_of(st.just("limits"), st.just("limits"), TOPICS),
    st.sampled_from([b"1", b"\xff", b"1", b""]),
    FIELDS,
)


@given(st.lists(MESSAGES, min_size=1, max_size=3), st.sampled_from([GROUP, GROUP, "a group", ""]))
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_client_refuses_what_the_broker_refuses_in_its_words(
    broker: RunningBroker, messages: list[Message], group: str
) -> None:
    assert by_client(messages, group) == by_broker(broker, messages, group)


def test_both_have_the_same_limits_of_size_and_number(broker: RunningBroker) -> None:
    own = Message("limits", b"1")
    for messages in (
        [Message("limits", b"x" * (4 * 1024 * 1024))],
        [Message("limits", b"x" * (4 * 1024 * 1024 + 1))],
        [Message("limits", b"x" * (2 * 1024 * 1024)), Message("limits", b"x" * (2 * 1024 * 1024 + 1))],
        [Message("limits", b"1") for _ in range(128)],
        [Message("limits", b"1") for _ in range(129)],
        [own, own],
    ):
        assert by_client(messages) == by_broker(broker, messages)


def test_both_refuse_fields_of_another_type(broker: RunningBroker) -> None:
    wrong: list[dict[str, Any]] = [
        {"tags": 1},
        {"keys": [1]},
        {"properties": {"price": 1}},
        {"sharding_key": 1},
        {"queue_id": "1"},
        {"queue_id": True},
        {"delay_level": 1.5},
        {"delay_seconds": "1"},
    ]
    for fields in wrong:
        messages = [Message("limits", b"1", **fields)]
        assert by_client(messages)[:2] == by_broker(broker, messages)[:2] == (422, "message_illegal"), fields


def test_both_keep_the_same_names_for_the_broker() -> None:
    assert (RESERVED_PROPERTIES, FIELD_INSTEAD) == (properties.RESERVED_PROPERTIES, properties.FIELDS)
    assert SYSTEM_TOPICS == topics.SYSTEM
    assert SYSTEM_PREFIXES == (topics.RETRY_PREFIX, topics.DEAD_LETTER_PREFIX)


def by_client(messages: list[Message], group: str = GROUP) -> tuple[Any, ...]:
    try:
        limits.validate(group, messages)
    except BrokerError as error:
        return error.status, error.code, error.detail
    return ()


def by_broker(broker: RunningBroker, messages: list[Message], group: str = GROUP) -> tuple[Any, ...]:
    client, transaction_id = broker.client(), uuid7()
    with client:
        try:
            client.do(calls.begin(group, messages, transaction_id))
        except BrokerError as error:
            return error.status, error.code, error.detail
        client.call("POST", f"/v1/transactions/{transaction_id}/end", {"producer_group": group, "state": "ROLLBACK"})
    return ()
