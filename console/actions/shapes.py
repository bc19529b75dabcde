"""The shapes that kinds of actions share: a kind itself, what it is given, and counts that stopped at a limit."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from access.audit import Signature
from store.db.fields import Field
from store.errors import CellAway

Result = TypeVar("Result")

# What the form of an action holds, by field.
Parameters = Mapping[str, Any]
# The filter of an action on all that match.
Filter = Mapping[str, Any]
# What is said of each target, by target; one that does not exist is missing.
Describe = Callable[[Sequence[str], Parameters], dict[str, str]]

COUNT_LIMIT = 100_000


class Call(Protocol):
    """Runs a coroutine in the event loop of this process, and returns its result."""

    def __call__(self, work: Coroutine[Any, Any, Result], /) -> Result: ...


# Changes the targets, each with an entry by the signature.
Run = Callable[[Sequence[str], Parameters, Signature, Call], None]


class Counted(NamedTuple):
    """How many match; `more` says that counting stopped there."""

    rows: int
    more: bool = False


def to_limit(counted: int) -> Counted:
    """A count of rows that were counted to one more than COUNT_LIMIT."""
    return Counted(min(counted, COUNT_LIMIT), counted > COUNT_LIMIT)


@dataclass(frozen=True, slots=True)
class Matching:
    """All targets that a filter matches. `fields` are the filter's. `bounded` makes a filter pass over later targets.

    `next` takes a filter, a cursor and a number; it returns at most this number of targets behind the cursor, and the
    cursor behind the last of these targets. A cursor is JSON.
    """

    fields: tuple[Field, ...]
    bounded: Callable[[Filter], Filter]
    count: Callable[[Filter], Counted]
    next: Callable[[Filter, Any, int], tuple[list[str], Any]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of action. `title` and `button` are its names on pages, `page` is the one that asks for it.

    `right` is the name by which roles know the kind, where that is not `name`. `fields` are the parameters. A `grave`
    action cannot be undone. With `makes` the target is a new name, which the form asks for.
    """

    page: ClassVar[str]
    name: str
    title: str
    button: str
    _: KW_ONLY
    right: str = ""
    fields: tuple[Field, ...] = ()
    grave: bool = False
    makes: bool = False

    @property
    def action(self) -> str:
        """Its name for roles."""
        return self.right or self.name


@dataclass(frozen=True, slots=True)
class Stepwise(Kind):
    """A kind that is done in steps: `run` changes targets, `describe` says how each stands.

    `standing` returns the columns of a target whose parameters are columns: what is made has none yet. `dry_run`
    returns what a change of a target would do. `wants`: what its filter always holds. `by_id`: its targets are UUIDs.
    """

    page = "new_action"
    run: Run
    describe: Describe
    _: KW_ONLY
    matching: Matching | None = None
    wants: Filter | None = None
    standing: Callable[[str], Mapping[str, object]] | None = None
    dry_run: Callable[[str, Parameters], object] | None = None
    by_id: bool = False

    @property
    def is_previewed(self) -> bool:
        """Whether its parameters are filled in and looked at before the reason is given."""
        return self.standing is not None or self.dry_run is not None


def require_all(missing: Sequence[str]) -> None:
    """An action does all that match, or waits until it can. Raises CellAway for a cell that is missing."""
    if missing:
        raise CellAway(f"The cell {missing[0]} is away: what matches there is not known until it is back.")
