"""Half messages as a local transaction and a check function see them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self
from uuid import UUID

from mqbroker_client.core.documents import Document
from mqbroker_client.core.messages import Message, message_fields, moment_of


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfMessage(Message):
    """A message whose transaction is undecided: passed to a local transaction, and to a check function."""

    transaction_id: UUID
    producer_group: str
    #: The time by the broker's clock; None while the local transaction runs.
    stored_at: datetime | None = None
    #: The number of times that the broker has asked about the half message, with this check; 0 in the local
    #: transaction.
    check_times: int = 0
    #: All messages, if the transaction has several; the other fields describe the first of them.
    messages: Sequence[Message] = ()
    #: The cell of its transaction, if the broker has several cells.
    cell: str | None = None

    @property
    def topic_of_end(self) -> str | None:
        """The topic to name in the end of this transaction: see `Begun.topic_of_end`."""
        return None if self.cell is None else self.topic

    @property
    def body_omitted(self) -> bool:
        """Whether this check came without bodies, because the endpoint's server refused their size.

        Then `body` is empty, here and in each of `messages`. A stored message never has an empty body.
        """
        return not self.body

    @classmethod
    def read(cls, document: Document, producer_group: str) -> Self:
        """Makes an object from the API's JSON."""
        return cls(
            **message_fields(document),
            transaction_id=UUID(document["transaction_id"]),
            producer_group=document.get("producer_group", producer_group),
            stored_at=moment_of(document.get("stored_at")),
            check_times=document.get("check_times", 0),
            messages=tuple(Message(**message_fields(message)) for message in document.get("messages") or ()),
            cell=document.get("cell"),
        )
