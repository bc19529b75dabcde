"""The messages that local transactions left in their rows while the broker was away: listed, sent, dropped."""

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from mqbroker_client.barrier import sending
from mqbroker_client.barrier.decisions import Barrier
from mqbroker_client.barrier.outage import Outage
from mqbroker_client.barrier.sending import Sending
from mqbroker_client.barrier.table import KeptTransaction, Table
from mqbroker_client.core.errors import BrokerError
from mqbroker_client.core.meanings import Meaning, meaning_of
from mqbroker_client.core.producers import Producer

log = logging.getLogger(__name__)


@dataclass(slots=True)
class KeptMessages:
    """Lists, sends and drops kept messages. They keep their ids, so two processes may send them at the same time.

    Messages that the broker refuses for good are set apart: they stay in their row with the reason, are logged once,
    and are sent again only by `send_again`. Methods with `_async` are for event loops.
    """

    producer: Producer
    barrier: Barrier
    outage: Outage = field(default_factory=Outage)
    _thread: threading.Thread | None = field(default=None, init=False)
    # The last logged reason why kept messages wait: code and status.
    _said: tuple[str, int] | None = field(default=None, init=False)

    def send(self, *, seconds: float = 30.0) -> int:
        """Sends kept transactions until none is left, the broker is away or `seconds` are over; returns how many."""
        return len(self._send(seconds).sent)

    def send_again(self, transaction_ids: Sequence[UUID] | None = None, *, seconds: float = 30.0) -> Sending:
        """Sends the messages that were set apart: of the given transactions, or of all. Arguments and result are the
        same as for `send`.

        Messages that are refused again are set apart again.
        """
        self.barrier.in_own_session(lambda table: table.release(transaction_ids))
        return self._send(seconds)

    def transactions(self) -> list[KeptTransaction]:
        """All kept transactions, the oldest first: transactions that wait, and transactions that are set apart, with
        the reason.
        """
        return self.barrier.in_own_session(lambda table: list(table.all_kept()))

    def drop(self, transaction_ids: Sequence[UUID]) -> int:
        """Removes messages from their rows without sending them; returns the number of transactions.

        The local transactions stay committed. If the broker has a half message because its answer was lost, the check
        still commits it.
        """
        return self.barrier.in_own_session(lambda table: sum([table.drop(id_) for id_ in transaction_ids]))

    async def send_async(self, *, seconds: float = 30.0) -> int:
        """As `send`."""
        return await asyncio.to_thread(self.send, seconds=seconds)

    async def send_again_async(
        self, transaction_ids: Sequence[UUID] | None = None, *, seconds: float = 30.0
    ) -> Sending:
        """As `send_again`."""
        return await asyncio.to_thread(self.send_again, transaction_ids, seconds=seconds)

    async def transactions_async(self) -> list[KeptTransaction]:
        """As `transactions`."""
        return await asyncio.to_thread(self.transactions)

    async def drop_async(self, transaction_ids: Sequence[UUID]) -> int:
        """As `drop`."""
        return await asyncio.to_thread(self.drop, transaction_ids)

    def send_in_background(self) -> None:
        """Starts `send` in a thread, unless a thread of this process already sends."""
        # There is no lock here, because a fork could leave it locked. After a fork the parent's thread is not alive
        # here; two threads that send at once do no harm.
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="kept messages", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            self.send()
        except Exception:
            log.exception("kept messages were not sent")

    def _send(self, seconds: float) -> Sending:
        give_up_at = time.monotonic() + seconds
        found = self.barrier.in_own_session(lambda table: self._send_all(table, give_up_at))
        self._say(found.waits)
        return found

    def _send_all(self, table: Table, give_up_at: float) -> Sending:
        found = Sending()
        for texts in table.kept():
            page = sending.send(self.producer, texts)
            table.sent(page.sent)
            for id_, reason in page.refused.items():
                if table.set_apart(id_, reason):
                    log.error("the kept messages of transaction %s are refused, and set apart: %s", id_, reason)
            found.add(page)
            if page.sent:
                self.outage.is_over()
            if not page.is_answered or time.monotonic() > give_up_at:
                break
        return found

    def _say(self, waits: BrokerError | None) -> None:
        """Logs the reason why messages wait: once when the reason begins, not in each round."""
        said = None if waits is None else (waits.code, waits.status)
        if waits is not None and said != self._said:
            level = logging.WARNING if meaning_of(waits) is Meaning.AWAY else logging.ERROR
            log.log(level, "kept messages wait: %s", waits)
        self._said = said
