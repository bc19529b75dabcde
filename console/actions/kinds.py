"""The kinds of actions by name. Each kind is defined in the module with its function."""

from collections.abc import Mapping

from console.actions import configuration, messages, shown_once, transactions
from console.actions.errors import KindNotExist, TargetsOnly
from console.actions.shapes import Kind, Matching, Stepwise
from store.process import doors

KINDS: Mapping[str, Stepwise] = {
    kind.name: kind
    for kind in (*transactions.KINDS, *messages.KINDS, *configuration.KINDS, *doors.added(doors.To.ACTIONS))
}


def find(name: str) -> Stepwise:
    """The kind with this name, among kinds that run in steps.

    Raises KindNotExist.
    """
    if name not in KINDS:
        raise KindNotExist(f"There is no kind of action {name[:60]!r}: choose one on a page of the console.")
    return KINDS[name]


def of_any_page(name: str) -> Kind:
    """The kind with this name, including kinds whose outcome is shown once.

    Raises KindNotExist.
    """
    return KINDS.get(name) or shown_once.find(name)


def title(name: str) -> str:
    """The title of a kind on pages; for a kind of an earlier version its name."""
    return KINDS[name].title if name in KINDS else name


def matching(name: str) -> Matching:
    """The functions that find all matching targets of a kind.

    Raises KindNotExist, or TargetsOnly for a kind that needs named targets.
    """
    found = find(name).matching
    if found is None:
        raise TargetsOnly(f"The action {name} needs a list of targets: it cannot be run on all that match a filter.")
    return found
