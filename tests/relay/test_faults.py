"""A message's own fault: it ends as a dead letter in the target's words, and what is behind it goes on."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from mqbroker_client import Message

from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.relay.conftest import RABBIT, NatsTarget, RabbitTarget, Source, Target, relay

CONCURRENCY = 8
LARGE = {"body": bytes(2 * 1024 * 1024)}
LONG = "x" * 300

#: What is wrong with a message at a target of this place, and words of the reason that its dead letter has.
Faults = list[tuple[Mapping[str, Any], str]]


def of_rabbit(_: str) -> Faults:
    return [
        ({"tags": "nowhere"}, "NO_ROUTE"),
        ({"tags": None}, "NO_ROUTE"),
        ({"tags": "*"}, "NO_ROUTE"),
        ({"tags": LONG}, "300 bytes, its limit is 255"),
        ({"tags": "amq.rabbitmq.reply-to.g1"}, "the target keeps for itself"),
        ({"properties": {LONG: "x"}}, "300 bytes, its limit is 255"),
        ({"properties": {"ü" * 128: "x"}}, "256 bytes, its limit is 255"),
        (LARGE, "RabbitMQ refused it: PreconditionFailed"),
    ]


def of_nats(subject: str) -> Faults:
    stream, _, _ = subject.partition(".")
    names = ("a b", "a:b", "naïve", "(a)", "Nats Rollup", "Ｎats-Rollup", "Nats\u200b-Rollup", "ce:type")
    subjects = ("a b", "*", "a.>", "a..b", "", "a.", "a\u2003b")
    return [
        *(({"properties": {name: "x"}}, "invalid header") for name in names),
        ({"properties": {" a": "x"}}, "has blanks around"),
        *(({"tags": f"{stream}.{end}"}, "is no subject to publish to") for end in subjects),
        ({"tags": None}, "is no subject to publish to"),
        ({"tags": f"{stream}.{'x' * 5_000}"}, "bytes too long"),
        (
            {"tags": "elsewhere.new"},
            "no stream has the subject 'elsewhere.new'; "
            "`nats stream add NAME --subjects 'elsewhere.new' --defaults` makes one",
        ),
        ({"tags": f"$JS.API.STREAM.PURGE.{stream}"}, "the target keeps for itself"),
        ({"tags": "_INBOX.a"}, "the target keeps for itself"),
        (LARGE, "maximum payload"),
        # Its headers alone are too much.
        ({"body": bytes(1024 * 1024)}, "maximum payload"),
    ]


def of_kafka(_: str) -> Faults:
    names = ("a b", "a/b", "naïve", ".", "..", "x" * 250, "*", None)
    return [
        *(({"tags": name}, "Kafka refuses the topic") for name in names),
        ({"tags": "__consumer_offsets"}, "the target keeps for itself"),
        (LARGE, "MSG_SIZE_TOO_LARGE"),
    ]


FAULTS: Mapping[str, Callable[[str], Faults]] = {"amqp": of_rabbit, "nats": of_nats, "kafka": of_kafka}


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.long)])
def test_a_tenth_of_bad_messages_are_dead_letters_with_reasons_and_the_good_ones_arrive_once(
    broker: RunningBroker, target: Target, tmp_path: Path, count: int
) -> None:
    source = Source(broker)
    # The tags name the place, good or bad.
    lines, faults = target.lines.replace(f'"{target.place}"', '"{tags}"'), FAULTS[target.kind](target.place)
    # Each of them once, then the small ones again.
    small = [fault for fault in faults if "body" not in fault[0]]
    wrong = [*faults, *islice(cycle(small), max(count // 10 - len(faults), 0))]
    good = count - count // 10
    # The bad ones come first: as many as there are threads would stop the relay for ever.
    for number, (fault, _) in enumerate(wrong):
        fields = {"tags": target.place, "body": b"x", **fault, "keys": f"bad-{number}", "max_reconsume_times": 0}
        source.producer.send_message(Message(source.topic, **fields))
    for first in range(0, good, 90):
        numbers = range(first, min(first + 90, good))
        messages = [Message(source.topic, str(number).encode(), tags=target.place) for number in numbers]
        source.producer.send_batch(source.topic, messages)
    program = relay(broker, tmp_path, f"{source.lines}concurrency = {CONCURRENCY}\n\n[target]\n{lines}")
    program.start()
    try:
        eventually(lambda: source.lag() == 0, within_seconds=60 + count / 10)
        eventually(lambda: len(target.received()) >= good, within_seconds=60)
        eventually(lambda: len(source.letters()) >= len(wrong), within_seconds=60)
    finally:
        program.stop()

    assert Counter(one.body.decode() for one in target.received()) == Counter(str(number) for number in range(good))
    reasons = {letter["message"]["keys"][0]: letter["reason"] for letter in source.letters()}
    assert len(reasons) == len(wrong)
    for number, (fault, words) in enumerate(wrong):
        assert words in reasons[f"bad-{number}"], fault


@pytest.mark.parametrize("system", [RABBIT, "kafka"], indirect=True)
def test_names_that_only_nats_has_no_header_for_arrive(broker: RunningBroker, target: Target, tmp_path: Path) -> None:
    properties = {"a b": "1", "a:b": "2", "naïve": "3"}
    source = Source(broker)
    source.producer.send_message(Message(source.topic, b"odd", properties=properties))
    program = relay(broker, tmp_path, f"{source.lines}\n[target]\n{target.lines}")
    program.start()
    try:
        [found] = eventually(target.received, within_seconds=60)
    finally:
        program.stop()

    assert properties.items() <= found.headers.items()


@pytest.mark.parametrize("system", [RABBIT, "nats"], indirect=True)
def test_a_full_target_is_waited_for_and_nothing_is_a_retry(
    broker: RunningBroker, target: RabbitTarget | NatsTarget, tmp_path: Path
) -> None:
    source = Source(broker)
    source.producer.send_message(Message(source.topic, b"waits", max_reconsume_times=0))
    target.fill()
    program = relay(broker, tmp_path, f"{source.lines}\n[target]\n{target.lines}")
    program.start()
    try:
        eventually(lambda: "takes no message" in program.log.read_text(), within_seconds=60)
        target.empty()
        [found] = eventually(target.received, within_seconds=60)
    finally:
        program.stop()

    assert found.body == b"waits"
    assert source.letters() == []


def has(target: Target, count: int) -> bool:
    """Whether so many messages are at the target."""
    return len(target.received()) >= count


# RabbitMQ forgets a queue that was made seconds before a kill, and then refuses each message of it.
@pytest.mark.chaos
@pytest.mark.parametrize("system", ["nats"], indirect=True)
def test_a_target_that_is_killed_makes_no_message_bad(broker: RunningBroker, target: Target, tmp_path: Path) -> None:
    source = Source(broker)
    program = relay(broker, tmp_path, f"{source.lines}concurrency = {CONCURRENCY}\n\n[target]\n{target.lines}")
    program.start()
    try:
        for part in range(3):
            messages = [
                Message(source.topic, f"{part}-{number}".encode(), max_reconsume_times=0) for number in range(300)
            ]
            source.producer.send_batch(source.topic, messages)
            # What was begun is under way when it dies.
            eventually(partial(has, target, 300 * part + 1), within_seconds=60)
            target.kill()
        eventually(lambda: len({one.body for one in target.received()}) == 900, within_seconds=120)
    finally:
        program.stop()

    assert source.letters() == []
