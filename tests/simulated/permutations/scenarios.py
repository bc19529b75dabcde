"""The scenarios by their names, and how many interleavings each has."""

from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg

from tests.simulated.permutations.beginning import Beginning
from tests.simulated.permutations.bundling import Bundling
from tests.simulated.permutations.claiming import FAIR, IN_FLIGHT, PACED, PLAIN, Claiming, Group
from tests.simulated.permutations.deciding import Deciding
from tests.simulated.permutations.delivering import Delivering
from tests.simulated.permutations.draining import Draining
from tests.simulated.permutations.exploring import Scenario
from tests.simulated.permutations.releasing import Releasing
from tests.simulated.permutations.rolling import Rolling
from tests.simulated.permutations.splitting import Splitting

MOST_OF_A_RUN = 40


class Counted(NamedTuple):
    """How a scenario is made on a database, and the number of its interleavings; many are played with `--all` alone."""

    make: Callable[[psycopg.Connection[Any]], Scenario]
    number: int

    @property
    def is_long(self) -> bool:
        """Whether it takes more of a run than a scenario may: some 30 ms of CPU each."""
        return self.number > MOST_OF_A_RUN


def _pending(*names: str) -> Callable[[psycopg.Connection[Any]], Scenario]:
    return lambda watch: Deciding(watch, names, "PREPARED")


def _discarded(*names: str) -> Callable[[psycopg.Connection[Any]], Scenario]:
    return lambda watch: Deciding(watch, names, "DISCARDED")


def _beginning(
    *names: str, is_begun: bool = False, in_steps: bool = False
) -> Callable[[psycopg.Connection[Any]], Scenario]:
    return lambda watch: Beginning(watch, names, is_begun=is_begun, in_steps=in_steps)


def _delivering(*names: str) -> Callable[[psycopg.Connection[Any]], Scenario]:
    return lambda watch: Delivering(watch, names)


def _bundling(*names: str) -> Callable[[psycopg.Connection[Any]], Scenario]:
    return lambda watch: Bundling(watch, names)


def _claiming(*names: str, group: Group = PLAIN) -> Callable[[psycopg.Connection[Any]], Scenario]:
    return lambda watch: Claiming(watch, names, group)


def _timer(*names: str) -> Callable[[psycopg.Connection[Any]], Scenario]:
    return lambda watch: Releasing(watch, names, at_level=False)


def _level(*names: str) -> Callable[[psycopg.Connection[Any]], Scenario]:
    return lambda watch: Releasing(watch, names, at_level=True)


def _draining(*names: str) -> Callable[[psycopg.Connection[Any]], Scenario]:
    return lambda watch: Draining(watch, names)


def _rolling(*names: str) -> Callable[[psycopg.Connection[Any]], Scenario]:
    return lambda watch: Rolling(watch, names)


SCENARIOS: dict[str, Counted] = {
    "end × discard": Counted(_pending("end", "discard"), 6),
    "end × check": Counted(_pending("end", "check"), 6),
    "check × discard × resolve": Counted(_pending("check", "discard", "resolve"), 179),
    "check × discard": Counted(_pending("check", "discard"), 4),
    "discard × discard": Counted(_pending("discard", "limit"), 4),
    "discard × resume": Counted(_pending("discard", "resume"), 10),
    "discard × resolve": Counted(_pending("discard", "resolve"), 10),
    "resolve × resume, of a discarded one": Counted(_discarded("resolve", "resume"), 4),
    "begin × begin again": Counted(_beginning("begin", "again"), 6),
    "begin × begin again, in steps": Counted(_beginning("begin", "again", in_steps=True), 50),
    "begin × end": Counted(_beginning("begin", "end"), 56),
    "begin again × end": Counted(_beginning("again", "end", is_begun=True), 28),
    "receive × receive": Counted(_claiming("one", "other"), 26),
    "receive × receive, of a fair group": Counted(_claiming("one", "other", group=FAIR), 16),
    "receive × receive, of messages in flight": Counted(_claiming("one", "other", group=IN_FLIGHT), 16),
    "receive × receive, at a rate": Counted(_claiming("one", "other", group=PACED), 16),
    "receive × heartbeat of an earlier version": Counted(_claiming("one", "earlier"), 5),
    "ack × extend": Counted(_delivering("ack", "extend"), 5),
    "ack × expire × time": Counted(_delivering("ack", "expire", "time"), 41),
    "extend × expire × time": Counted(_delivering("extend", "expire", "time"), 60),
    "ack × ack, in a bundle": Counted(_bundling("ack", "neighbour"), 4),
    "ack × nack, in a bundle": Counted(_bundling("ack", "fails"), 10),
    "extend × nack, in a bundle": Counted(_bundling("extend", "fails"), 25),
    "forward × forward again": Counted(_bundling("forward", "again"), 8),
    "forward × ack": Counted(_bundling("forward", "ack"), 10),
    "forward × ack, in a bundle": Counted(_bundling("forward", "neighbour"), 10),
    "forward × nack, in a bundle": Counted(_bundling("forward", "fails"), 140),
    "forward × extend": Counted(_bundling("forward", "extend"), 130),
    "expire × expire": Counted(_delivering("expire", "again"), 20),
    "release × recall, by a timer": Counted(_timer("release", "recall"), 5),
    "release × release, by a timer": Counted(_timer("release", "again"), 6),
    "release × release × recall, by a timer": Counted(_timer("release", "again", "recall"), 90),
    "release × recall, at a level": Counted(_level("release", "recall"), 8),
    "drain × drain": Counted(_draining("drain", "other"), 20),
    "drain × insert": Counted(_draining("drain", "insert"), 15),
    "small drain × small drain": Counted(_draining("small", "second"), 6),
    "small drain × drain": Counted(_draining("small", "other"), 13),
    "small drain × insert": Counted(_draining("small", "insert"), 6),
    "insert × insert, of one key": Counted(_draining("insert", "later"), 4),
    "insert × slots": Counted(_draining("insert", "slots"), 45),
    "roll × end": Counted(_rolling("roll", "end"), 38),
    "roll × send": Counted(_rolling("roll", "send"), 38),
    "roll × read": Counted(_rolling("roll", "read"), 8),
    "purge × end, behind a split": Counted(Splitting, 21),
}
