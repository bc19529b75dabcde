"""Sends the messages that local transactions left in their rows while the broker was away."""

import logging
import threading
import time
from dataclasses import dataclass, field
from uuid import UUID

from mqbroker_client.barrier.decisions import Barrier
from mqbroker_client.barrier.table import Table
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
    _busy: threading.Lock = field(default_factory=threading.Lock, init=False)

    def send(self, *, seconds: float = 30.0) -> int:
        """Sends what is kept until none is left, the broker is away, or `seconds` are over; how many transactions."""
        give_up_at = time.monotonic() + seconds
        return self.barrier.in_own_session(lambda table: self._send_all(table, give_up_at))

    def send_in_background(self) -> None:
        """Begins `send` in a thread, unless one of this process is at it."""
        if self._busy.acquire(blocking=False):
            threading.Thread(target=self._run, name="kept messages", daemon=True).start()

    def _run(self) -> None:
        try:
            self.send()
        except Exception:
            log.exception("kept messages were not sent")
        finally:
            self._busy.release()

    def _send_all(self, table: Table, give_up_at: float) -> int:
        count = 0
        for transaction_id, messages in table.kept():
            try:
                self._send(transaction_id, messages)
            except PASSING as error:
                log.warning("kept messages wait for the broker: %s", error)
                break
            except BrokerError:
                # They stay, and the others must not wait for them.
                log.exception("the kept messages of transaction %s are not taken", transaction_id)
            else:
                table.sent(transaction_id)
                count += 1
            if time.monotonic() > give_up_at:
                break
        return count

    def _send(self, transaction_id: UUID, messages: list[Message]) -> None:
        # The half may be stored already: its answer was lost. Then this is a repetition, and so is the end.
        self.producer.begin_messages(messages, transaction_id=transaction_id, retry=ONCE)
        self.producer.end(transaction_id, LocalTransactionState.COMMIT, retry=ONCE)
