"""The health of endpoints for operators, over all cells, each of which has its own; and whether a group is checked."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q

from store.cells import cells
from store.db import databases
from store.naming import namespaces
from store.notices import presence
from store.notices.presence import Asking
from transactions.models import Endpoint, ProducerGroup

# An endpoint with this many void answers in a row counts as ailing. A single void answer may concern a transaction that
# the endpoint does not know yet.
VOID_ANSWERS = 3
# The most endpoints with an ailing row in some cell that one look reads, to find the ailing endpoints.
ILL = ~Q(state="healthy") | Q(void_answers__gte=VOID_ANSWERS)
MAX_ILL = 1000
WORST_FIRST = ("-void_answers", "-last_failure_at", "id")
COLUMNS = ("id", "group_id", *Endpoint.of_each_cell)
NEVER = datetime.min.replace(tzinfo=UTC)

Health = Mapping[str, Any]


def read(narrowed: Q) -> dict[int, Health]:
    """The health of endpoints by id, with `group_id`. Cells that do not answer are left out.

    If cells differ, the health is taken from a cell where the endpoint is disabled, or else where its answers are void,
    or else from the cell that has called it last.
    """
    with cells.leaving_out():
        return _worst(cells.ask(lambda: _of_cell(narrowed)).values())


def show(endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
    """Endpoints of the control, with the health over all cells that `read` returns."""
    narrowed = Q(id__in=[endpoint.id for endpoint in endpoints])
    with cells.leaving_out():
        others = cells.ask_others(lambda: _of_cell(narrowed)) if endpoints else {}
    own = [{name: getattr(endpoint, name) for name in COLUMNS} for endpoint in endpoints]
    worst = _worst([own, *others.values()])
    for endpoint in endpoints if others else ():
        for name in Endpoint.of_each_cell:
            setattr(endpoint, name, worst[endpoint.id][name])
    return endpoints


def ailing(count: int, namespace: str | None = None) -> Sequence[Endpoint]:
    """The first `count` endpoints that are not called, or whose answers decide nothing; void answers first.

    With `namespace`, only endpoints of its producer groups.
    """
    with cells.leaving_out():
        ill = ILL | Q(id__in={id_ for ids in cells.ask_others(_ill_of_cell).values() for id_ in ids})
    found = (
        Endpoint.objects.filter(ill, namespaces.within(namespace, "group__name"))
        .select_related("group")
        .order_by(*WORST_FIRST)[:MAX_ILL]
    )
    ailing = [one for one in show(list(found)) if one.state != "healthy" or one.void_answers >= VOID_ANSWERS]
    return sorted(ailing, key=lambda one: (-one.void_answers, -(one.last_failure_at or NEVER).timestamp(), one.id))[
        :count
    ]


def states(group_ids: Iterable[int]) -> Mapping[int, Mapping[str, int]]:
    """The number of endpoints of each of these producer groups by state. A group without endpoints is missing."""
    found: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for row in read(Q(group_id__in=list(group_ids))).values():
        found[row["group_id"]][row["state"]] += 1
    return {group_id: dict(number) for group_id, number in found.items()}


def _ill_of_cell() -> list[int]:
    ill = Endpoint.objects.using(databases.here()).filter(ILL)
    return list(ill.order_by(*WORST_FIRST).values_list("id", flat=True)[:MAX_ILL])


def _of_cell(narrowed: Q) -> list[Health]:
    rows = Endpoint.objects.using(databases.here()).filter(narrowed)
    return list(rows.values(*COLUMNS))


def _worst(found: Iterable[Iterable[Health]]) -> dict[int, Health]:
    best: dict[int, Health] = {}
    for row in (row for rows in found for row in rows):
        best[row["id"]] = max(best.get(row["id"], row), row, key=_weight)
    return best


def _weight(health: Health) -> tuple[bool, bool, datetime]:
    called = (health["last_failure_at"], health["last_success_at"], health["last_answer_at"])
    is_void = health["void_answers"] >= VOID_ANSWERS
    return health["state"] == "disabled", is_void, max((at for at in called if at), default=NEVER)


@dataclass(frozen=True, slots=True)
class Checking:
    """Whether a group's transactions are checked. `paused`: they are not; `obstacle`: why no producer can be asked."""

    paused: bool
    obstacle: str | None
    # Whether no endpoint is registered, or all are disabled: then the broker cannot ask, and only an operator can
    # change this.
    unasked: bool = False
    # When the group's producers last polled for checks; None if they have not polled within a day.
    asking: Asking | None = None


def checking(group_names: Iterable[str]) -> dict[str, Checking]:
    """Whether the transactions of each of these groups are checked. Deleted groups are missing."""
    groups = list(ProducerGroup.objects.filter(name__in=set(group_names)))
    of_groups = states(group.id for group in groups)
    polls = presence.of_groups("producer", [group.name for group in groups])
    found = {group: set(of_groups.get(group.id, ())) for group in groups}
    return {group.name: _checking(group, of_group, polls.get(group.name)) for group, of_group in found.items()}


def _checking(group: ProducerGroup, states: set[str], asking: Asking | None) -> Checking:
    # A producer that polls gets checks in every state of its group's endpoints.
    polls = asking is not None and asking.connections > 0
    return Checking(
        group.checks_paused,
        obstacle=None if polls else _obstacle(states),
        unasked=not polls and states <= {"disabled"},
        asking=asking,
    )


def _obstacle(states: set[str]) -> str | None:
    if not states:
        return "no endpoint is registered, and no producer polls"
    if states <= {"open", "disabled"}:
        return f"no endpoint can be asked: all are {' or '.join(sorted(states))}"
    return None
