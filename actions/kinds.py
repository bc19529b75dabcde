"""What each kind of action does, and what all that match are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from actions import configuration, messages, transactions
from actions.errors import KindNotExist, TargetsOnly
from actions.shapes import Counted, Describe, Filter, Run


@dataclass(frozen=True, slots=True)
class Matching:
    """All that match. `bounded` keeps later ones out of a filter.

    `next` returns the next targets behind a place, so many at most, and the place behind those; a place is JSON.
    """

    bounded: Callable[[Filter], Filter]
    count: Callable[[Filter], Counted]
    next: Callable[[Filter, Any, int], tuple[list[str], Any]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of action. `action` is its name for roles; `describe` says how each target stands.

    `standing` returns the columns of a target whose parameters are columns: what is made has none yet.
    """

    action: str
    run: Run
    describe: Describe
    matching: Matching | None = None
    standing: Callable[[str], Mapping[str, object]] | None = None


UNDECIDED = Matching(transactions.bounded, transactions.count, transactions.following)
LETTERS = Matching(messages.bounded, messages.count, messages.following)

KINDS: Mapping[str, Kind] = {
    "transaction.commit": Kind("transaction.commit", transactions.commit, transactions.describe, UNDECIDED),
    "transaction.rollback": Kind("transaction.rollback", transactions.roll_back, transactions.describe, UNDECIDED),
    "transaction.check": Kind("transaction.check", transactions.check, transactions.describe, UNDECIDED),
    "discarded.resume": Kind("discarded.resume", transactions.resume, transactions.describe, UNDECIDED),
    "dead_letter.redrive": Kind("dead_letter.redrive", messages.redrive, messages.describe, LETTERS),
    "offsets.reset": Kind("offsets.reset", messages.reset, configuration.consumer_groups),
    "message.recall": Kind("message.recall", messages.recall, messages.delayed),
    **{
        one.name: Kind(
            one.action,
            configuration.making(one.action, one.registry, one.what),
            lambda targets, _: dict.fromkeys(targets, "new"),
            standing=configuration.absent(one.registry, one.what),
        )
        for one in configuration.MAKES
    },
    **{
        one.name: Kind(
            one.role or one.action,
            one.run,
            one.describe,
            standing=configuration.standing(one.find) if one.is_setting else None,
        )
        for one in configuration.CHANGES
    },
}


def find(name: str) -> Kind:
    """The kind of this name.

    Raises KindNotExist.
    """
    kind = KINDS.get(name)
    if kind is None:
        raise KindNotExist(f"There is no kind of action {name[:60]!r}: choose one on a page of the console.")
    return kind


def matching(name: str) -> Matching:
    """How all that match are found.

    Raises KindNotExist, or TargetsOnly where each target has to be named.
    """
    found = find(name).matching
    if found is None:
        raise TargetsOnly(f"The action {name} is for named targets only.")
    return found
