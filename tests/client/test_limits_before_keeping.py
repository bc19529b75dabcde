"""The client's list of what is never taken is the broker's: generated transactions go to both."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mqbroker_client import Broker, BrokerError, Message
from mqbroker_client.core import limits
from mqbroker_client.core.calls import producer as calls
from mqbroker_client.core.errors import SystemBusy
from mqbroker_client.core.ids import uuid7
from mqbroker_client.core.rules import RESERVED_PROPERTIES, SYSTEM_PREFIXES, SYSTEM_TOPICS

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tools.generate import client_rules

GROUP = "limits"
# Few letters, and each that a rule names alone beside a whole one.
LETTERS = ["", "a", "é", "%", "|", " ", "\t", "\x00", "\x85", "\u3000"]
TEXTS = st.sampled_from([f"{before}{letter}" for before in ("", "paid") for letter in LETTERS] + ["x" * 64, "x" * 65])
LONG = st.sampled_from(["x" * 8_191, "x" * 8_192, "é" * 4_096, "x" * 2_600])
OTHER_TOPICS = ["", "a b", "täg", "x" * 127, "x" * 128, "%RETRY%a", "%DLQ%a", "SCHEDULE_TOPIC_XXXX", "limits\n"]
NAMES = st.one_of(TEXTS, st.sampled_from(sorted(RESERVED_PROPERTIES - {"CHECK_IMMUNITY_TIME_IN_SECONDS"})))
MANY = st.sampled_from([127, 128, 129]).map(lambda count: {f"p{number}": "" for number in range(count)})
NOW = datetime.now(UTC)
TIMES = st.sampled_from(
    [NOW, NOW + timedelta(days=39), NOW + timedelta(days=41), datetime(1, 1, 1, tzinfo=UTC)]
    + [datetime.fromisoformat(text) for text in ("0001-01-01T00:00:00+05:00", "9999-12-31T23:00:00-05:00")]
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "tags": TEXTS | LONG,
    "keys": st.lists(TEXTS, max_size=2),
    "properties": st.dictionaries(NAMES, TEXTS | LONG, max_size=3) | MANY,
    "sharding_key": TEXTS,
    "delay_level": st.sampled_from([-1, 0, 1, 99]),
    "delay_seconds": st.sampled_from([-1, -0.5, 0, 1, 40 * 86_400, 40 * 86_400 + 1]),
    "deliver_at": TIMES,
    "born_at": TIMES,
    "born_host": TEXTS | st.sampled_from(["x" * 255, "x" * 256]),
    "max_reconsume_times": st.sampled_from([-1, 0, 1000, 1001]),
}


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """One in which a rule or two are tried: the first that is broken hides all others."""
    tried = draw(st.lists(st.sampled_from([*FIELDS, *FIELDS, "topic", "body"]), max_size=2, unique=True))
    topic = draw(st.sampled_from(OTHER_TOPICS)) if "topic" in tried else "limits"
    body = draw(st.sampled_from([b"", b"\xff"])) if "body" in tried else b"1"
    return Message(topic, body, **{field: draw(FIELDS[field]) for field in tried if field in FIELDS})


@given(st.lists(messages(), min_size=1, max_size=2), st.sampled_from([*[GROUP] * 20, "a group", ""]))
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_client_refuses_what_the_broker_refuses_in_its_words(
    broker: RunningBroker, given_messages: list[Message], group: str
) -> None:
    assert by_client(given_messages, group) == by_broker(broker, given_messages, group)


def test_both_have_the_same_limits_of_size_and_number(broker: RunningBroker) -> None:
    own = Message("limits", b"1")
    for together in (
        [Message("limits", b"x" * (4 * 1024 * 1024))],
        [Message("limits", b"x" * (4 * 1024 * 1024 + 1))],
        [Message("limits", b"x" * (2 * 1024 * 1024)), Message("limits", b"x" * (2 * 1024 * 1024 + 1))],
        [Message("limits", b"1") for _ in range(128)],
        [Message("limits", b"1") for _ in range(129)],
        [own, own],
        *[
            [Message("limits", b"1", tags="é" * 4_000, keys=["k" * 184, "l"], properties={"p" * 100: "v" * size})]
            for size in (8_099, 8_100)
        ],
    ):
        assert by_client(together) == by_broker(broker, together)


def test_both_have_the_same_rules_where_few_transactions_are_generated(broker: RunningBroker) -> None:
    edges: list[dict[str, Any]] = [
        {"properties": {"": "1"}},
        {"properties": {"price\x00": "1"}},
        {"properties": {"price": "1\x85"}},
        {"sharding_key": "é" * 64},
        {"sharding_key": "é" * 65},
    ]
    for one in (
        *[Message("limits", b"1", **fields) for fields in edges],
        *[Message("limits", b"1", properties={name: "1"}) for name in RESERVED_PROPERTIES],
        *[Message(topic, b"1") for topic in (*SYSTEM_TOPICS, *SYSTEM_PREFIXES)],
    ):
        assert by_client([one]) == by_broker(broker, [one])


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
        one = [Message("limits", b"1", **fields)]
        assert by_client(one)[:2] == by_broker(broker, one)[:2] == (422, "message_illegal"), fields


def test_the_numbers_and_names_of_the_client_are_those_of_the_broker() -> None:
    assert client_rules.PLACE.read_text(encoding="utf-8") == client_rules.text(), (
        "run python -m tools.generate.client_rules"
    )


def by_client(given_messages: list[Message], group: str = GROUP) -> tuple[Any, ...]:
    try:
        limits.validate(group, given_messages)
    except BrokerError as error:
        return error.status, error.code, error.detail
    return ()


def by_broker(broker: RunningBroker, given_messages: list[Message], group: str = GROUP) -> tuple[Any, ...]:
    with broker.client() as client:
        return eventually(lambda: answered(client, given_messages, group))[0]


def answered(client: Broker, given_messages: list[Message], group: str) -> tuple[tuple[Any, ...]] | None:
    """What a transaction is answered; None for a refusal of the moment."""
    transaction_id = uuid7()
    try:
        client.do(calls.begin(group, given_messages, transaction_id))
    except SystemBusy:
        return None
    except BrokerError as error:
        return ((error.status, error.code, error.detail),)
    client.call("POST", f"/v1/transactions/{transaction_id}/end", {"producer_group": group, "state": "ROLLBACK"})
    return ((),)
