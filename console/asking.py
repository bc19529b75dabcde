"""What an operator asks for: the kind of an action, its targets or its filter, its parameters and the reason."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, QueryDict

from store.errors import MessageIllegal

MAX_TEXT = 200


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
    "topic.change": Words("Change the topic", "Change"),
    "topic.delete": Words("Delete topics", "Delete", grave=True),
    "producer_group.pause_checks": Words("Pause the checks of producer groups", "Pause checks"),
    "producer_group.continue_checks": Words("Continue the checks of producer groups", "Continue checks"),
    "producer_group.delete": Words("Delete producer groups", "Delete", grave=True),
    "endpoint.enable": Words("Close the circuit of endpoints", "Close the circuit"),
    "endpoint.delete": Words("Delete endpoints", "Delete", grave=True),
    "consumer_group.pause": Words("Pause consumer groups", "Pause"),
    "consumer_group.continue": Words("Continue consumer groups", "Continue"),
    "consumer_group.delete": Words("Delete consumer groups", "Delete", grave=True),
    "subscription.pause": Words("Pause subscriptions", "Pause"),
    "subscription.continue": Words("Continue subscriptions", "Continue"),
    "subscription.delete": Words("Delete subscriptions", "Delete", grave=True),
    "key.revoke": Words("Revoke API keys", "Revoke", grave=True),
}
# Of what is shown once: see actions/shown_once.py.
ONCE: Mapping[str, Words] = {
    "key.make": Words("Make an API key", "Make the key"),
    "endpoint.register": Words("Register an endpoint", "Register"),
    "endpoint.rotate_secret": Words("Give the endpoint a new secret", "New secret", grave=True),
    "endpoint.test": Words("Try the endpoint", "Try"),
    "subscription.rotate_secret": Words("Give the subscription a new secret", "New secret", grave=True),
}
# Fields of a filter, and of the parameters, by kind; a parameter in brackets may be left out.
TRANSACTIONS = ("state", "producer_group", "topic", "older_than_seconds")
FILTERS = {"dead_letter.redrive": ("group",)}
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "dead_letter.redrive": ("group", "[to_topic]"),
    "offsets.reset": ("topic", "to", "[queue_id]"),
    "topic.change": ("queues", "[reserved_hours]", "permission"),
}
WHOLE = {"queue_id", "queues", "reserved_hours", "older_than_seconds"}
UUIDS = ("transaction.", "discarded.", "dead_letter.", "message.")
# One of a few words.
CHOICES = {"permission": ("rw", "r", "w")}
# Kinds whose parameters are filled in and previewed before the reason is.
PREVIEWED = {"offsets.reset", "topic.change"}
STATES = {"discarded.resume": "DISCARDED", "transaction.check": "PREPARED"}


def words(kind: str) -> Words:
    """How a kind is called; one of an earlier version by its name."""
    return WORDS.get(kind) or ONCE.get(kind) or Words(kind, kind)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for. `most`: only the first that match, as a canary. `missing`: parameters not given yet."""

    kind: str
    targets: list[str]
    all: bool
    wanted: dict[str, Any]
    parameters: dict[str, Any]
    missing: list[str]
    most: int | None
    reason: str
    fields: list[tuple[str, str, bool]] = field(default_factory=list)

    @property
    def words(self) -> Words:
        """How the kind is called."""
        return words(self.kind)

    @property
    def has_parameters(self) -> bool:
        """Whether everything but the reason is given."""
        return not self.missing

    @property
    def is_previewed(self) -> bool:
        """Whether its parameters are filled in and looked at first."""
        return self.kind in PREVIEWED

    @property
    def is_complete(self) -> bool:
        """Whether the action can be done."""
        return self.has_parameters and bool(self.reason)


def kind_of(request: HttpRequest) -> str:
    """The kind of action that a request names."""
    return (request.POST if request.method == "POST" else request.GET).get("action", "")


def read(request: HttpRequest) -> Asked:
    """What the address, and the form that was posted, ask for.

    Raises MessageIllegal for a target or a number that is none.
    """
    given = request.POST if request.method == "POST" else request.GET
    kind = kind_of(request)
    takes_all = given.get("all") == "1"
    targets = [] if takes_all else [target_of(kind, text) for text in given.getlist("target")]
    if not takes_all and not targets:
        raise MessageIllegal("Nothing is chosen: choose what to change first.")
    parameters, missing = _parameters(kind, given)
    return Asked(
        kind=kind,
        targets=targets,
        all=takes_all,
        wanted=_wanted(kind, given) if takes_all else {},
        parameters=parameters,
        missing=missing,
        most=_whole("most", given.get("most", "")),
        reason=given.get("reason", "").strip() if request.method == "POST" else "",
        fields=[
            (name.strip("[]"), str(given.get(name.strip("[]"), "")), "[" in name) for name in PARAMETERS.get(kind, ())
        ],
    )


def target_of(kind: str, text: str) -> str:
    """A target as the audit calls it."""
    if not kind.startswith(UUIDS):
        return text[:MAX_TEXT]
    try:
        return str(uuid.UUID(text))
    except ValueError as problem:
        raise MessageIllegal(f"{text[:60]!r} is no id.") from problem


def _parameters(kind: str, given: QueryDict) -> tuple[dict[str, Any], list[str]]:
    parameters: dict[str, Any] = {}
    missing = []
    for name in PARAMETERS.get(kind, ()):
        bare = name.strip("[]")
        value = given.get(bare, "").strip()[:MAX_TEXT]
        if value:
            parameters[bare] = _checked(bare, value)
        elif bare == name:
            missing.append(bare)
    return parameters, missing


def _checked(name: str, value: str) -> str | int | None:
    """A parameter; the registry that it goes to checks the rest.

    Raises MessageIllegal.
    """
    if name in CHOICES and value not in CHOICES[name]:
        raise MessageIllegal(f"{name} {value[:40]!r} is none of {', '.join(CHOICES[name])}.")
    number = _whole(name, value) if name in WHOLE else None
    if name == "reserved_hours" and number == 0:
        raise MessageIllegal("reserved_hours is 0: keep messages for an hour at least.")
    return value if name not in WHOLE else number


def _wanted(kind: str, given: QueryDict) -> dict[str, Any]:
    names = FILTERS.get(kind, TRANSACTIONS)
    texts = {name: given.get(name, "").strip()[:MAX_TEXT] for name in names}
    wanted: dict[str, Any] = {
        name: _whole(name, text) if name in WHOLE else text for name, text in texts.items() if text
    }
    if names is TRANSACTIONS:
        wanted["state"] = STATES.get(kind) or ("DISCARDED" if wanted.get("state") == "DISCARDED" else "PREPARED")
    elif "group" not in wanted:
        raise MessageIllegal("group is missing: name the consumer group.")
    return wanted


def _whole(name: str, text: str) -> int | None:
    if not text.strip():
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise MessageIllegal(f"{name} {text[:40]!r} is no whole number.")
    return int(text)
