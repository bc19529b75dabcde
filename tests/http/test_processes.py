"""A web process starts and ends: one of several that dies is replaced, and none leaves a caller unanswered."""

import http.client
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import psutil
import pytest
from mqbroker_client import Consumer, Producer

from mqbroker.embedded.processes import identity
from tests.broker import characters
from tests.broker.polling import at_this_load, eventually
from tests.broker.running import API_KEY, QUICK, RunningBroker
from tests.broker.wire import problem

PROCESSES = 2
# A module that each web process imports.
BROKEN = "raise ImportError('this release is broken')"


@pytest.fixture
def alone(broker: RunningBroker, tmp_path: Path) -> Iterator[RunningBroker]:
    """One more web process."""
    redis_url = broker.environment["REDIS_URL"]
    with RunningBroker(tmp_path, broker.database_url, redis_url, tasks=False) as alone:
        yield alone


@pytest.fixture
def twofold(broker: RunningBroker, tmp_path: Path) -> Iterator[RunningBroker]:
    """Two web processes on one port."""
    redis_url = broker.environment["REDIS_URL"]
    with RunningBroker(tmp_path, broker.database_url, redis_url, QUICK, processes=PROCESSES, tasks=False) as twofold:
        yield twofold


@pytest.fixture
def backed(broker: RunningBroker, tmp_path: Path) -> Iterator[RunningBroker]:
    """One web process with a standby, which looks for modules in a folder of the test first."""
    redis_url = broker.environment["REDIS_URL"]
    backed = RunningBroker(tmp_path, broker.database_url, redis_url, QUICK, processes="standby", tasks=False)
    backed.environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), backed.environment["PYTHONPATH"]])
    backed.webs[0].environment = backed.environment
    with backed:
        yield backed


def members(broker: RunningBroker) -> set[int]:
    """The processes behind the port, without the one that started them."""
    return set(identity.session_members(broker.webs[0].pid)) - {broker.webs[0].pid}


def test_a_process_that_ends_answers_its_blocked_receives_and_pulls(alone: RunningBroker, orders: str) -> None:
    consumer = characters.name("coupons")
    producer = Producer(alone.client(), characters.name("order-service"))
    producer.send(orders, b"order 1", queue_id=0)
    Consumer(alone.client(), consumer).receive(orders)
    path = f"/v1/consumer-groups/{consumer}/receive"
    body = f'{{"topic": "{orders}", "wait_seconds": 20}}'.encode()
    blocked = [alone.wire().ask("POST", path, body) for _ in range(3)]
    pull = f"/v1/topics/{orders}/queues/0/messages?offset=1&wait_seconds=20"
    blocked += [alone.wire().ask("GET", pull) for _ in range(3)]
    eventually(lambda: alone.wire().get("/healthz").status == 200)

    ends = threading.Thread(target=alone.webs[0].stop)
    ends.start()
    answers = [request.answer() for request in blocked]
    ends.join()

    assert [(answer.status, answer.document["messages"]) for answer in answers] == [(200, [])] * 6


def test_a_process_that_ends_answers_a_request_whose_body_does_not_come(alone: RunningBroker, orders: str) -> None:
    """It was closed without an answer: its caller could not know whether to send it again."""
    place = urlsplit(alone.url)
    head = (
        f"POST /v1/messages HTTP/1.1\r\nHost: broker\r\nAuthorization: Bearer {API_KEY}\r\nContent-Length: 99\r\n\r\n"
    )
    with socket.create_connection((place.hostname, place.port), timeout=120) as caller:
        caller.sendall(head.encode() + b'{"topic": ')
        eventually(lambda: alone.wire().get("/healthz").status == 200)
        ends = threading.Thread(target=alone.webs[0].stop)
        ends.start()
        answer = http.client.HTTPResponse(caller)
        answer.begin()
        found = answer.status, json.loads(answer.read())
        ends.join()

    ending = (
        "This process of the broker is stopping and had not received the whole body: nothing was stored, "
        "send the request again."
    )
    assert found == (503, problem(503, "system_busy", ending))


@pytest.mark.chaos
def test_a_process_that_dies_is_replaced_and_the_port_stays_open(twofold: RunningBroker, orders: str) -> None:
    before = members(twofold)
    assert len(before) == PROCESSES

    for pid in before:
        os.kill(pid, signal.SIGKILL)

    eventually(lambda: len(members(twofold)) == PROCESSES and not members(twofold) & before)
    eventually(partial(sends, twofold, orders))


def sends(broker: RunningBroker, topic: str) -> bool:
    try:
        return broker.wire().post("/v1/messages", {"topic": topic, "body": "order"}).status == 201
    except OSError:
        return False


@pytest.mark.chaos
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["asked to", "killed"])
def test_all_processes_of_a_port_end_together(twofold: RunningBroker, number: signal.Signals) -> None:
    ours = members(twofold)

    twofold.webs[0].send(number)

    eventually(lambda: not any(is_alive(pid) for pid in ours), at_this_load(10))


def is_alive(pid: int) -> bool:
    """Whether it runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.chaos
def test_a_process_that_stands_by_has_one_thread_and_no_connection(backed: RunningBroker, orders: str) -> None:
    """A fork would have a lock that another thread held, and speak on a connection that its parent has."""
    assert sends(backed, orders)

    standby = psutil.Process(backed.webs[0].pid)

    assert standby.num_threads() == 1
    assert [found.status for found in standby.net_connections("all") if found.status] == [psutil.CONN_LISTEN]
    assert len(standby.children()) == 1


@pytest.mark.chaos
def test_a_restart_by_sighup_refuses_no_caller(backed: RunningBroker, orders: str) -> None:
    before = members(backed)

    with Sender(backed, orders) as sender:
        os.kill(backed.webs[0].pid, signal.SIGHUP)
        eventually(lambda: len(members(backed)) == 1 and not members(backed) & before)

    assert sender.statuses == {201}
    assert backed.log() == ""


@pytest.mark.chaos
def test_after_a_restart_with_code_that_fails_the_earlier_process_serves(backed: RunningBroker, orders: str) -> None:
    before = members(backed)
    (backed.folder / "uvloop.py").write_text(BROKEN)

    with Sender(backed, orders) as sender:
        os.kill(backed.webs[0].pid, signal.SIGHUP)
        eventually(lambda: "this release is broken" in backed.log())
        (backed.folder / "uvloop.py").unlink()

        assert members(backed) == before
        os.kill(backed.webs[0].pid, signal.SIGHUP)
        eventually(lambda: len(members(backed)) == 1 and not members(backed) & before)

    assert sender.statuses == {201}


class Sender:
    """A caller that sends all the time, a connection for each message; the statuses of its answers are kept."""

    def __init__(self, broker: RunningBroker, topic: str) -> None:
        self._broker = broker
        self._topic = topic
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._send_on)
        self.statuses: set[int] = set()

    def _send_on(self) -> None:
        while not self._is_over.is_set():
            try:
                self.statuses.add(
                    self._broker.wire().post("/v1/messages", {"topic": self._topic, "body": "order"}).status
                )
            except OSError:
                self.statuses.add(0)

    def __enter__(self) -> Self:
        self._thread.start()
        eventually(lambda: bool(self.statuses))
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
