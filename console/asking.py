"""What an operator asks for: the kind of an action, its targets or its filter, its parameters and the reason."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, QueryDict

from console import forms
from console.actions import kinds
from console.actions.shapes import Stepwise
from console.forms import Parameters
from store.db.fields import MAX_TEXT, Whole
from store.errors import MessageIllegal

MOST = (Whole("most", "Most", least=0, most=999_999_999),)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for. `most`: only the first that match, as a canary."""

    kind: Stepwise
    targets: list[str]
    all: bool
    wanted: dict[str, Any]
    most: int | None
    reason: str
    form: Parameters

    @property
    def changes(self) -> list[tuple[str, str, str]] | None:
        """What is set, with the texts before and after; None where the form is not filled in, or sets no columns."""
        return self.form.changes if self.kind.standing and self.form.is_valid() else None

    @property
    def has_parameters(self) -> bool:
        """Whether everything but the reason is given, and something would change."""
        would_change = self.kind.makes or not self.kind.standing or bool(self.form.values)
        return self.form.is_valid() and would_change and bool(self.targets or self.all)

    @property
    def is_complete(self) -> bool:
        """Whether the action can be done."""
        return self.has_parameters and bool(self.reason)


def given_by(request: HttpRequest) -> QueryDict:
    """What the form holds, or else the address.

    Raises MessageIllegal for a NUL, which no name, reason or value holds.
    """
    given = request.POST if request.method == "POST" else request.GET
    if any("\0" in text for _, texts in given.lists() for text in texts):
        raise MessageIllegal("The form holds a NUL, which nothing is named by.")
    return given


def texts_of(given: QueryDict) -> dict[str, str]:
    """The texts of a form or an address; several of one name are a list of words."""
    return {name: " ".join(filter(None, map(str, texts))) for name, texts in given.lists()}


def targets_of(kind: Stepwise, given: QueryDict) -> list[str]:
    """The targets that a request names, as the audit calls them; none for all that match.

    Raises MessageIllegal for none, unless the kind asks for a new name.
    """
    if given.get("all") == "1":
        return []
    found = [target_of(kind, text) for text in given.getlist("target") if text.strip()]
    if not found and not kind.makes:
        raise MessageIllegal("Nothing is chosen: choose what to change first.")
    if len(found) > 1 and kind.standing:
        raise MessageIllegal(f"{kind.title}: one at a time.")
    return found


def read(kind: Stepwise, given: QueryDict, *, posted: bool) -> Asked:
    """What the address, or the form that was posted, asks for.

    Raises what the registry of a target refuses, and MessageIllegal for a filter that holds none, or for what is wrong
    in parameters that are not shown again.
    """
    texts, takes_all, targets = texts_of(given), given.get("all") == "1", targets_of(kind, given)
    standing = kind.standing(targets[0]) if kind.standing and targets else None
    if not kind.is_previewed:
        forms.read(kind.fields, texts)
    return Asked(
        kind=kind,
        targets=targets,
        all=takes_all,
        wanted=_wanted(kind, texts) if takes_all else {},
        most=forms.read(MOST, texts).get("most"),
        reason=texts.get("reason", "").strip() if posted else "",
        form=Parameters(kind.fields, texts, standing, posted=posted),
    )


def target_of(kind: Stepwise, text: str) -> str:
    """A target as the audit calls it."""
    if not kind.by_id:
        return text.strip()[:MAX_TEXT]
    try:
        return str(uuid.UUID(text))
    except ValueError as problem:
        raise MessageIllegal(f"{text[:60]!r} is no id.") from problem


def _wanted(kind: Stepwise, texts: Mapping[str, str]) -> dict[str, Any]:
    return {**forms.read(kinds.matching(kind.name).fields, texts), **(kind.wants or {})}
