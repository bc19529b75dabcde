"""`mqb` sends, receives, lists and moves, as tables or JSON, and its exit code says what happened."""

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import psycopg
import pytest
from mqbroker_client import Admin, Consumer, Producer
from mqbroker_client.contrib.cli import main

from tests.broker.running import API_KEY, RunningBroker
from tests.client.pages import environment
from tests.client.servers import busy, scripted
from tests.control.stock import SWITCH_OFF


class Mqb:
    """The command, as a user of one broker runs it."""

    def __init__(self, url: str, api_key: str | None = API_KEY) -> None:
        keys = {} if api_key is None else {"MQBROKER_API_KEY": api_key}
        self.given = {"MQBROKER_URL": url} | keys
        self.environment = environment() | self.given

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "mqbroker_client.contrib.cli", *words]

    def starts(self, *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """What became of it as a process of its own."""
        return subprocess.run(
            self.command(*words), env=self.environment, capture_output=True, text=True, timeout=300, input=given
        )

    def run(self, *words: str, code: int = 0) -> tuple[str, str]:
        """What it prints, and what it says beside that; without a process, whose imports take ten times as long."""
        with (
            pytest.MonkeyPatch.context() as patch,
            redirect_stdout(io.StringIO()) as out,
            redirect_stderr(io.StringIO()) as err,
        ):
            for name in ("MQBROKER_URL", "MQBROKER_API_KEY"):
                patch.delenv(name, raising=False)
            for name, value in self.given.items():
                patch.setenv(name, value)
            try:
                found: object = main(words)
            except SystemExit as end:
                found = end.code
        assert found == code, err.getvalue()
        return out.getvalue(), err.getvalue()

    def json(self, *words: str) -> list[Any]:
        return [json.loads(line) for line in self.run("--json", *words)[0].splitlines()]


@pytest.fixture
def mqb(broker: RunningBroker) -> Mqb:
    return Mqb(broker.url)


def test_a_message_is_sent_received_and_acked(mqb: Mqb, broker: RunningBroker, orders: str) -> None:
    fields = ["--tags", "paid", "--key", "a", "--key", "b", "--property", "region=eu=1"]
    sent = mqb.starts("send", orders, *fields, given="from a pipe").stdout

    [received] = mqb.json("receive", orders, "--group", orders, "--ack")

    assert received["message_id"] == sent.strip()
    assert (received["body"], received["tags"], received["keys"]) == ("from a pipe", "paid", ["a", "b"])
    assert received["properties"] == {"region": "eu=1"}
    assert mqb.run("receive", orders, "--group", orders) == ("", "There is no message.\n")


@pytest.mark.parametrize(("verb", "state", "visible"), [("commit", "COMMITTED", 1), ("rollback", "ROLLED_BACK", 0)])
def test_a_transaction_is_begun_and_ended(mqb: Mqb, orders: str, verb: str, state: str, visible: int) -> None:
    transaction_id = mqb.run("begin", orders, "order 1", "--group", orders)[0].strip()
    assert mqb.json("receive", orders, "--group", orders) == []

    ended, _ = mqb.run(verb, transaction_id, "--group", orders)

    assert ended == f"{state}\n"
    assert len(mqb.json("receive", orders, "--group", orders)) == visible


def test_tail_shows_the_last_messages_and_follows(mqb: Mqb, broker: RunningBroker, orders: str) -> None:
    producer = Producer(broker.client(), orders)
    for number in range(5):
        producer.send(orders, b"%d" % number, queue_id=0)
    assert [row["body"] for row in mqb.json("tail", orders, "--last", "2")] == ["3", "4"]
    assert len(mqb.json("tail", orders, "--from", "earliest")) == 5

    words = mqb.command("tail", orders, "--last", "1", "--follow", "--json")
    with subprocess.Popen(words, env=mqb.environment, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["body"] == "4"
        producer.send(orders, b"5")
        assert json.loads(following.stdout.readline())["body"] == "5"
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=120)

    assert following.returncode == 130


def test_a_body_cannot_write_to_the_terminal(mqb: Mqb, broker: RunningBroker, orders: str) -> None:
    Producer(broker.client(), orders).send(orders, "a\n\x1b[2Jb")

    assert mqb.run("tail", orders)[0].splitlines()[1].endswith(r"  a\n\x1b[2Jb")


def test_lists_are_tables_or_json(mqb: Mqb, broker: RunningBroker, orders: str) -> None:
    Producer(broker.client(), orders).begin(orders, b"1").commit()
    Consumer(broker.client(), orders).receive(orders)

    assert next(row for row in mqb.json("topics") if row["name"] == orders)["queues"] == 4
    assert {row["kind"] for row in mqb.json("groups") if row["name"] == orders} == {"producer", "consumer"}
    assert sum(row["next_offset"] for row in mqb.json("lag", orders)) == 1
    assert mqb.json("timers")[0]["kind"] == "timers"
    header, *rows = mqb.run("topics")[0].splitlines()
    assert header.split("  ")[0] == "name"
    assert any(row.startswith(orders) and " rw " in row for row in rows)
    assert API_KEY not in mqb.run("keys")[0]
    assert mqb.run("discarded", "--group", orders)[0] == ""


def test_a_discarded_transaction_is_listed_with_its_topic_and_its_time(
    mqb: Mqb, broker: RunningBroker, orders: str
) -> None:
    transaction_id = str(Producer(broker.client(), orders).begin(orders, b"1").transaction_id)
    with psycopg.connect(broker.database_url) as connection:
        connection.execute(SWITCH_OFF, [transaction_id])

    header, row = mqb.run("discarded", "--group", orders)[0].splitlines()

    shown = dict(zip(re.split(r" {2,}", header), re.split(r" {2,}", row), strict=True))
    assert (shown["transaction id"], shown["producer group"], shown["topics"]) == (transaction_id, orders, orders)
    assert shown["discarded at"] > shown["stored at"]


def test_a_reset_is_a_dry_run_until_it_is_meant(mqb: Mqb, broker: RunningBroker, orders: str) -> None:
    consumer = Consumer(broker.client(), orders)
    Producer(broker.client(), orders).send(orders, b"1")
    consumer.ack(consumer.receive(orders))

    _, said = mqb.run("reset", orders, orders, "--to", "earliest")
    assert said == (
        "1 messages would be received again, 0 would be passed over.\n"
        "Nothing was changed: the same with --yes does it.\n"
    )
    assert consumer.receive(orders) == []

    _, said = mqb.run("reset", orders, orders, "--to", "earliest", "--yes")
    assert said == "1 messages are received again, 0 are passed over.\n"
    assert len(consumer.receive(orders)) == 1


def test_dead_letters_are_shown_and_redriven(mqb: Mqb, broker: RunningBroker, orders: str) -> None:
    Admin(broker.client()).create_consumer_group(orders, max_reconsume_times=0)
    consumer = Consumer(broker.client(), orders)
    message_id = str(Producer(broker.client(), orders).send(orders, b"1").message_id)
    consumer.nack(consumer.receive(orders), reason="no money")

    [shown] = mqb.json("redrive", orders)
    assert (shown["message_id"], shown["reason"]) == (message_id, "no money")
    _, said = mqb.run("redrive", orders, message_id)
    assert said == "1 messages would be sent again. Nothing was changed: the same with --yes does it.\n"
    assert consumer.receive(orders) == []

    mqb.run("redrive", orders, message_id, "--yes")
    _, said = mqb.run("redrive", orders, message_id, "--yes", code=1)
    assert said == "mqb: not_redriven: 1 of 1 messages were not sent again\n"
    assert [delivery.body for delivery in consumer.receive(orders, wait_seconds=5)] == [b"1"]


def test_the_exit_code_says_what_happened(mqb: Mqb, broker: RunningBroker, orders: str, tmp_path: Path) -> None:
    refused = mqb.starts("send", "%DLQ%x", "1")
    assert (refused.returncode, refused.stderr[:11]) == (1, "mqb: topic_")
    assert "invalid choice: 'sned'" in mqb.run("sned", code=2)[1]
    assert Mqb(broker.url, None).run("topics", code=2)[1] == (
        "mqb: no API key: set MQBROKER_API_KEY, or give --api-key-file\n"
    )
    (tmp_path / "key").write_text(f"{API_KEY}\n")
    Mqb("http://127.0.0.1:1", None).run("--url", broker.url, "--api-key-file", str(tmp_path / "key"), "topics")
    assert mqb.run("send", orders, "1", "--property", "a", code=2)[1].endswith("'a' is no NAME=VALUE\n")
    assert "such as 2026-01-31T12:00:00Z" in mqb.run("send", orders, "1", "--deliver-at", "soon", code=2)[1]


def test_a_busy_broker_has_an_exit_code_of_its_own(orders: str) -> None:
    with scripted(busy("30")) as server:
        said = Mqb(server.url).run("send", orders, "1", code=3)[1]

    assert said == "mqb: system_busy (503): The queue is full; come again.\n"


def test_a_reader_that_has_gone_ends_it_quietly(mqb: Mqb, broker: RunningBroker, orders: str) -> None:
    for number in range(3):
        Producer(broker.client(), orders).send(orders, b"%d" % number)
    for words in (mqb.command("tail", orders, "--from", "earliest"), mqb.command("--help")):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            words, env=mqb.environment, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=300
        )
        os.close(writing)

        # As of a program that SIGPIPE has ended.
        assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("words", "closed", "code", "said"),
    [
        ("topics --json", ">&-", 0, ""),
        ("send {orders}", "<&-", 2, "mqb: standard input is closed: give a body, or --file\n"),
        ("topics --json", ">/dev/full", 2, "mqb: [Errno 28] No space left on device\n"),
        ("lag {orders}", "2>&-", 1, ""),
    ],
)
def test_a_stream_that_takes_nothing_makes_no_traceback(
    mqb: Mqb, orders: str, words: str, closed: str, code: int, said: str
) -> None:
    command = shlex.join(mqb.command(*words.format(orders=orders).split()))
    done = subprocess.run(
        ["sh", "-c", f"{command} {closed}"], env=mqb.environment, capture_output=True, text=True, timeout=300
    )

    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


def test_a_pending_transaction_is_listed_shown_and_decided_by_hand(mqb: Mqb, orders: str) -> None:
    transaction_id = mqb.run("begin", orders, "order 1", "--group", orders)[0].strip()
    [listed] = mqb.json("pending", "--group", orders)
    assert (listed["transaction_id"], listed["topics"]) == (transaction_id, [orders])
    assert mqb.run("resolve", transaction_id, "commit", code=2)[0] == ""

    assert mqb.run("resolve", transaction_id, "commit", "--reason", "paid by hand") == ("COMMITTED\n", "")

    assert mqb.run("pending", "--group", orders) == ("", "No transaction is pending.\n")
    shown, _ = mqb.run("transaction", transaction_id)
    assert re.search(r"prepared +-\n", shown)
    assert re.search(r"end +state=COMMIT by=operator remark=paid by hand\n", shown)
    [history] = mqb.json("transaction", transaction_id)
    traced, _ = mqb.run("trace", history["messages"][0]["message_id"])
    assert re.search(rf"visible +topic={orders} queue_id=\d queue_offset=0\n", traced)


def test_a_discarded_transaction_is_checked_again_with_a_reason(mqb: Mqb, orders: str, broker: RunningBroker) -> None:
    transaction_id = mqb.run("begin", orders, "order 1", "--group", orders)[0].strip()
    assert "transaction_not_found" in mqb.run("resume", transaction_id, code=1)[1]
    with psycopg.connect(broker.database_url) as connection:
        connection.execute(SWITCH_OFF, [transaction_id])

    resumed = mqb.run("resume", transaction_id, "--reason", "they are back")

    assert resumed == (f"{transaction_id} is checked again\n", "")
    [shown] = mqb.json("transaction", transaction_id)
    assert (shown["state"], shown["history"][-1]["event"], shown["history"][-1]["remark"]) == (
        *("PREPARED", "resume"),
        "they are back",
    )


def test_deliveries_and_checks_of_a_group_are_paused_and_go_on(mqb: Mqb, orders: str) -> None:
    mqb.run("begin", orders, "order 1", "--group", orders)
    mqb.run("send", orders, "order 2")
    mqb.run("receive", orders, "--group", orders, "--ack")

    assert mqb.run("pause", orders) == (f"deliveries of {orders} are paused\n", "")

    mqb.run("send", orders, "order 3")
    assert mqb.json("receive", orders, "--group", orders) == []
    assert mqb.run("resume-group", orders)[0] == f"deliveries of {orders} are on\n"
    assert [row["body"] for row in mqb.json("receive", orders, "--group", orders)] == ["order 3"]
    assert mqb.run("pause", orders, "--checks")[0] == f"checks of {orders} are paused\n"
    assert mqb.run("resume-group", orders, "--checks")[0] == f"checks of {orders} are on\n"
    assert "group_not_exist" in mqb.run("pause", f"{orders}-none", code=1)[1]


def test_rates_are_shown_once_or_line_by_line(mqb: Mqb, orders: str) -> None:
    mqb.run("send", orders, "order 1")

    shown, _ = mqb.run("stats")
    lines, _ = mqb.run("watch", "--times", "2", "--every", "0.1")

    assert int(re.search(r"messages +(\d+)", shown)[1]) > 0  # type: ignore[index]  # found, or the test fails
    assert len(lines.splitlines()) == 2
    assert re.match(r"\d\d:\d\d:\d\d  messages [\d,.]+/s  entries ", lines)


def test_a_broker_that_is_away_is_one_sentence() -> None:
    done = Mqb("http://127.0.0.1:1").starts("topics")

    assert done.returncode == 3
    assert re.fullmatch(
        r"mqb: unreachable: no answer from http://127.0.0.1:1: [^\n]*`./mq up` starts one.\n", done.stderr
    )
