"""A COMMIT of the local transaction and the ends of its messages, for any framework."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mqbroker_client.barrier.steps import CommitSteps, Prepared

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ending:
    """A prepared local transaction and the steps that send its end.

    These steps raise no errors: a check replaces a lost end.
    """

    steps: CommitSteps
    prepared: Prepared

    def committed(self) -> None:
        self._send(self.steps.committed)

    def by_its_row(self) -> None:
        """Sends the end according to the row in the database, when it is unknown whether the COMMIT succeeded."""
        self._send(self.steps.failed)

    def _send(self, end: Callable[[Prepared], None]) -> None:
        try:
            end(self.prepared)
        except Exception:
            # The transaction has ended, even if its end cannot be sent.
            log.exception("transaction %s: its end was not sent", self.prepared.transaction_id)


def commit(endings: Sequence[Ending], *, by: Callable[[], object], or_roll_back: Callable[[], object]) -> None:
    """Commits the prepared local transactions, and sends their ends.

    After an error of the COMMIT, also a lost reply, it rolls back, and at once sends the ends according to the rows in
    the database. After an interrupt the check decides. Raises the error of the COMMIT.
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
