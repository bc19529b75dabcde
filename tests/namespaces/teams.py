"""A team: a namespace, a key that is bound to it, and what its programs do."""

from dataclasses import dataclass
from typing import Self

from tests.broker import characters
from tests.broker.running import RunningBroker
from tests.broker.wire import Document
from tests.control.operators import Operator

SCOPES = ("produce:*", "consume:*", "read:*", "manage")
# Every team calls its things so.
TOPIC, PRODUCERS, CONSUMERS = "orders", "shop", "coupons"


@dataclass(frozen=True)
class Team:
    """What it sends, and how it calls the broker; `secret` is in each of its bodies, keys and properties."""

    namespace: str
    calls: Operator
    secret: str

    @classmethod
    def of(cls, broker: RunningBroker, operator: Operator, name: str, *scopes: str, **limits: int) -> Self:
        namespace = characters.name(name)
        assert operator.put(f"/v1/namespaces/{namespace}", **limits).status == 201
        return cls.within(broker, operator, namespace, *scopes)

    @classmethod
    def within(cls, broker: RunningBroker, operator: Operator, namespace: str, *scopes: str) -> Self:
        """Another key of a namespace."""
        fields = {"name": characters.name("key"), "scopes": list(scopes or SCOPES), "namespace": namespace}
        made = operator.make("/v1/api-keys", **fields)
        assert made.status == 201, made
        return cls(namespace, Operator(broker.url, made.document["key"]), f"secret-of-{namespace}")

    @property
    def message(self) -> Document:
        """A message of the team."""
        return {"topic": TOPIC, "body": self.secret, "keys": [self.secret], "properties": {"owner": self.secret}}

    def sends(self, **fields: object) -> Document:
        """Sends a message; what is answered."""
        return self._made("/v1/messages", **{**self.message, **fields})

    def begins(self, **fields: object) -> Document:
        """Begins a transaction."""
        return self._made("/v1/transactions", **{**self.message, "producer_group": PRODUCERS, **fields})

    def ends(self, begun: Document, state: str = "COMMIT") -> Document:
        """Ends a transaction."""
        return self._made(
            f"/v1/transactions/{begun['transaction_id']}/end", producer_group=PRODUCERS, state=state, topic=TOPIC
        )

    def receives(self, count: int = 32, wait_seconds: int = 5, topic: str = TOPIC) -> list[Document]:
        """What its consumers are handed, at once or within the time."""
        wanted = {"topic": topic, "max_messages": count, "wait_seconds": wait_seconds}
        found: list[Document] = self._made(f"/v1/consumer-groups/{CONSUMERS}/receive", **wanted)["messages"]
        return found

    def acks(self, deliveries: list[Document]) -> None:
        """Acks what was received, if anything was."""
        if not deliveries:
            return
        self._made(
            f"/v1/consumer-groups/{CONSUMERS}/ack", receipt_handles=[one["receipt_handle"] for one in deliveries]
        )

    def _made(self, path: str, **fields: object) -> Document:
        answer = self.calls.make(path, **fields)
        assert answer.status in (200, 201, 202), answer
        found: Document = answer.document
        return found
