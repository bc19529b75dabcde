"""Limits against a model: whatever the consumers do, a receive gets the messages that the limits let it have."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker import deliveries
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Document
from tests.delivery.limited import LimitedGroup, values

VALUES = ("a", "b", "")
# By itself the rate gives no message within a test.
RATE = 0.001
LIMITS = st.fixed_dictionaries(
    {}, optional={"in_flight": st.integers(0, 3), "per_second": st.just(RATE), "burst": st.integers(1, 3)}
).map(lambda limit: {name: limit[name] for name in limit if name != "burst" or "per_second" in limit})
STEPS = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(VALUES), st.integers(1, 5)),
    st.tuples(st.just("receive"), st.integers(1, 8), st.integers(0, 1)),
    st.tuples(st.sampled_from(["ack", "nack", "return"]), st.integers(1, 4), st.integers(0, 1)),
    st.tuples(st.just("tokens"), st.integers(1, 3), st.just(0)),
    st.tuples(st.just("expire"), st.just(0), st.just(0)),
)


@dataclass
class Model:
    """A group with limits as it is described: counts by value, and a bucket of tokens for each."""

    limits: dict[str, Document]
    waiting: Counter[str] = field(default_factory=Counter)
    retries: Counter[str] = field(default_factory=Counter)
    flight: list[Document] = field(default_factory=list)
    tokens: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def __post_init__(self) -> None:
        self.more_tokens(10)

    def more_tokens(self, count: int) -> None:
        """Lets the rate give so many tokens to each value, up to its burst."""
        for value, limit in self.limits.items():
            self.tokens[value] = min(self.tokens[value] + count, limit.get("burst", 1))

    def room(self, value: str) -> int:
        """How many messages of a value may be handed out."""
        limit, most = self.limits[value], self.waiting[value] + self.retries[value]
        if "in_flight" in limit:
            most = min(most, limit["in_flight"] - values(self.flight).count(value))
        if "per_second" in limit:
            most = min(most, self.tokens[value])
        return max(most, 0)

    def receive(self, found: list[Document], count: int) -> None:
        """Checks what a receive of `count` messages was handed. A retry comes alone."""
        handed, rooms = Counter(values(found)), {value: self.room(value) for value in VALUES}
        assert all(handed[value] <= rooms[value] for value in VALUES), (handed, rooms)
        most = min(count, sum(rooms.values()))
        assert len(found) == most or (0 < len(found) < most and self.retries), (handed, rooms)
        for entry in found:
            value = entry["message"]["body"].rpartition(" ")[0]
            # A returned message is no retry, but comes from the queue of retries.
            kind = self.retries if entry["message"]["message_id"] in self.seen else self.waiting
            kind[value] -= 1
            self.tokens[value] -= 1
            self.seen.add(entry["message"]["message_id"])
        self.retries += Counter()
        self.flight += found

    seen: set[str] = field(default_factory=set)

    def end(self, entries: list[Document], *, again: bool) -> None:
        """Ends deliveries; their messages come `again` or are done."""
        self.flight = [entry for entry in self.flight if entry not in entries]
        if again:
            self.retries.update(values(entries))


def do(group: LimitedGroup, model: Model, step: str, first: int, second: int) -> None:
    """Does a step other than a send, and checks it."""
    if step == "receive":
        model.receive(group.receive(first, second), first)
    elif step == "tokens":
        group.time_passes(first / RATE)
        model.more_tokens(first)
    elif step == "expire":
        group.deliveries_expire()
        with psycopg.connect(group.broker.database_of(group.topic), autocommit=True) as connection:
            eventually(lambda: deliveries.count(connection, group.name) == 0)
        model.end(model.flight, again=True)
    elif entries := model.flight[:first]:
        group.settle(step, entries, second)
        model.end(entries, again=step != "ack")


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    limits=st.tuples(LIMITS, LIMITS, LIMITS),
    steps=st.lists(STEPS, min_size=5, max_size=25),
)
@pytest.mark.parametrize("fair_by", [None, "property:tenant"], ids=["by limits", "fair too"])
def test_a_receive_gets_what_the_limits_let_it_have(
    broker: RunningBroker, fair_by: str | None, limits: tuple[Document, ...], steps: list[tuple[str, int, int]]
) -> None:
    group, model = LimitedGroup(broker), Model(dict(zip(VALUES, limits, strict=True)))
    group.put(fair_by=fair_by, max_reconsume_times=1000)
    group.limit(**limits[0], values=dict(zip(VALUES[1:], limits[1:], strict=True)))
    group.send("a", 3)
    model.waiting["a"] = 3
    for step, first, second in steps:
        if step == "send":
            value = str(first)
            group.send(value, second)
            model.waiting[value] += second
        else:
            do(group, model, step, first, second)
