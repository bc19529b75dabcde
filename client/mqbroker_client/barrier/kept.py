"""Sends the messages that local transactions left in their rows while the broker was away."""

import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from mqbroker_client.barrier.decisions import Barrier
from mqbroker_client.barrier.table import Table
from mqbroker_client.calls import producer as calls
from mqbroker_client.errors import BrokerError
from mqbroker_client.messages import Message
from mqbroker_client.producers import Producer
from mqbroker_client.retries import PASSING, Retry
from mqbroker_client.states import LocalTransactionState

log = logging.getLogger(__name__)

# The next round tries again.
ONCE = Retry(tries=1, seconds=5.0)


@dataclass(slots=True)
class KeptMessages:
    """Sends them under the ids that they were kept with, so that two processes may do so at once."""

    producer: Producer
    barrier: Barrier
    _thread: threading.Thread | None = field(default=None, init=False)

    def send(self, *, seconds: float = 30.0) -> int:
        """Sends what is kept until none is left, the broker is away, or `seconds` are over; how many transactions."""
        give_up_at = time.monotonic() + seconds
        return self.barrier.in_own_session(lambda table: self._send_all(table, give_up_at))

    def send_in_background(self) -> None:
        """Begins `send` in a thread, unless one of this process is at it."""
        # No lock: a fork would leave it held. Here the parent's thread is not alive, and two that send harm nothing.
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="kept messages", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            self.send()
        except Exception:
            log.exception("kept messages were not sent")

    def _send_all(self, table: Table, give_up_at: float) -> int:
        count = 0
        for page in table.kept():
            try:
                sent = self._send(page)
            except PASSING as error:
                log.warning("kept messages wait for the broker: %s", error)
                break
            table.sent(sent)
            count += len(sent)
            if time.monotonic() > give_up_at:
                break
        return count

    def _send(self, page: Mapping[UUID, Sequence[Message]]) -> list[UUID]:
        """The transactions of a page that are committed now; the others stay. Raises what passes."""
        group, broker = self.producer.group, self.producer.broker
        # A half may be stored already: its answer was lost. Then this is a repetition, and so is its end.
        halves = broker.do_all([calls.begin(group, messages, id_) for id_, messages in page.items()], retry=ONCE)
        stored = self._taken(page, halves)
        ends = broker.do_all([calls.end(group, id_, LocalTransactionState.COMMIT) for id_ in stored], retry=ONCE)
        return self._taken(stored, ends)

    def _taken(self, transaction_ids: Iterable[UUID], results: Sequence[object]) -> list[UUID]:
        """Those without an error. Those with one stay, and the others do not wait for them."""
        found = dict(zip(transaction_ids, results, strict=True))
        for id_, result in found.items():
            if isinstance(result, BrokerError):
                level = logging.WARNING if isinstance(result, PASSING) else logging.ERROR
                log.log(level, "the kept messages of transaction %s were not taken: %s", id_, result)
        return [id_ for id_, result in found.items() if not isinstance(result, BrokerError)]
