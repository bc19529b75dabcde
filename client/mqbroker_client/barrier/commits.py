"""One COMMIT with the messages that belong to it, by whatever means a framework commits."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mqbroker_client.barrier.steps import CommitSteps, Prepared

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ending:
    """A prepared local transaction and what sends its end. It raises nothing: a check decides what is not sent."""

    steps: CommitSteps
    prepared: Prepared

    def committed(self) -> None:
        self._send(self.steps.committed)

    def by_its_row(self) -> None:
        """Sends what the row says, where the COMMIT may have failed."""
        self._send(self.steps.failed)

    def _send(self, end: Callable[[Prepared], None]) -> None:
        try:
            end(self.prepared)
        except Exception:
            # The transaction has ended, whatever comes of this.
            log.exception("transaction %s: its end was not sent", self.prepared.transaction_id)


def commit(endings: Sequence[Ending], *, by: Callable[[], object], or_roll_back: Callable[[], object]) -> None:
    """Commits what is prepared, and sends its ends.

    After an error of the COMMIT, a lost reply too, it rolls back, and the rows say what is sent, at once. An interrupt
    is left to the check. Raises what the COMMIT has raised.
    """
    try:
        by()
    except BaseException as error:
        or_roll_back()
        if isinstance(error, Exception):
            for ending in endings:
                ending.by_its_row()
        raise
    for ending in endings:
        ending.committed()
