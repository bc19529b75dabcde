"""What a fuzzed broker holds: at least one of each kind of thing, and for each operation a request that it takes."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import psycopg

from tests.broker import characters
from tests.broker.running import API_KEY, RunningBroker
from tests.broker.wire import Document
from tests.control.operators import Operator

NOWHERE = "http://127.0.0.1:9/checks"
SWITCH_OFF = "UPDATE half_message SET discarded_at = now() WHERE transaction_id = %s"


class Request(NamedTuple):
    """A request of an operation; its path names the things of the stock, but for those that are named here."""

    body: Any = None
    path: Mapping[str, Any] = MappingProxyType({})
    query: Mapping[str, Any] = MappingProxyType({})


class Stock:
    """A broker's things. What a request uses up is made for it."""

    def __init__(self, broker: RunningBroker) -> None:
        self._database_url = broker.database_url
        self.operator = Operator(broker.url, API_KEY)
        self.name = name = characters.name("fuzzed")
        self.operator.put(f"/v1/topics/{name}")
        self.operator.put(f"/v1/consumer-groups/{name}", max_reconsume_times=0)
        self.operator.put(f"/v1/subscriptions/{name}", **self.push())
        self.nacked()
        self.operator.make("/v1/api-keys", name=name, scopes=["manage"])
        self.operator.put(f"/v1/namespaces/{name}")
        self.operator.put(f"/v1/outboxes/{name}", **self.outbox())
        self.operator.put(f"/v1/schedules/{name}", **self.schedule())
        self.known: Document = {
            "topic": name,
            "group": name,
            "name": name,
            "name_or_id": name,
            "namespace": name,
            "queue_id": 0,
            "message_id": self.operator.make("/v1/messages", topic=name, body="order").document["message_id"],
            "transaction_id": self.begun(),
            "endpoint_id": self.endpoint(),
        }

    def half(self) -> Document:
        """A half message."""
        return {"topic": self.name, "body": "order", "producer_group": self.name}

    def push(self) -> Document:
        """A subscription that pushes nothing."""
        return {"group": self.name, "topic": self.name, "url": NOWHERE, "paused": True}

    def outbox(self) -> Document:
        """An outbox that is not drained."""
        return {"url": "postgresql://shop:secret@127.0.0.1:9/shop", "topics": [self.name], "paused": True}

    def schedule(self) -> Document:
        """A schedule that sends nothing by itself."""
        return {"cron": "0 3 * * MON-FRI", "message": {"topic": self.name, "body": "yesterday"}, "paused": True}

    def begun(self) -> str:
        """A transaction without a decision."""
        found: str = self.operator.make("/v1/transactions", **self.half()).document["transaction_id"]
        return found

    def discarded(self) -> str:
        """A transaction that was given up: by hand, for its checks would take an hour."""
        found = self.begun()
        with psycopg.connect(self._database_url) as connection:
            connection.execute(SWITCH_OFF, [found])
        return found

    def handed_out(self) -> Document:
        """A message that was just handed out, as it was received."""
        self.operator.make("/v1/messages", topic=self.name, body="order")
        path = f"/v1/consumer-groups/{self.name}/receive"
        answer = self.operator.make(path, topic=self.name, max_messages=1, wait_seconds=20)
        [found] = answer.document["messages"]
        return dict(found)

    def received(self) -> list[str]:
        """The receipt of a message that was just handed out."""
        return [self.handed_out()["receipt_handle"]]

    def nacked(self) -> str:
        """Has the group give a message up: the id of a dead letter."""
        given_up = self.handed_out()
        self.operator.make(f"/v1/consumer-groups/{self.name}/nack", receipt_handles=[given_up["receipt_handle"]])
        found: str = given_up["message"]["message_id"]
        return found

    def recallable(self) -> str:
        """The handle of a message that waits for an hour."""
        sent = self.operator.make("/v1/messages", topic=self.name, body="later", delay_seconds=3600)
        found: str = sent.document["recall_handle"]
        return found

    def spare(self, kind: str, **fields: Any) -> str:
        """The name of a thing that may be deleted."""
        name = characters.name("spare")
        assert self.operator.put(f"/v1/{kind}/{name}", **fields).status == 201
        return name

    def spare_key(self) -> str:
        """The name of a key that may be revoked."""
        found: str = self.operator.make("/v1/api-keys", **new_key()).document["name"]
        return found

    def endpoint(self) -> int:
        """The id of an endpoint of its own."""
        url = f"{NOWHERE}/{characters.name('spare')}"
        made = self.operator.make(f"/v1/producer-groups/{self.name}/endpoints", url=url).document
        found: int = made["id"]
        return found

    def request(self, label: str) -> Request:
        """A request that the operation takes."""
        made = REQUESTS.get(label)
        default = Request(None if label.startswith(("GET", "DELETE")) else {})
        found = default if made is None else made(self)
        return found._replace(path=self.known | dict(found.path))


def new_key() -> Document:
    """A key that may read metrics."""
    return {"name": characters.name("key"), "scopes": ["metrics"]}


DECISION = {"state": "COMMIT", "reason": "paid"}
# An operation that is missing takes an empty body, and the things of the stock.
REQUESTS: dict[str, Callable[[Stock], Request]] = {
    "POST /v1/messages": lambda stock: Request({"topic": stock.name, "body": "order"}),
    "GET /v1/messages": lambda stock: Request(query={"topic": stock.name}),
    "POST /v1/messages/batch": lambda stock: Request({"topic": stock.name, "messages": [{"body": "order"}]}),
    "POST /v1/messages/recall": lambda stock: Request({"recall_handle": stock.recallable()}),
    "POST /v1/transactions": lambda stock: Request(stock.half()),
    "POST /v1/transactions/{transaction_id}/end": lambda stock: Request(
        {"producer_group": stock.name, "state": "COMMIT"}, {"transaction_id": stock.begun()}
    ),
    "POST /v1/transactions/{transaction_id}/resolve": lambda stock: Request(
        DECISION, {"transaction_id": stock.begun()}
    ),
    "POST /v1/discarded/{transaction_id}/resume": lambda stock: Request({}, {"transaction_id": stock.discarded()}),
    "POST /v1/discarded/{transaction_id}/resolve": lambda stock: Request(
        DECISION, {"transaction_id": stock.discarded()}
    ),
    "POST /v1/bulk": lambda stock: Request({"operations": [{"op": "half", **stock.half()}]}),
    "POST /v1/consumer-groups/{group}/receive": lambda stock: Request({"topic": stock.name}),
    "POST /v1/consumer-groups/{group}/ack": lambda stock: Request({"receipt_handles": stock.received()}),
    "POST /v1/consumer-groups/{group}/nack": lambda stock: Request({"receipt_handles": stock.received()}),
    "POST /v1/consumer-groups/{group}/return": lambda stock: Request({"receipt_handles": stock.received()}),
    "POST /v1/consumer-groups/{group}/extend": lambda stock: Request(
        {"receipt_handles": stock.received(), "invisible_seconds": 60}
    ),
    "PUT /v1/consumer-groups/{group}/offsets": lambda stock: Request({"topic": stock.name, "to": "latest"}),
    "POST /v1/dead-letters/{group}/redrive": lambda stock: Request({"message_ids": [stock.nacked()]}),
    "POST /v1/producer-groups/{group}/endpoints": lambda stock: Request({"url": NOWHERE}),
    "PUT /v1/subscriptions/{name}": lambda stock: Request(stock.push()),
    "PUT /v1/outboxes/{name}": lambda stock: Request(stock.outbox()),
    "PUT /v1/schedules/{name}": lambda stock: Request(stock.schedule()),
    "POST /v1/api-keys": lambda stock: Request(new_key()),
    "DELETE /v1/topics/{topic}": lambda stock: Request(path={"topic": stock.spare("topics")}),
    "DELETE /v1/producer-groups/{group}": lambda stock: Request(path={"group": stock.spare("producer-groups")}),
    "DELETE /v1/consumer-groups/{group}": lambda stock: Request(path={"group": stock.spare("consumer-groups")}),
    "DELETE /v1/subscriptions/{name}": lambda stock: Request(
        path={"name": stock.spare("subscriptions", **stock.push())}
    ),
    "DELETE /v1/producer-groups/{group}/endpoints/{endpoint_id}": lambda stock: Request(
        path={"endpoint_id": stock.endpoint()}
    ),
    "DELETE /v1/outboxes/{name}": lambda stock: Request(path={"name": stock.spare("outboxes", **stock.outbox())}),
    "DELETE /v1/schedules/{name}": lambda stock: Request(path={"name": stock.spare("schedules", **stock.schedule())}),
    "DELETE /v1/namespaces/{namespace}": lambda stock: Request(path={"namespace": stock.spare("namespaces")}),
    "DELETE /v1/api-keys/{name_or_id}": lambda stock: Request(path={"name_or_id": stock.spare_key()}),
}
