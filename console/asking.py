"""The request for an action: its kind, its targets or filter, its parameters and the reason."""

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
    """A request for an action. `most`: change only the first `most` matching targets, as a trial."""

    kind: Stepwise
    targets: list[str]
    all: bool
    wanted: dict[str, Any]
    most: int | None
    reason: str
    form: Parameters

    @property
    def changes(self) -> list[tuple[str, str, str]] | None:
        """The changed values, as label, old text and new text; None if the form is incomplete or has no columns."""
        return self.form.changes if self.kind.standing and self.form.is_valid() else None

    @property
    def has_parameters(self) -> bool:
        """Whether the form has everything but the reason, and the action would change a value."""
        would_change = self.kind.makes or not self.kind.standing or bool(self.form.values)
        return self.form.is_valid() and would_change and bool(self.targets or self.all)

    @property
    def is_complete(self) -> bool:
        """Whether the form gives everything that the action needs, and a reason."""
        return self.has_parameters and bool(self.reason)


def given_by(request: HttpRequest) -> QueryDict:
    """The values of the posted form, or else of the address.

    Raises MessageIllegal for a NUL character, which no name, reason or value may contain.
    """
    given = request.POST if request.method == "POST" else request.GET
    if any("\0" in text for _, texts in given.lists() for text in texts):
        raise MessageIllegal("The form contains a NUL character, which no name may contain: remove the character.")
    return given


def texts_of(given: QueryDict) -> dict[str, str]:
    """The texts of a form or an address by name; several texts of one name are joined as a list of words."""
    return {name: " ".join(filter(None, map(str, texts))) for name, texts in given.lists()}


def targets_of(kind: Stepwise, given: QueryDict) -> list[str]:
    """The targets that a request names, in the audit's form; none for an action on all that match.

    Raises MessageIllegal without a target, unless the kind asks for a new name.
    """
    if given.get("all") == "1":
        return []
    found = [target_of(kind, text) for text in given.getlist("target") if text.strip()]
    if not found and not kind.makes:
        raise MessageIllegal("Nothing is chosen: choose what to change first.")
    if len(found) > 1 and kind.standing:
        raise MessageIllegal(f"{kind.title}: choose one target only.")
    return found


def read(kind: Stepwise, given: QueryDict, *, posted: bool) -> Asked:
    """The request for an action in the address or in the posted form.

    Raises the refusal of a target's registry, MessageIllegal for a filter without matching targets, and MessageIllegal
    for an invalid parameter that the form does not show again.
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
    """The name of a target in audit entries: an id as a UUID in lower case, any other name without outer blanks."""
    if not kind.by_id:
        return text.strip()[:MAX_TEXT]
    try:
        return str(uuid.UUID(text))
    except ValueError as problem:
        raise MessageIllegal(f"{text[:60]!r} is not an id: give a UUID.") from problem


def _wanted(kind: Stepwise, texts: Mapping[str, str]) -> dict[str, Any]:
    return {**forms.read(kinds.matching(kind.name).fields, texts), **(kind.wants or {})}
