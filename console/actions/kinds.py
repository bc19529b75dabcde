"""The kinds of actions, each one record beside what it does, by their names."""

from collections.abc import Mapping

from console.actions import configuration, messages, shown_once, transactions
from console.actions.errors import KindNotExist, TargetsOnly
from console.actions.shapes import Kind, Matching, Stepwise

KINDS: Mapping[str, Stepwise] = {
    kind.name: kind for kind in (*transactions.KINDS, *messages.KINDS, *configuration.KINDS)
}


def find(name: str) -> Stepwise:
    """The kind of this name that is done in steps.

    Raises KindNotExist.
    """
    if name not in KINDS:
        raise KindNotExist(f"There is no kind of action {name[:60]!r}: choose one on a page of the console.")
    return KINDS[name]


def of_any_page(name: str) -> Kind:
    """The kind of this name, of those whose outcome is shown once as well.

    Raises KindNotExist.
    """
    return KINDS.get(name) or shown_once.find(name)


def title(name: str) -> str:
    """How pages call a kind; one of an earlier version by its name."""
    return KINDS[name].title if name in KINDS else name


def matching(name: str) -> Matching:
    """How all that match are found.

    Raises KindNotExist, or TargetsOnly where each target has to be named.
    """
    found = find(name).matching
    if found is None:
        raise TargetsOnly(f"The action {name} is for named targets only.")
    return found
