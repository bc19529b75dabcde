"""The rows of the barrier: found, written, kept and purged by one session."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from mqbroker_client.barrier.dialects import Dialect, create_statements
from mqbroker_client.barrier.sessions import Parameters, Row
from mqbroker_client.messages import Message, message_fields
from mqbroker_client.states import LocalTransactionState

KEPT_PAGE = 100
# Ids of one statement.
FOUND_PAGE = 500

_KEPT = (
    "SELECT transaction_id, messages FROM mqbroker_barrier WHERE messages IS NOT NULL "
    "AND producer_group = :producer_group AND transaction_id > :after "
    f"ORDER BY transaction_id LIMIT {KEPT_PAGE}"
)
_KEEP = "UPDATE mqbroker_barrier SET messages = :messages WHERE transaction_id = :transaction_id"


class Statements(Protocol):
    """A session, of the program's or of the barrier's own."""

    @property
    def dialect(self) -> Dialect: ...

    def query(self, statement: str, parameters: Parameters) -> Sequence[Row]: ...

    def write(self, statement: str, parameters: Parameters) -> int: ...


@dataclass(frozen=True, slots=True)
class Table:
    """`mqbroker_barrier` as one session sees it."""

    session: Statements
    producer_group: str

    def create(self) -> None:
        for statement in create_statements(self.session.dialect.name):
            self.session.write(statement, {})

    def find(self, transaction_ids: Sequence[UUID]) -> dict[UUID, LocalTransactionState]:
        """The decisions that are committed, by transaction."""
        found: dict[UUID, LocalTransactionState] = {}
        for first in range(0, len(transaction_ids), FOUND_PAGE):
            page = transaction_ids[first : first + FOUND_PAGE]
            names = {f"id{number}": str(transaction_id) for number, transaction_id in enumerate(page)}
            places = ", ".join(f":{name}" for name in names)
            rows = self.session.query(
                f"SELECT transaction_id, decision FROM mqbroker_barrier WHERE transaction_id IN ({places})", names
            )
            found |= {UUID(str(transaction_id)): LocalTransactionState(decision) for transaction_id, decision in rows}
        return found

    def insert_commit(self, transaction_id: UUID, messages: Sequence[Message] | None = None) -> None:
        self.session.write(
            self.session.dialect.insert_commit,
            self._row(transaction_id) | {"messages": None if messages is None else _text(messages)},
        )

    def insert_rollback(self, transaction_id: UUID, producer_group: str) -> None:
        """Writes nothing where a row is; MySQL then raises its error."""
        self.session.write(
            self.session.dialect.insert_rollback,
            {"transaction_id": str(transaction_id), "producer_group": producer_group},
        )

    def keep(self, transaction_id: UUID, messages: Sequence[Message]) -> None:
        """Leaves the messages of a COMMIT in its row, to be sent later."""
        self.session.write(_KEEP, {"transaction_id": str(transaction_id), "messages": _text(messages)})

    def kept(self) -> Iterator[dict[UUID, list[Message]]]:
        """What waits to be sent, by transaction and in pages, in the order of the ids, which is that of time."""
        after = ""
        while page := self.session.query(_KEPT, {"producer_group": self.producer_group, "after": after}):
            yield {
                UUID(transaction_id): [Message(**message_fields(document)) for document in json.loads(text)]
                for transaction_id, text in page
            }
            after = page[-1][0]

    def sent(self, transaction_ids: Sequence[UUID]) -> None:
        """Takes the messages of these out of their rows, 100 at most."""
        if not transaction_ids:
            return
        names = {f"id{number}": str(transaction_id) for number, transaction_id in enumerate(transaction_ids)}
        places = ", ".join(f":{name}" for name in names)
        self.session.write(f"UPDATE mqbroker_barrier SET messages = NULL WHERE transaction_id IN ({places})", names)

    def purge(self) -> int:
        """Deletes what is older than 14 days; the number of rows of this one statement, 1,000 at most."""
        return self.session.write(self.session.dialect.purge, {})

    def _row(self, transaction_id: UUID) -> dict[str, object]:
        return {"transaction_id": str(transaction_id), "producer_group": self.producer_group}


def _text(messages: Sequence[Message]) -> str:
    return json.dumps([message.document() for message in messages], ensure_ascii=False, separators=(",", ":"))
