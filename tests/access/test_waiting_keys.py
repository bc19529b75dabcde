"""A key that is changed or revoked while a request of its holder waits: the request is handed nothing from then on."""

import json
import time
from dataclasses import dataclass
from functools import partial

import pytest

from store.notices.caches import LONGEST_CACHED_SECONDS
from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document, Request
from tests.control.operators import Operator

# How a holder loses what a waiting request needs, and the answer to the request.
LOST = {"revoked": (401, "unauthenticated"), "narrowed": (403, "no_permission")}


@dataclass(frozen=True)
class Holder:
    """A program with a key of its own for one topic and the groups of one name."""

    name: str
    topic: str
    web: Operator

    @classmethod
    def of(cls, operator: Operator, url: str, topic: str) -> "Holder":
        name = characters.name("holder")
        scopes = [f"produce:{topic}", f"consume:{name}", f"read:{topic}"]
        key = operator.make("/v1/api-keys", name=name, scopes=scopes).document["key"]
        return cls(name, topic, Operator(url, key))

    def waits(self, method: str, path: str, **fields: object) -> Request:
        """A request that waits: the same one, which does not wait and came after it, finds nothing."""
        body = None if method == "GET" else json.dumps({**fields, "wait_seconds": 20}).encode()
        waiting = self.web.ask(method, f"{path}&wait_seconds=20" if body is None else path, body)
        answer = self.web.get(path) if body is None else self.web.make(path, **fields)
        assert answer.status == 200, answer
        assert next(iter(answer.document.values())) == [], answer
        return waiting

    def loses(self, operator: Operator, how: str) -> None:
        path = f"/v1/api-keys/{self.name}"
        changed = operator.delete(path) if how == "revoked" else operator.put(path, scopes=["read:another"])
        assert changed.status in (200, 204), changed


@pytest.fixture
def sends(operator: Operator, orders: str) -> str:
    """The topic with one queue; what is sent there lies in that."""
    assert operator.put(f"/v1/topics/{orders}", queues=1).status == 201
    return orders


def is_confirmed(operator: Operator, topic: str) -> bool:
    """Whether the processes confirm a change, which is answered before anything cached runs out then."""
    began = time.monotonic()
    assert operator.put(f"/v1/topics/{topic}", queues=1).status == 200
    return time.monotonic() - began < LONGEST_CACHED_SECONDS / 2


def refused(request: Request) -> tuple[int, str]:
    """How a request is refused."""
    answer = request.answer()
    return answer.status, str(answer.problem["code"])


@pytest.mark.parametrize("web", [0, 1], ids=["by the process that stores", "by another one"])
@pytest.mark.parametrize("how", LOST)
def test_a_waiting_receive_is_handed_nothing_once_its_key_is_lost(
    broker: RunningBroker, operator: Operator, sends: str, how: str, web: int
) -> None:
    eventually(partial(is_confirmed, operator, sends))
    holder = Holder.of(operator, broker.urls[web], sends)
    receive = f"/v1/consumer-groups/{holder.name}/receive"
    operator.make("/v1/messages", topic=sends, body="order 0")
    assert len(operator.make(receive, topic=sends).document["messages"]) == 1
    waiting = holder.waits("POST", receive, topic=sends)

    holder.loses(operator, how)
    operator.make("/v1/messages", topic=sends, body="order 1")

    assert refused(waiting) == LOST[how]
    found: Document = operator.make(receive, topic=sends).document
    assert [(entry["message"]["body"], entry["delivery_attempt"]) for entry in found["messages"]] == [("order 1", 1)]


@pytest.mark.parametrize("how", LOST)
def test_a_waiting_pull_reads_nothing_once_its_key_is_lost(
    broker: RunningBroker, operator: Operator, sends: str, how: str
) -> None:
    holder = Holder.of(operator, broker.urls[1], sends)
    waiting = holder.waits("GET", f"/v1/topics/{sends}/queues/0/messages?offset=0")

    holder.loses(operator, how)
    operator.make("/v1/messages", topic=sends, body="order 1")

    assert refused(waiting) == LOST[how]


@pytest.mark.parametrize("how", LOST)
def test_a_waiting_poll_is_handed_no_check_once_its_key_is_lost(
    broker: RunningBroker, operator: Operator, sends: str, how: str
) -> None:
    holder = Holder.of(operator, broker.urls[1], sends)
    half = {"topic": sends, "body": "order 1", "producer_group": holder.name, "check_immunity_seconds": 3600}
    transaction = f"/v1/transactions/{operator.make('/v1/transactions', **half).document['transaction_id']}"
    waiting = holder.waits("POST", f"/v1/producer-groups/{holder.name}/checks/receive")

    holder.loses(operator, how)
    assert operator.make(f"{transaction}/check").status == 202

    assert refused(waiting) == LOST[how]
    assert operator.reads(transaction)["check_times"] == 0
