"""Half messages, as a local transaction and a check have them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self
from uuid import UUID

from mqbroker_client.core.documents import Document
from mqbroker_client.core.messages import Message, message_fields, moment_of


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfMessage(Message):
    """A message whose transaction is not decided: what a local transaction works on, and what a check asks about."""

    transaction_id: UUID
    producer_group: str
    #: By the broker's clock; None while its own local transaction runs.
    stored_at: datetime | None = None
    #: How often the broker has asked about it, this time included; 0 while its own local transaction runs.
    check_times: int = 0
    #: All messages of a transaction that has several; the other fields describe the first of these messages.
    messages: Sequence[Message] = ()
    #: Where its transaction lies, from a broker of several cells.
    cell: str | None = None

    @property
    def topic_of_end(self) -> str | None:
        """What the end of its transaction names; as `Begun.topic_of_end`."""
        return None if self.cell is None else self.topic

    @property
    def body_omitted(self) -> bool:
        """Whether this check came without its bodies, because the endpoint's server refused their size.

        `body` is empty then, and so is that of each of `messages`. No stored message has an empty body.
        """
        return not self.body

    @classmethod
    def read(cls, document: Document, producer_group: str) -> Self:
        """What the API's JSON says."""
        return cls(
            **message_fields(document),
            transaction_id=UUID(document["transaction_id"]),
            producer_group=document.get("producer_group", producer_group),
            stored_at=moment_of(document.get("stored_at")),
            check_times=document.get("check_times", 0),
            messages=tuple(Message(**message_fields(message)) for message in document.get("messages") or ()),
            cell=document.get("cell"),
        )
