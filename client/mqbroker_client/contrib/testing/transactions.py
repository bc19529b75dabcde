"""Transactions of the broker inside the process: half messages, ends and checks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mqbroker_client.contrib.testing.topics import Topics, refused
from mqbroker_client.core.documents import Document

IMMUNITY_SECONDS = 6
CHECK_INTERVAL_SECONDS = 30
STATES = {"COMMIT": "COMMITTED", "ROLLBACK": "ROLLED_BACK"}


@dataclass(slots=True)
class Transaction:
    group: str
    messages: list[Document]
    next_check_at: datetime
    state: str = "PREPARED"
    check_times: int = 0
    placed: list[Document] = field(default_factory=list)


@dataclass(slots=True)
class Transactions:
    """All transactions by their ids."""

    topics: Topics
    now: Callable[[], datetime]
    known: dict[str, Transaction] = field(default_factory=dict)

    def begin(self, transaction_id: str, producer_group: str, **fields: Any) -> Document:
        """POST /v1/transactions."""
        fields.pop("check_url", None)
        immunity = max(fields.pop("check_immunity_seconds", None) or 0, IMMUNITY_SECONDS)
        found = self.known.get(transaction_id)
        if found is not None:
            return self._document(transaction_id, found) | {"duplicate": True}
        messages = [
            self.topics.stored(each) | {"transaction_id": transaction_id} for each in fields.get("messages") or [fields]
        ]
        begun = Transaction(producer_group, messages, self.now() + timedelta(seconds=immunity))
        self.known[transaction_id] = begun
        return self._document(transaction_id, begun)

    def end(self, transaction_id: str, producer_group: str, state: str, **_: Any) -> Document:
        """POST /v1/transactions/{transaction_id}/end. The first decision wins."""
        found = self._existing(transaction_id)
        if found.group != producer_group:
            raise refused(409, "producer_group_wrong", f"The producer group of {transaction_id} is {found.group}.")
        if state != "UNKNOWN":
            self._decide(transaction_id, found, STATES[state])
        return {"transaction_id": transaction_id, "state": found.state, "messages": found.placed}

    def read(self, transaction_id: str) -> Document:
        """GET /v1/transactions/{transaction_id}."""
        found = self._existing(transaction_id)
        return self._document(transaction_id, found) | {"check_times": found.check_times}

    def receive_checks(self, group: str, max_transactions: int, **more: Any) -> Document:
        """POST /v1/producer-groups/{group}/checks/receive."""
        now = self.now()
        due = [
            (transaction_id, each)
            for transaction_id, each in self.known.items()
            if each.group == group and each.state == "PREPARED" and each.next_check_at <= now
        ][:max_transactions]
        for _, asked in due:
            asked.check_times += 1
            asked.next_check_at = now + timedelta(seconds=CHECK_INTERVAL_SECONDS)
        return {"transactions": [self._check(*each) for each in due]}

    def _decide(self, transaction_id: str, found: Transaction, state: str) -> None:
        if found.state not in ("PREPARED", state):
            raise refused(409, "transaction_ended", f"Transaction {transaction_id} is {found.state} already.")
        if found.state == "PREPARED" and state == "COMMITTED":
            found.placed = [self.topics.publish(message) for message in found.messages]
        found.state = state

    def _existing(self, transaction_id: str) -> Transaction:
        if transaction_id not in self.known:
            raise refused(404, "transaction_not_found", f"There is no transaction {transaction_id}.")
        return self.known[transaction_id]

    def _document(self, transaction_id: str, found: Transaction) -> Document:
        return {
            "transaction_id": transaction_id,
            "message_id": found.messages[0]["message_id"],
            "commit_log_offset": found.messages[0]["commit_log_offset"],
            "state": found.state,
            "next_check_at": found.next_check_at.isoformat() if found.state == "PREPARED" else None,
        }

    def _check(self, transaction_id: str, found: Transaction) -> Document:
        several = {"messages": found.messages} if len(found.messages) > 1 else {}
        own = {"transaction_id": transaction_id, "producer_group": found.group, "check_times": found.check_times}
        return found.messages[0] | several | own
