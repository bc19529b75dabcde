"""Limits of a group while a cell is split: no value is above its limits, in the old cell or in the new one."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from mqbroker.embedded.servers.standby import Standby
from tests.broker.polling import eventually
from tests.broker.prepared_servers import url_in
from tests.broker.running import RunningBroker
from tests.delivery.limited import LimitedGroup, bodies, values
from tests.delivery.limited_crowds import Noted, above_rate, at_once, crowd, done, handed_in, largest_of, noted
from tests.moves.ground import Ground

pytestmark = pytest.mark.chaos
# The rate lets the messages that are sent before the split last for 20 s, so that the split has load.
IN_FLIGHT, PER_SECOND, BURST = 2, 10.0, 4
# A limit in flight that paced values do not reach: PostgreSQL notes only deliveries that count.
FAR = 1000
# The messages of each value that are sent before the split, and behind the split.
BEFORE, BEHIND = 200, 20


class Side:
    """A topic of the cell that is split, and its group: three values are limited in flight, three by their rate."""

    def __init__(self, broker: RunningBroker, name: str, folder: Path) -> None:
        self.group = LimitedGroup(broker)
        self.counted = [f"{name} counted-{number}" for number in range(3)]
        self.paced = [f"{name} paced-{number}" for number in range(3)]
        self.folder = folder / name
        self.folder.mkdir()
        rate = {"in_flight": FAR, "per_second": PER_SECOND, "burst": BURST}
        self.group.limit(in_flight=IN_FLIGHT, values=dict.fromkeys(self.paced, rate))

    def send(self, first: int, count: int) -> None:
        """Sends messages of each value."""
        for number in range(first, first + count):
            self.group.send_each([*self.counted, *self.paced], number)

    def abandon(self, seconds: float, count: int) -> bool:
        """Takes a delivery that is not settled: after this time its message is handed out again. Returns False if
        consumers have done the first messages of each value before one was left to take.
        """

        def look() -> str:
            if self.group.receive(1, wait_seconds=5, invisible_seconds=seconds):
                return "taken"
            return "all done" if self.is_done(count) else ""

        return eventually(look) == "taken"

    def is_done(self, count: int) -> bool:
        """Whether consumers have done the first messages of each value, also the abandoned ones."""
        wanted = {f"{value} {number}" for value in [*self.counted, *self.paced] for number in range(count)}
        return done(self.folder) >= wanted

    def of(self, handed: Sequence[Noted]) -> list[Noted]:
        """The deliveries of this topic."""
        return [each for each in handed if each.value in {*self.counted, *self.paced}]

    def require_limits(self, handed: Sequence[Noted]) -> None:
        """Fails where a value was above its limit, by the count of PostgreSQL or by that of the consumers."""
        largest, worked = largest_of(handed), at_once(self.folder)
        assert {largest[value] for value in self.counted} == {IN_FLIGHT}
        assert {value: worked[value] for value in self.counted if worked[value] > IN_FLIGHT} == {}
        paced = [(each.value, each.at) for each in handed if each.value in self.paced]
        assert above_rate(paced, PER_SECOND, BURST) == []


def split(ground: Ground, standby: Standby, group: LimitedGroup, into: str) -> None:
    """Moves the group's topic from c1 into a new cell, which the standby becomes."""
    url = url_in(standby, "mqbroker_c1")
    ground.cells("split", "c1", "--into", into, "--standby", url, "--home", group.topic)


def test_what_was_in_flight_and_handed_out_before_a_split_counts_behind_it(
    ground: Ground, broker: RunningBroker
) -> None:
    group = LimitedGroup(broker)
    slow = {"per_second": 0.001, "burst": 3}
    group.limit(in_flight=2, values={"slow": slow})
    for value in ("acme", "slow"):
        group.send(value, 6)
    found = group.receive(invisible_seconds=600)
    assert values(found) == ["acme"] * 2 + ["slow"] * 3

    split(ground, ground.standby(), group, "c3")

    assert [group.receive(web=web) for web in range(2)] == [[], []]
    group.settle("ack", [entry for entry in found if entry["message"]["body"] == "acme 0"])
    assert bodies(group.receive(invisible_seconds=600)) == ["acme 2"]
    group.deliveries_expire()
    again = eventually(group.receive)
    while len(again) < 2:
        again += eventually(group.receive)
    assert values(again) == ["acme"] * 2
    assert group.receive() == []


def test_no_value_is_above_its_limits_before_during_and_behind_a_split(
    ground: Ground, broker: RunningBroker, tmp_path: Path
) -> None:
    moving, staying = sides = [Side(broker, name, tmp_path) for name in ("moving", "staying")]
    for side in sides:
        side.send(0, BEFORE)
    standby = ground.standby()
    with (
        noted(ground.url_of("c1")),
        crowd(broker, moving.group, moving.folder),
        crowd(broker, staying.group, staying.folder),
    ):
        abandoned = [side for seconds in (1, 3) for side in sides if side.abandon(seconds, BEFORE)]
        split(ground, standby, moving.group, "c2")
        for side in sides:
            side.send(BEFORE, BEHIND)
            abandoned += [side] * side.abandon(1, BEFORE + BEHIND)
        for side in sides:
            eventually(partial(side.is_done, BEFORE + BEHIND), within_seconds=120)
        old, new = (handed_in(ground.url_of(cell)) for cell in ("c1", "c2"))

    moved, left, stayed = moving.of(new), moving.of(old), staying.of(old)
    print(f"{len(moved)} deliveries, of which {len(left)} before the split; {len(stayed)} of the topic that stays")
    assert set(left) < set(moved), "the old cell has handed out what had left it"
    assert len(moved) >= 6 * (BEFORE + BEHIND) + abandoned.count(moving)
    moving.require_limits(moved)
    staying.require_limits(stayed)
