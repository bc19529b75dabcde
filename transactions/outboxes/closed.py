"""Topics that take no rows of an outbox now: their rows wait in the table, in order; other rows do not wait."""

import time
from collections.abc import Mapping

from store.errors import RateLimited, Refusal

AGAIN_SECONDS = 2.0
LONGEST_SECONDS = 5.0


class Closed:
    """The topics of one outbox that refuse rows for a time, each with the reason and the time of the next try."""

    def __init__(self) -> None:
        self._until: dict[str, tuple[float, Refusal]] = {}

    def add(self, refusals: Mapping[str, Refusal]) -> None:
        """Notes topics whose rows were just refused."""
        for topic, refusal in refusals.items():
            seconds = refusal.retry_after_seconds if isinstance(refusal, RateLimited) else AGAIN_SECONDS
            self._until[topic] = time.monotonic() + min(seconds, LONGEST_SECONDS), refusal

    @property
    def are_some(self) -> bool:
        """Whether topics were closed and not yet tried again: a part of the next turn's rows may be refused."""
        return bool(self._until)

    @property
    def topics(self) -> list[str]:
        """The topics that refused rows and are not tried again yet. A turn leaves their rows out."""
        now = time.monotonic()
        self._until = {topic: entry for topic, entry in self._until.items() if entry[0] > now}
        return list(self._until)

    @property
    def reason(self) -> str | None:
        """The reason why rows wait, unless the reason is a limit, which passes by itself."""
        found = (refusal for _, refusal in self._until.values() if not isinstance(refusal, RateLimited))
        refusal = next(found, None)
        return None if refusal is None else f"Rows wait: {refusal.code}: {refusal.detail}"[:500]
