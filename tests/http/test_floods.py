"""Floods: what a stranger sends beside a body takes neither the memory of a process nor the time of other callers."""

import time

import pytest

from tests.broker.burdens import IS_STRICT, WITHOUT_A_KEY_BYTES, burden_of, hold
from tests.broker.running import RunningBroker
from tests.http.floods import FLOODS, Flood

# A p99 needs some hundred sends: floods follow each other for this time, and five of them in any case.
FLOODED_SECONDS = 8.0 if IS_STRICT else 0.0
LEAST = 5


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_a_flood_beside_a_body_is_refused_and_holds_nothing(broker: RunningBroker, flood: Flood) -> None:
    statuses: list[int] = []

    def floods() -> None:
        end = time.monotonic() + FLOODED_SECONDS
        while len(statuses) < LEAST or time.monotonic() < end:
            statuses.append(flood(broker))

    burden = burden_of(broker, floods)

    # One that still sends as it is refused may read a reset connection instead.
    assert set(statuses) <= {*flood.statuses, 0}
    hold(burden, WITHOUT_A_KEY_BYTES)
