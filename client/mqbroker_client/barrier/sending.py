"""One round of sending what is kept: each transaction is sent, waits, or is refused for good."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from mqbroker_client.barrier.table import UNREADABLE, messages_of
from mqbroker_client.core.calls import Call
from mqbroker_client.core.calls import producer as calls
from mqbroker_client.core.errors import BrokerError
from mqbroker_client.core.meanings import Meaning, meaning_of
from mqbroker_client.core.producers import Producer
from mqbroker_client.core.retries import Retry
from mqbroker_client.core.states import LocalTransactionState

# The next round tries again.
ONCE = Retry(tries=1, seconds=5.0)


@dataclass(slots=True)
class Sending:
    """What came of kept transactions that were sent."""

    sent: list[UUID] = field(default_factory=list)
    #: Why the broker takes a transaction neither now nor later.
    refused: dict[UUID, str] = field(default_factory=dict)
    #: Why others wait; of several reasons the last.
    waits: BrokerError | None = None
    #: Whether each was answered; else nothing is to be had from the next page.
    is_answered: bool = True

    def add(self, page: "Sending") -> None:
        """What came of a further page."""
        self.sent += page.sent
        self.refused |= page.refused
        self.waits = page.waits or self.waits


def send(producer: Producer, page: Mapping[UUID, str]) -> Sending:
    """Sends a page of kept transactions as halves and their ends, by the texts of their rows.

    Raises nothing of the broker's: while it is away, all of them wait.
    """
    found = Sending()
    # A half may be stored already: its answer was lost. Then this is a repetition, and so is its end.
    stored = _taken(producer, _halves(producer, page, found), found)
    ends = {
        id_: calls.end(producer.group, id_, LocalTransactionState.COMMIT, topic=begun.topic_of_end)
        for id_, begun in stored.items()
    }
    found.sent = list(_taken(producer, ends, found))
    return found


def _halves(producer: Producer, page: Mapping[UUID, str], found: Sending) -> dict[UUID, Call[Any]]:
    halves: dict[UUID, Call[Any]] = {}
    for id_, text in page.items():
        try:
            halves[id_] = calls.begin(producer.group, messages_of(text), id_)
        except UNREADABLE as error:
            found.refused[id_] = f"its row cannot be read: {type(error).__name__}: {error}"
    return halves


def _taken(producer: Producer, asked: Mapping[UUID, Call[Any]], found: Sending) -> dict[UUID, Any]:
    """The results of the transactions without an error. One with an error holds up no other."""
    taken = {}
    for id_, result in _results(producer, asked, found).items():
        if not isinstance(result, BrokerError):
            taken[id_] = result
        elif meaning_of(result) is Meaning.REFUSED:
            found.refused[id_] = str(result)
        else:
            found.waits = result
    return taken


def _results(producer: Producer, asked: Mapping[UUID, Call[Any]], found: Sending) -> dict[UUID, Any]:
    """The result or the error of each call: together, and one by one where what goes together is refused as a whole.

    A gateway refuses the size of many, for example. Without an answer, all have the error.
    """
    try:
        return dict(zip(asked, producer.broker.do_all(list(asked.values()), retry=ONCE), strict=True))
    except BrokerError as error:
        if meaning_of(error) is not Meaning.REFUSED:
            found.is_answered = False
            return dict.fromkeys(asked, error)
    return {id_: _result(producer, call) for id_, call in asked.items()}


def _result(producer: Producer, call: Call[Any]) -> Any:
    try:
        return producer.broker.do(call, retry=ONCE)
    except BrokerError as error:
        return error
