"""The kinds of actions by name. Each kind is defined in the module with its function."""

from collections.abc import Mapping, Sequence

from console.actions import configuration, messages, shown_once, transactions, users
from console.actions.shapes import Kind, Matching, Parameters, Stepwise
from console.actions.shown_once import Once
from store.errors import Refusal
from store.process import doors

OF_DOORS: tuple[Kind, ...] = tuple(doors.added(doors.To.ACTIONS))
KINDS: Mapping[str, Stepwise] = {
    kind.name: kind
    for kind in (*transactions.KINDS, *messages.KINDS, *configuration.KINDS, *users.KINDS, *OF_DOORS)
    if isinstance(kind, Stepwise)
}
# The kinds whose outcome is shown once.
ONCE: Mapping[str, Once] = {
    kind.name: kind for kind in (*shown_once.KINDS, *users.ONCE, *OF_DOORS) if isinstance(kind, Once)
}


class KindNotExist(Refusal):
    """There is no kind of action with this name."""

    code = "not_found"


class TargetsOnly(Refusal):
    """The kind of action needs a list of targets, and cannot change all targets that match a filter."""

    code = "message_illegal"


def find(name: str) -> Stepwise:
    """The kind with this name, among kinds that run in steps.

    Raises KindNotExist.
    """
    if name not in KINDS:
        raise not_exist(name)
    return KINDS[name]


def find_once(name: str) -> Once:
    """The kind with this name, among kinds whose outcome is shown once.

    Raises KindNotExist.
    """
    if name not in ONCE:
        raise not_exist(name)
    return ONCE[name]


def not_exist(name: str) -> KindNotExist:
    """The refusal for a name that no kind of action has."""
    return KindNotExist(f"There is no kind of action {name[:60]!r}: choose one on a page of the console.")


def of_any_page(name: str) -> Kind:
    """The kind with this name, including kinds whose outcome is shown once.

    Raises KindNotExist.
    """
    return KINDS.get(name) or find_once(name)


def title(name: str) -> str:
    """The title of a kind on pages; for a kind of an earlier version its name."""
    return KINDS[name].title if name in KINDS else name


def counted(name: str, number: int) -> str:
    """The noun for this number of targets of a kind. For a kind that only an earlier version had: `targets`."""
    return KINDS[name].counted(number) if name in KINDS else "targets"


def described(name: str, targets: Sequence[str], parameters: Parameters) -> Mapping[str, str]:
    """A text about each target, such as a transaction's topics and keys; a target that no longer exists is missing."""
    try:
        return KINDS[name].describe(targets, parameters) if name in KINDS else {}
    except Refusal:
        # A dead letter's group may be deleted, and a cell may be away: the page names the cell.
        return {}


def matching(name: str) -> Matching:
    """The functions that find all matching targets of a kind.

    Raises KindNotExist, or TargetsOnly for a kind that needs named targets.
    """
    found = find(name).matching
    if found is None:
        raise TargetsOnly(f"The action {name} needs a list of targets: it cannot be run on all that match a filter.")
    return found
