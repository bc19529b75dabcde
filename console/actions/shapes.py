"""The types that kinds of actions share: a kind, its parameters, its filter, and counts up to a limit."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from access.audit import Signature
from store.db.fields import Field
from store.errors import CellAway

Result = TypeVar("Result")

# The values of an action's form, by field.
Parameters = Mapping[str, Any]
# The filter of an action on all that match.
Filter = Mapping[str, Any]
# Returns a text about each target, by target; a target that does not exist is missing.
Describe = Callable[[Sequence[str], Parameters], dict[str, str]]

COUNT_LIMIT = 100_000


class Call(Protocol):
    """Runs a coroutine in the event loop of this process, and returns its result."""

    def __call__(self, work: Coroutine[Any, Any, Result], /) -> Result: ...


# Changes the targets; each change gets an audit entry with the signature.
Run = Callable[[Sequence[str], Parameters, Signature, Call], None]


class Counted(NamedTuple):
    """A number of matching rows. `more`: counting stopped at the limit, and further rows match."""

    rows: int
    more: bool = False


def to_limit(counted: int) -> Counted:
    """Limits a number to COUNT_LIMIT.

    The caller has counted up to COUNT_LIMIT + 1, so the number shows whether there are more.
    """
    return Counted(min(counted, COUNT_LIMIT), counted > COUNT_LIMIT)


@dataclass(frozen=True, slots=True)
class Matching:
    """Finds the targets that match a filter with these `fields`. `bounded` makes a filter exclude later targets.

    `next` takes a filter, a cursor and a number; it returns at most this number of targets after the cursor, and the
    cursor after the last of these targets. A cursor is JSON.
    """

    fields: tuple[Field, ...]
    bounded: Callable[[Filter], Filter]
    count: Callable[[Filter], Counted]
    next: Callable[[Filter, Any, int], tuple[list[str], Any]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of action. `title` and `button` are its names on pages, `page` is the page with its form.

    If the parameters are columns, `standing` returns the current columns of a target; none for a new target.

    `right` is the kind's name in the roles, if it differs from `name`. `fields` are the parameters. A `grave` action
    deletes something or makes it unusable, and has a red button. With `makes` the form asks for the name of a new
    target. `noun` is the word for one target.
    """

    page: ClassVar[str]
    name: str
    title: str
    button: str
    _: KW_ONLY
    noun: str
    right: str = ""
    fields: tuple[Field, ...] = ()
    grave: bool = False
    makes: bool = False
    standing: Callable[[str], Mapping[str, object]] | None = None

    @property
    def action(self) -> str:
        """The name by which the roles name this kind of action."""
        return self.right or self.name

    def counted(self, number: int) -> str:
        """The noun for this number of targets: `transaction`, `outboxes`."""
        ending = "" if number == 1 else "es" if self.noun.endswith("x") else "s"
        return f"{self.noun}{ending}"


@dataclass(frozen=True, slots=True)
class Stepwise(Kind):
    """A kind that runs in steps: `run` changes targets, `describe` returns a text about each target.

    `dry_run` returns the effect of a change of a target. `wants`: fixed conditions of its filter. `by_id`: targets are
    UUIDs.
    """

    page = "new_action"
    run: Run
    describe: Describe
    _: KW_ONLY
    matching: Matching | None = None
    wants: Filter | None = None
    dry_run: Callable[[str, Parameters], object] | None = None
    by_id: bool = False

    @property
    def is_previewed(self) -> bool:
        """Whether the form shows a preview of the parameters before it asks for the reason."""
        return self.standing is not None or self.dry_run is not None


def require_all(missing: Sequence[str]) -> None:
    """Raises CellAway when a cell is away: an action on all that match needs the answers of all cells."""
    if missing:
        raise CellAway(
            f"The cell {missing[0]} is away, so the targets that match in this cell are unknown: try again when "
            "the cell is back."
        )
