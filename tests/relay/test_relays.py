"""Relays publish each message to another system, and ack it once that has confirmed it."""

import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from mqbroker_client import Message
from mqbroker_client.contrib.relay import configuration
from mqbroker_client.contrib.relay.__main__ import main

from mqbroker.embedded.commands import ROOT
from tests.broker.polling import eventually
from tests.broker.ports import free_port
from tests.broker.receiving import let_deliveries_expire
from tests.broker.running import API_KEY, RunningBroker
from tests.relay.conftest import RABBIT, NatsTarget, RabbitTarget, Source, Target, explained, relay

# MQ_RELAYED=100000 in the environment: the figure of docs/relay.md.
RELAYED = int(os.environ.get("MQ_RELAYED", "600"))
KEYS = 20
CONCURRENCY = 8


def test_a_message_is_relayed_with_its_fields(broker: RunningBroker, target: Target, tmp_path: Path) -> None:
    source = Source(broker)
    message = Message(
        source.topic, b"\x00\xff", tags="new", keys=["a", "b"], sharding_key="seven", properties={"colour": "red"}
    )
    source.producer.send_message(message)
    event = '[cloudevents]\nsource = "/shop"\ntype = "shop.order"\n'
    program = relay(broker, tmp_path, f"{source.lines}\n[target]\n{target.lines}\n{event}")
    program.start()
    try:
        [found] = eventually(target.received, within_seconds=60)
    finally:
        program.stop()

    assert found.body == b"\x00\xff"
    wanted = {"tags": "new", "keys": "a b", "sharding_key": "seven", "colour": "red", "topic": source.topic}
    assert wanted.items() <= found.headers.items()
    assert found.headers["message_id"] == str(message.message_id)
    [prefix] = {name.removesuffix("specversion") for name in found.headers if name.endswith("specversion")}
    event_of = {name: found.headers[prefix + name] for name in ("id", "source", "type", "subject")}
    assert event_of == {"id": str(message.message_id), "source": "/shop", "type": "shop.order", "subject": "seven"}
    assert found.key == "seven"


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_none_is_missing_and_each_key_is_in_order_while_relay_and_target_are_killed(
    broker: RunningBroker, target: Target, tmp_path: Path
) -> None:
    source = Source(broker, ordered=True)
    program = relay(broker, tmp_path, f"{source.lines}concurrency = {CONCURRENCY}\n\n[target]\n{target.lines}")
    program.start()
    kills = 0
    try:
        for first in range(0, RELAYED, 100):
            messages = [
                Message(source.topic, str(number).encode(), sharding_key=str(number % KEYS))
                for number in range(first, first + 100)
            ]
            for message in messages:
                source.producer.send_message(message)
            if first and first % (RELAYED // 3) < 100 and kills < 2:
                program.kill()
                target.kill()
                let_deliveries_expire(broker, source.topic, source.group)
                program.start()
                kills += 1
        everything = set(range(RELAYED))
        with explained(source, program, target):
            # A look at a target reads all that is there.
            eventually(source.left, within_seconds=300)
            eventually(lambda: {int(one.body) for one in target.received()} == everything, within_seconds=300)
    finally:
        program.stop()

    found = Counter(int(one.body) for one in target.received())
    in_order: defaultdict[str | None, list[int]] = defaultdict(list)
    for one in target.received():
        # A repetition comes behind what it repeats, and perhaps behind what followed that.
        if int(one.body) not in in_order[one.key]:
            in_order[one.key].append(int(one.body))
    assert kills == 2
    assert found.total() - RELAYED <= 2 * CONCURRENCY * 32
    assert all(numbers == sorted(numbers) for numbers in in_order.values())


def test_while_its_target_is_away_messages_wait_and_nothing_is_a_retry(
    broker: RunningBroker, target: Target, tmp_path: Path
) -> None:
    source = Source(broker)
    source.producer.send_message(Message(source.topic, b"waits"))
    nowhere = re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{free_port()}", target.lines)
    program = relay(broker, tmp_path, f"{source.lines}\n[target]\n{nowhere}")
    program.start()
    eventually(lambda: "takes no message" in program.log.read_text(), within_seconds=90)
    program.stop()
    assert target.received() == []

    program = relay(broker, tmp_path, f"{source.lines}\n[target]\n{target.lines}")
    program.start()
    try:
        [found] = eventually(target.received, within_seconds=90)
    finally:
        program.stop()
    assert found.body == b"waits"


@pytest.mark.parametrize("system", [RABBIT], indirect=True)
def test_what_rabbitmq_has_no_queue_for_is_a_dead_letter_in_its_words_and_holds_nothing_up(
    broker: RunningBroker, target: RabbitTarget, tmp_path: Path
) -> None:
    source = Source(broker)
    for tags in ("nowhere", target.queue):
        source.producer.send_message(Message(source.topic, tags.encode(), tags=tags, max_reconsume_times=0))
    lines = target.lines.replace(f'"{target.queue}"', '"{tags}"')
    program = relay(broker, tmp_path, f"{source.lines}\n[target]\n{lines}")
    program.start()
    try:
        [found] = eventually(target.received, within_seconds=60)
        path = f"/v1/dead-letters/{source.group}"
        [letter] = eventually(lambda: source.wire.get(path).document.get("results"), within_seconds=60)
    finally:
        program.stop()

    assert found.body == target.queue.encode()
    assert "NO_ROUTE" in letter["reason"]


@pytest.mark.parametrize("system", ["nats"], indirect=True)
def test_what_has_no_subject_of_nats_is_a_dead_letter_and_holds_nothing_up(
    broker: RunningBroker, target: NatsTarget, tmp_path: Path
) -> None:
    source = Source(broker)
    source.producer.send_message(Message(source.topic, b"nowhere", max_reconsume_times=0))
    source.producer.send_message(Message(source.topic, b"there", sharding_key=f"{target.stream}.there"))
    lines = target.lines.replace(f'"{target.stream}.relayed"', '"{sharding_key}"')
    program = relay(broker, tmp_path, f"{source.lines}concurrency = 1\n\n[target]\n{lines}")
    program.start()
    try:
        [found] = eventually(target.received, within_seconds=60)
        path = f"/v1/dead-letters/{source.group}"
        [letter] = eventually(lambda: source.wire.get(path).document.get("results"), within_seconds=60)
    finally:
        program.stop()

    assert found.body == b"there"
    assert "NATS refused it" in letter["reason"]


WRONG = {
    "a target without a kind": ('topic = "t"\ngroup = "g"\n[target]\nurl = "u"\n', "target has no kind"),
    "no group": ('topic = "t"\n[target]\nkind = "nats"\n', "the file lacks group"),
    "an unknown field": ('topic = "t"\ngroup = "g"\nspeed = 3\n[target]\nkind = "nats"\n', "speed, which is unknown"),
    "no subject": ('topic = "t"\ngroup = "g"\n[target]\nkind = "nats"\nurl = "u"\n', "target lacks subject"),
    "another type": ('topic = "t"\ngroup = "g"\nordered = 1\n[target]\nkind = "nats"\n', "ordered is no bool"),
    "a pattern": (
        'topic = "t"\ngroup = "g"\n[target]\nkind = "nats"\nurl = "u"\nsubject = "{colour}"\n',
        "names {colour}: a pattern may name",
    ),
    "no TOML": ("topic = ", "is no TOML"),
    "an unknown field of the target": (
        'topic = "t"\ngroup = "g"\n[target]\nkind = "nats"\nurl = "u"\nsubject = "s"\nserver = "v"\n',
        "target has server, which is unknown",
    ),
    "an unknown field of the event": (
        'topic = "t"\ngroup = "g"\n[target]\nkind = "nats"\n[cloudevents]\nsource = "s"\ntype = "t"\nid = "i"\n',
        "cloudevents has id, which is unknown",
    ),
    "an unknown table": ('topic = "t"\ngroup = "g"\n[target]\nkind = "nats"\n[retry]\n', "retry, which is unknown"),
    "an event that is none": ('topic = "t"\ngroup = "g"\ncloudevents = 3\n[target]\nkind = "nats"\n', "is no table: 3"),
    "an unset variable": (
        'topic = "t"\ngroup = "g"\n[target]\nkind = "nats"\nurl = "nats://$MQ_NOT_SET@h"\nsubject = "s"\n',
        "target.url names $MQ_NOT_SET, which is not set",
    ),
    "an unset variable in braces": (
        'topic = "t"\ngroup = "g"\n[target]\nkind = "nats"\nurl = "u"\nsubject = "${MQ_NOT_SET}.a"\n',
        "target.subject names $MQ_NOT_SET, which is not set",
    ),
    "an unset variable of an option": (
        'topic = "t"\ngroup = "g"\n[target]\nkind = "kafka"\nservers = "s"\ntopic = "k"\n'
        'options = { "sasl.password" = "$MQ_NOT_SET" }\n',
        "target.options.sasl.password names $MQ_NOT_SET, which is not set",
    ),
    "an unknown option": (
        'topic = "t"\ngroup = "g"\n[target]\nkind = "kafka"\nservers = "s"\ntopic = "k"\noptions = { speed = 1 }\n',
        'No such configuration property: "speed"',
    ),
    "an unknown transport": (
        'topic = "t"\ngroup = "g"\n[target]\nkind = "amqp"\nurl = "pigeon://h"\nrouting_key = "k"\n',
        "No such transport: pigeon",
    ),
    "an empty field": (
        'topic = "t"\ngroup = "g"\n[target]\nkind = "amqp"\nurl = ""\nrouting_key = "k"\n',
        "target.url is empty",
    ),
    "a number for a text": (
        'topic = "t"\ngroup = "g"\n[target]\nkind = "amqp"\nurl = 3\nrouting_key = "k"\n',
        "target.url is no text: 3",
    ),
}


@pytest.mark.parametrize(("lines", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lines: str, said: str
) -> None:
    monkeypatch.setenv("MQBROKER_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("MQBROKER_API_KEY", "mq_none")
    file = tmp_path / "relay.toml"
    file.write_text(lines)

    assert main([str(file)]) == 1

    assert said in capsys.readouterr().err


def test_a_text_of_the_target_may_name_variables_and_have_dollar_signs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA", "127.0.0.1:1")
    monkeypatch.setenv("CLIENT", "$of-$the-shop")
    options = '{ "client.id" = "${CLIENT}$$", "linger.ms" = 5 }'
    lines = f'kind = "kafka"\nservers = "$KAFKA"\ntopic = "$$shop.{{tags}}"\noptions = {options}\n'
    (tmp_path / "relay.toml").write_text(f'topic = "t"\ngroup = "g"\n[target]\n{lines}')

    # librdkafka refuses what it does not know.
    configuration.read(tmp_path / "relay.toml").make_target().close()


@pytest.mark.parametrize("system", ["kafka"], indirect=True)
def test_a_checkout_has_a_command_that_relays(broker: RunningBroker, target: Target, tmp_path: Path) -> None:
    source = Source(broker)
    source.producer.send_message(Message(source.topic, b"by mq"))
    file = tmp_path / "relay.toml"
    file.write_text(f"{source.lines}\n[target]\n{target.lines}")
    words = [sys.executable, "-m", "mqbroker.embedded.cli", "relay", str(file)]

    alone = subprocess.run([*words, "--data-dir", str(tmp_path / "none")], capture_output=True, text=True, cwd=ROOT)
    with subprocess.Popen([*words, "--broker", broker.url, "--api-key", API_KEY], cwd=ROOT) as program:
        [found] = eventually(target.received, within_seconds=60)
        program.terminate()

    assert (alone.returncode, alone.stdout) == (1, "")
    assert "./mq up starts one" in alone.stderr
    assert found.body == b"by mq"
    assert program.returncode == 0
