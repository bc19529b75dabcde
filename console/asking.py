"""What an operator asks for: the kind of an action, its targets or its filter, its parameters and the reason."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, QueryDict

from console import fields
from console.fields import MAX_TEXT, PARAMETERS, Field
from store.errors import MessageIllegal


@dataclass(frozen=True, slots=True)
class Words:
    """How a kind of action is called on pages; a `grave` one is not undone."""

    title: str
    button: str
    grave: bool = False


WORDS: Mapping[str, Words] = {
    "transaction.commit": Words("Commit transactions", "Commit", grave=True),
    "transaction.rollback": Words("Roll transactions back", "Roll back", grave=True),
    "transaction.check": Words("Check transactions now", "Check now"),
    "discarded.resume": Words("Resume discarded transactions", "Resume"),
    "dead_letter.redrive": Words("Redrive dead letters", "Redrive"),
    "offsets.reset": Words("Reset offsets", "Reset offsets", grave=True),
    "message.recall": Words("Recall delayed messages", "Recall", grave=True),
    "topic.make": Words("Make a topic", "Make a topic"),
    "topic.change": Words("Change the topic", "Change"),
    "topic.delete": Words("Delete topics", "Delete", grave=True),
    "producer_group.make": Words("Make a producer group", "Make a producer group"),
    "producer_group.change": Words("Change the producer group", "Change"),
    "producer_group.pause_checks": Words("Pause the checks of producer groups", "Pause checks"),
    "producer_group.continue_checks": Words("Continue the checks of producer groups", "Continue checks"),
    "producer_group.delete": Words("Delete producer groups", "Delete", grave=True),
    "endpoint.change": Words("Change the calls to the endpoint", "Change"),
    "endpoint.move": Words("Change the URL of the endpoint", "Change the URL", grave=True),
    "endpoint.enable": Words("Close the circuit of endpoints", "Close the circuit"),
    "endpoint.delete": Words("Delete endpoints", "Delete", grave=True),
    "consumer_group.make": Words("Make a consumer group", "Make a consumer group"),
    "consumer_group.change": Words("Change the consumer group", "Change"),
    "consumer_group.pause": Words("Pause consumer groups", "Pause"),
    "consumer_group.continue": Words("Continue consumer groups", "Continue"),
    "consumer_group.delete": Words("Delete consumer groups", "Delete", grave=True),
    "subscription.change": Words("Change the calls of the subscription", "Change"),
    "subscription.move": Words("Change what the subscription pushes where", "Change URL and topic", grave=True),
    "subscription.enable": Words("Close the circuit of subscriptions", "Close the circuit"),
    "subscription.pause": Words("Pause subscriptions", "Pause"),
    "subscription.continue": Words("Continue subscriptions", "Continue"),
    "subscription.delete": Words("Delete subscriptions", "Delete", grave=True),
    "key.change": Words("Change the scopes of the API key", "Change"),
    "key.revoke": Words("Revoke API keys", "Revoke", grave=True),
}
# Of what is shown once: see actions/shown_once.py.
ONCE: Mapping[str, Words] = {
    "key.make": Words("Make an API key", "Make an API key"),
    "endpoint.register": Words("Register an endpoint", "Register an endpoint"),
    "endpoint.rotate_secret": Words("Give the endpoint a new secret", "New secret", grave=True),
    "endpoint.test": Words("Try the endpoint", "Try"),
    "subscription.make": Words("Make a subscription", "Make a subscription"),
    "subscription.rotate_secret": Words("Give the subscription a new secret", "New secret", grave=True),
}
# Fields of a filter, by kind.
TRANSACTIONS = ("state", "producer_group", "topic", "older_than_seconds")
# What narrows the list of dead letters, and what an action calls it, whose `reason` is the operator's.
LETTER_FIELDS = {"topic": "topic", "tags": "tags", "attempts": "attempts", "hour": "hour", "reason": "last_reason"}
LETTERS = ("group", *LETTER_FIELDS.values())
# Of which an empty text is a value: no tags, no reason.
MAY_BE_EMPTY = ("tags", "last_reason")
FILTERS = {"dead_letter.redrive": LETTERS}
MAX_NUMBER = 999_999_999
WHOLE = {"older_than_seconds", "attempts", "most"}
UUIDS = ("transaction.", "discarded.", "dead_letter.", "message.")
# Kinds whose parameters are filled in and previewed before the reason is: those that make, that change columns of one
# target, and the reset of offsets.
MAKES = ("topic.make", "producer_group.make", "consumer_group.make")
CHANGES = tuple(kind for kind in PARAMETERS if kind.endswith((".change", ".move")))
PREVIEWED = (*MAKES, *CHANGES, "offsets.reset")
STATES = {"discarded.resume": "DISCARDED", "transaction.check": "PREPARED"}


def words(kind: str) -> Words:
    """How a kind is called; one of an earlier version by its name."""
    return WORDS.get(kind) or ONCE.get(kind) or Words(kind, kind)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for. `most`: only the first that match, as a canary. `missing`: parameters not given yet.

    `fields`: each field of its form with its text. `changes`: what is set, with the texts before and after; None where
    the form was not filled in yet, or sets nothing.
    """

    kind: str
    targets: list[str]
    all: bool
    wanted: dict[str, Any]
    parameters: dict[str, Any]
    missing: list[str]
    most: int | None
    reason: str
    fields: list[tuple[Field, str]]
    changes: list[tuple[str, str, str]] | None = None

    @property
    def words(self) -> Words:
        """How the kind is called."""
        return words(self.kind)

    @property
    def makes(self) -> bool:
        """Whether its target is a new name, which the form asks for."""
        return self.kind in MAKES

    @property
    def is_previewed(self) -> bool:
        """Whether its parameters are filled in and looked at first."""
        return self.kind in PREVIEWED

    @property
    def has_parameters(self) -> bool:
        """Whether everything but the reason is given, and something would change."""
        if self.kind in CHANGES and not self.changes:
            return False
        return not self.missing and bool(self.targets or self.all)

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


def kind_of(request: HttpRequest) -> str:
    """The kind of action that a request names."""
    return given_by(request).get("action", "")


def targets_of(request: HttpRequest) -> list[str]:
    """The targets that a request names, as the audit calls them; none for all that match.

    Raises MessageIllegal for none, unless the kind asks for a new name.
    """
    given, kind = given_by(request), kind_of(request)
    if given.get("all") == "1":
        return []
    found = [target_of(kind, text) for text in given.getlist("target") if text.strip()]
    if not found and kind not in MAKES:
        raise MessageIllegal("Nothing is chosen: choose what to change first.")
    if len(found) > 1 and kind in (*MAKES, *CHANGES):
        raise MessageIllegal(f"{words(kind).title}: one at a time.")
    return found


def read(request: HttpRequest, targets: list[str], standing: Mapping[str, object] | None = None) -> Asked:
    """What the address, and the form that was posted, ask for. `standing`: the columns that they would change.

    Raises MessageIllegal for a text that a field cannot hold.
    """
    given, kind = given_by(request), kind_of(request)
    takes_all = given.get("all") == "1"
    known = PARAMETERS.get(kind, ())
    before = {one.name: fields.written(standing.get(one.name)) for one in known} if standing is not None else {}
    texts = {name: str(given.get(name, "")) for name in given}
    filled = fields.read(known, texts)
    if filled.missing and kind not in PREVIEWED:
        raise MessageIllegal(f"{', '.join(filled.missing)}: missing.")
    is_filled = any(one.name in given for one in known)
    changes = None
    if standing is not None and is_filled:
        differ = [one for one in known if one.name in filled.values and _differs(one, filled.values, before)]
        changes = [(one.label, before[one.name], fields.written(filled.values[one.name])) for one in differ]
        filled = fields.Filled({one.name: filled.values[one.name] for one in differ}, filled.missing)
    return Asked(
        kind=kind,
        targets=targets,
        all=takes_all,
        wanted=_wanted(kind, given) if takes_all else {},
        parameters=filled.values,
        missing=filled.missing,
        most=_whole("most", given.get("most", "")),
        reason=given.get("reason", "").strip() if request.method == "POST" else "",
        fields=[(one, texts.get(one.name, before.get(one.name, "")).strip()) for one in known],
        changes=changes,
    )


def _differs(one: Field, values: Mapping[str, Any], before: Mapping[str, str]) -> bool:
    return fields.written(values[one.name]) != before[one.name]


def target_of(kind: str, text: str) -> str:
    """A target as the audit calls it."""
    if not kind.startswith(UUIDS):
        return text.strip()[:MAX_TEXT]
    try:
        return str(uuid.UUID(text))
    except ValueError as problem:
        raise MessageIllegal(f"{text[:60]!r} is no id.") from problem


def _wanted(kind: str, given: QueryDict) -> dict[str, Any]:
    names = FILTERS.get(kind, TRANSACTIONS)
    texts = {name: str(given[name]).strip() for name in names if name in given}
    texts = {name: text for name, text in texts.items() if text or name in MAY_BE_EMPTY}
    wanted: dict[str, Any] = {name: _whole(name, text) if name in WHOLE else text for name, text in texts.items()}
    if names is LETTERS:
        if "group" not in wanted:
            raise MessageIllegal("group is missing: name the consumer group.")
        if "hour" in wanted:
            wanted["hour"] = fields.moment("hour", wanted["hour"])
        return wanted
    wanted["state"] = STATES.get(kind) or ("DISCARDED" if wanted.get("state") == "DISCARDED" else "PREPARED")
    return wanted


def _whole(name: str, text: str) -> int | None:
    return fields.whole(0, MAX_NUMBER)(name, text.strip()) if text.strip() else None
