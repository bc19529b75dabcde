"""Pages of dead letters: the groups that have dead letters, values that the letters share, and the letters."""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.pages import frame
from delivery import registry
from delivery.dead_letters import lists as dead_letter_lists
from delivery.dead_letters.lists import Wanted
from delivery.rows import SharedByDeadLetters
from store.messages import times
from store.reading import cursors
from store.stats import now

PAGE = 50
# The fields by which letters are counted and filtered, each with its heading.
FIELDS = {"reason": "Reason", "topic": "Topic", "tags": "Tags", "attempts": "Attempts", "hour": "Hour"}
# The most values of one field that a page shows.
VALUES = 8


@dataclass(frozen=True)
class Value:
    """A value that dead letters share, the address of the list filtered by this value, and whether it is chosen."""

    shared: SharedByDeadLetters
    query: str
    chosen: bool


@require_GET
def all_groups(request: HttpRequest) -> HttpResponse:
    """The consumer groups that have dead letters, the group with the most first."""
    groups = dead_letter_lists.groups()
    shown = {"now": now(), "groups": groups, "limit": dead_letter_lists.MAX_GROUPS}
    return frame.show(request, "console/dead_letters.html", "Dead letters", **shown)


@require_GET
def of_group(request: HttpRequest, name: str) -> HttpResponse:
    """The dead letters of one group."""
    group = registry.named(name)
    if group is None:
        return frame.not_there(request, f"Consumer group {name} does not exist.", "dead_letters")
    page = dead_letter_lists.page(group, wanted(request), frame.after(request, int), PAGE)
    return frame.show(
        request,
        "console/dead_letters_of.html",
        f"Dead letters of {name}",
        now=now(),
        group=group,
        letters=page.rows,
        older=urlencode({**chosen(request), "after": cursors.encode_each(page.after)}) if page.after else "",
        summary=summary(request, dead_letter_lists.shared(group)),
        narrowed=chosen(request),
        summed_limit=dead_letter_lists.MAX_LOOKED_AT,
    )


def chosen(request: HttpRequest) -> dict[str, str]:
    """The fields by which the address filters the list."""
    return {field: request.GET[field] for field in FIELDS if field in request.GET}


def wanted(request: HttpRequest) -> Wanted:
    """The filter in the address; an invalid value counts as missing."""
    given = chosen(request)
    return Wanted(
        topic=given.get("topic"),
        tags=given.get("tags"),
        attempts=min(frame.whole_number(request, "attempts"), 2**31 - 1) or None,
        hour=hour_of(given.get("hour", "")),
        reason=given.get("reason"),
    )


def hour_of(text: str) -> datetime | None:
    """The hour of the address, which has a time zone."""
    try:
        hour = datetime.fromisoformat(text)
        return times.in_utc(hour) if hour.tzinfo else None
    except ValueError:
        return None


def summary(request: HttpRequest, shared: dict[str, list[SharedByDeadLetters]]) -> list[tuple[str, list[Value], int]]:
    """The values that letters share, by field: the first values, and the number of further values."""
    given = chosen(request)
    columns = []
    for field, heading in FIELDS.items():
        rows = shared.get(field, [])
        values = [
            Value(row, urlencode({**given, field: row.shared_value}), given.get(field) == row.shared_value)
            for row in rows[:VALUES]
        ]
        columns.append((heading, values, max(0, len(rows) - VALUES)))
    return columns
