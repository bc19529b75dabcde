"""The page of the audit: who changed what, and why, the latest first."""

import json
import uuid
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from access import audit
from access.audit import Wanted
from access.models import AuditEntry
from console.pages import frame
from store.stats import now

PAGE = 50


@dataclass(frozen=True)
class Line:
    """An entry with its changed fields: name, value before, value after."""

    entry: AuditEntry
    changes: list[tuple[str, str, str]]


@require_GET
def entries(request: HttpRequest) -> HttpResponse:
    """The latest entries, filtered by author, action and target."""
    given = {name: request.GET.get(name, "").strip() for name in ("author", "action", "target")}
    wanted = Wanted(**given, action_id=action_id(request))
    below = frame.whole_number(request, "after") or None
    found = audit.page(wanted, below, PAGE + 1)
    shown = found[:PAGE]
    return frame.show(
        request,
        "console/audit.html",
        "Audit",
        now=now(),
        wanted=wanted,
        lines=[Line(entry, changes(entry.before, entry.after)) for entry in shown],
        behind=below,
        query=urlencode({name: value for name, value in wanted._asdict().items() if value}),
        after=str(shown[-1].id) if len(found) > PAGE else "",
    )


def action_id(request: HttpRequest) -> uuid.UUID | None:
    """The id of the console action whose entries are listed; None if the text is not an id."""
    try:
        return uuid.UUID(request.GET.get("action_id", ""))
    except ValueError:
        return None


def changes(before: object, after: object) -> list[tuple[str, str, str]]:
    """The fields whose values differ before and after the change, as text."""
    old, new = (value if isinstance(value, dict) else {} if value is None else {"": value} for value in (before, after))
    names = dict.fromkeys((*old, *new))
    return [(name, text(old.get(name)), text(new.get(name))) for name in names if old.get(name) != new.get(name)]


def text(value: object) -> str:
    """A JSON value as text for an operator."""
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
