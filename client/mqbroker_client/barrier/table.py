"""The rows of the barrier: found, written, kept and purged by one session."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from mqbroker_client.barrier.dialects import Dialect, create_statements
from mqbroker_client.barrier.sessions import Parameters, Row
from mqbroker_client.core.documents import encoded, given, in_utf8
from mqbroker_client.core.messages import Message, message_fields
from mqbroker_client.core.states import LocalTransactionState

KEPT_PAGE = 100
# The maximum number of ids in one statement.
FOUND_PAGE = 500
# Errors when reading a row's text that another program or a person has written.
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError)

# Finds kept messages to send, without messages that the broker has refused (`refused` has the reason).
_KEPT = (
    "SELECT transaction_id, messages FROM mqbroker_barrier WHERE messages IS NOT NULL AND refused IS NULL "
    "AND producer_group = :producer_group AND transaction_id > :after "
    f"ORDER BY transaction_id LIMIT {KEPT_PAGE}"
)
_LIST = (
    "SELECT transaction_id, messages, {decided_at}, refused FROM mqbroker_barrier WHERE messages IS NOT NULL "
    "AND producer_group = :producer_group AND transaction_id > :after "
    f"ORDER BY transaction_id LIMIT {KEPT_PAGE}"
)
_KEEP = "UPDATE mqbroker_barrier SET messages = :messages WHERE transaction_id = :transaction_id"
# Several processes may be refused at the same time: only the first of them writes its reason.
_SET_APART = (
    "UPDATE mqbroker_barrier SET refused = :reason "
    "WHERE transaction_id = :transaction_id AND messages IS NOT NULL AND refused IS NULL"
)
_RELEASE = (
    "UPDATE mqbroker_barrier SET refused = NULL WHERE producer_group = :producer_group AND messages IS NOT NULL "
    "AND refused IS NOT NULL"
)
_DROP = (
    "UPDATE mqbroker_barrier SET messages = NULL, refused = NULL "
    "WHERE transaction_id = :transaction_id AND producer_group = :producer_group AND messages IS NOT NULL"
)


@dataclass(frozen=True, slots=True)
class KeptTransaction:
    """A committed local transaction whose messages are in its row."""

    transaction_id: UUID
    #: The time by the database's clock.
    committed_at: datetime
    #: The topics of its messages, each once; none if the row cannot be read.
    topics: Sequence[str]
    messages: int
    #: The length of the row's text of messages, in characters.
    characters: int
    #: The reason why the messages are set apart; None while they wait for the broker.
    refused: str | None


class Statements(Protocol):
    """A session with the statements for its kind of database; the session is the program's or the barrier's."""

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
        """The states of transactions that have a committed row in the barrier's table, by transaction id."""
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

    def insert_rollback(self, transaction_id: UUID, producer_group: str) -> int:
        """Inserts ROLLBACK; returns the number of inserted rows.

        Writes nothing if the row exists, which MySQL reports as an error, or if the server is read-only.
        """
        return self.session.write(
            self.session.dialect.insert_rollback,
            {"transaction_id": str(transaction_id), "producer_group": producer_group},
        )

    def keep(self, transaction_id: UUID, messages: Sequence[Message]) -> None:
        """Stores the messages of a COMMIT in its row, to be sent later."""
        self.session.write(_KEEP, {"transaction_id": str(transaction_id), "messages": _text(messages)})

    def kept(self) -> Iterator[dict[UUID, str]]:
        """The texts that wait to be sent, by transaction and in pages, in the order of the ids and so of time.

        `messages_of` reads the texts. Refused messages are left out.
        """
        for page in self._pages(_KEPT):
            yield {UUID(transaction_id): text for transaction_id, text in page}

    def all_kept(self) -> Iterator[KeptTransaction]:
        """All kept transactions, set apart or not, in the order of the ids."""
        for page in self._pages(_LIST.format(decided_at=self.session.dialect.decided_at)):
            yield from (_kept_transaction(*row) for row in page)

    def sent(self, transaction_ids: Sequence[UUID]) -> None:
        """Removes the messages of at most 100 transactions from their rows."""
        if not transaction_ids:
            return
        names = {f"id{number}": str(transaction_id) for number, transaction_id in enumerate(transaction_ids)}
        places = ", ".join(f":{name}" for name in names)
        self.session.write(
            f"UPDATE mqbroker_barrier SET messages = NULL, refused = NULL WHERE transaction_id IN ({places})", names
        )

    def set_apart(self, transaction_id: UUID, reason: str) -> bool:
        """Notes why the broker refuses kept messages, which are not sent again. Returns whether this is new."""
        # PostgreSQL's texts cannot contain NUL, and no driver accepts half of a surrogate pair.
        text = in_utf8(reason).replace("\x00", r"\x00")
        return self.session.write(_SET_APART, {"transaction_id": str(transaction_id), "reason": text}) > 0

    def release(self, transaction_ids: Sequence[UUID] | None) -> None:
        """Makes these transactions, or all, which were set apart, wait for the broker again."""
        group = {"producer_group": self.producer_group}
        if transaction_ids is None:
            self.session.write(_RELEASE, group)
            return
        for id_ in transaction_ids:
            self.session.write(
                f"{_RELEASE} AND transaction_id = :transaction_id", {**group, "transaction_id": str(id_)}
            )

    def drop(self, transaction_id: UUID) -> bool:
        """Removes the messages of a transaction from its row without sending them. Returns whether there were any."""
        names = {"transaction_id": str(transaction_id), "producer_group": self.producer_group}
        return self.session.write(_DROP, names) > 0

    def _pages(self, statement: str) -> Iterator[Sequence[Row]]:
        after = ""
        while page := self.session.query(statement, {"producer_group": self.producer_group, "after": after}):
            yield page
            after = page[-1][0]

    def purge(self) -> int:
        """Deletes at most 1,000 rows older than 14 days, by one statement; returns their number."""
        return self.session.write(self.session.dialect.purge, {})

    def _row(self, transaction_id: UUID) -> dict[str, object]:
        return {"transaction_id": str(transaction_id), "producer_group": self.producer_group}


def messages_of(text: str) -> list[Message]:
    """The messages of a row's text. Raises ValueError, KeyError or TypeError for an unreadable text."""
    return [Message(**message_fields(document)) for document in json.loads(text)]


def _text(messages: Sequence[Message]) -> str:
    """The text of messages. Raises ValueError for NaN or half of a surrogate, which no request may contain."""
    # The trace context is a header of a request, so it is not among the fields of a message's JSON.
    documents = [message.document() | given(traceparent=message.traceparent) for message in messages]
    return encoded(documents).encode().decode()


def _kept_transaction(transaction_id: str, text: str, decided_at: object, refused: str | None) -> KeptTransaction:
    try:
        messages = messages_of(text)
    except UNREADABLE:
        messages = []
    topics = tuple(dict.fromkeys(message.topic for message in messages))
    return KeptTransaction(UUID(transaction_id), _moment(decided_at), topics, len(messages), len(text), refused)


def _moment(found: object) -> datetime:
    """A time from a driver. PostgreSQL and SQLite give text, MySQL a datetime, both in UTC without a zone."""
    moment = found if isinstance(found, datetime) else datetime.fromisoformat(str(found))
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
