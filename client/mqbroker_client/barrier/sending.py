"""Sends kept transactions in rounds: in a round each is sent, waits for the next round, or is refused for good."""

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

# A request has one attempt, because the next round tries again.
ONCE = Retry(tries=1, seconds=5.0)


@dataclass(slots=True)
class Sending:
    """The outcome of sending kept transactions."""

    sent: list[UUID] = field(default_factory=list)
    #: The reasons why the broker refuses transactions for good.
    refused: dict[UUID, str] = field(default_factory=dict)
    #: The last reason why other transactions wait.
    waits: BrokerError | None = None
    #: Whether the broker answered for each transaction of the page. If not, the next page is not sent.
    is_answered: bool = True

    def add(self, page: "Sending") -> None:
        """Adds the outcome of another page."""
        self.sent += page.sent
        self.refused |= page.refused
        self.waits = page.waits or self.waits


def send(producer: Producer, page: Mapping[UUID, str]) -> Sending:
    """Sends a page of kept transactions from the texts in their rows: their half messages, then their ends.

    Raises no error of the broker: while the broker is away, all transactions wait.
    """
    found = Sending()
    # A half message whose answer was lost may be stored already; then this call and its end are repetitions.
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
    """The results of the transactions without an error. An error of one transaction does not delay others."""
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
    """The result or the error of each call. The calls are sent together.

    If the shared request is refused as a whole, for example because a gateway refuses its size, they are sent one by
    one. If no answer comes, the result of each call is the error.
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
