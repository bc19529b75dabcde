"""What an operator asks for: the kind of an action, its targets or its filter, its parameters and the reason."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, QueryDict

from access import keys
from console import forms
from console.forms import Parameters
from delivery import registry as consumer_groups
from delivery.push import registry as subscriptions
from store import fields
from store import registry as topics
from store.errors import MessageIllegal
from store.fields import MAX_TEXT, Choice, Field, Text, Time, Whole
from transactions import endpoints
from transactions import registry as producer_groups


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
PARAMETERS: Mapping[str, tuple[Field, ...]] = {
    "dead_letter.redrive": (
        Text("group", "Consumer group", needed=True),
        Text("to_topic", "To another topic", unset="again to the group"),
    ),
    "offsets.reset": (
        Text("topic", "Topic", needed=True),
        Text("to", "To", needed=True, help="earliest, latest, an offset or a time"),
        Whole("queue_id", "Queue", unset="all", least=0, most=topics.MAX_QUEUES - 1),
    ),
    "topic.make": topics.FIELDS,
    "topic.change": topics.FIELDS,
    "producer_group.make": producer_groups.FIELDS,
    "producer_group.change": producer_groups.FIELDS,
    "endpoint.change": endpoints.PACE,
    "endpoint.move": fields.named(endpoints.FIELDS, "url"),
    "consumer_group.make": consumer_groups.FIELDS,
    "consumer_group.change": consumer_groups.FIELDS,
    "subscription.change": subscriptions.PACE,
    "subscription.move": subscriptions.AIM,
    "key.change": keys.FIELDS,
    "key.make": keys.FIELDS,
    "endpoint.register": endpoints.FIELDS,
    "subscription.make": (*subscriptions.AIM, *subscriptions.PACE),
}
MAX_NUMBER = 999_999_999
# The filters of what an action does to all that match, by kind.
TRANSACTIONS = (
    Choice("state", "State", component="", choices=("PREPARED", "DISCARDED")),
    Text("producer_group", "Producer group"),
    Text("topic", "Topic"),
    Whole("older_than_seconds", "Older than", least=0, most=MAX_NUMBER),
)
LETTERS = (
    Text("group", "Consumer group", needed=True),
    Text("topic", "Topic"),
    Text("tags", "Tags", may_be_empty=True),
    Whole("attempts", "Attempts", least=0, most=MAX_NUMBER),
    Time("hour", "Hour"),
    Text("last_reason", "Reason", may_be_empty=True),
)
FILTERS = {"dead_letter.redrive": LETTERS}
MOST = (Whole("most", "Most", least=0, most=MAX_NUMBER),)
# What narrows the list of dead letters, and what an action calls it, whose `reason` is the operator's.
LETTER_FIELDS = {"topic": "topic", "tags": "tags", "attempts": "attempts", "hour": "hour", "reason": "last_reason"}
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
    """What a request asks for. `most`: only the first that match, as a canary. `sets`: its parameters are columns."""

    kind: str
    targets: list[str]
    all: bool
    wanted: dict[str, Any]
    most: int | None
    reason: str
    form: Parameters
    sets: bool

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
    def changes(self) -> list[tuple[str, str, str]] | None:
        """What is set, with the texts before and after; None where the form is not filled in, or sets no columns."""
        return self.form.changes if self.sets and self.form.is_valid() else None

    @property
    def has_parameters(self) -> bool:
        """Whether everything but the reason is given, and something would change."""
        would_change = self.makes or not self.sets or bool(self.form.values)
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
    """The texts of a form or an address, the last of several of one name."""
    return {name: str(given[name]) for name in given}


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

    Raises MessageIllegal for a filter that holds none, and for what is wrong in a form that is not shown again.
    """
    given, kind = given_by(request), kind_of(request)
    takes_all, posted = given.get("all") == "1", request.method == "POST"
    declared, texts = PARAMETERS.get(kind, ()), texts_of(given)
    if kind not in PREVIEWED:
        forms.read(declared, texts)
    return Asked(
        kind=kind,
        targets=targets,
        all=takes_all,
        wanted=_wanted(kind, texts) if takes_all else {},
        most=forms.read(MOST, texts).get("most"),
        reason=texts.get("reason", "").strip() if posted else "",
        form=Parameters(declared, texts, standing, posted=posted),
        sets=standing is not None,
    )


def target_of(kind: str, text: str) -> str:
    """A target as the audit calls it."""
    if not kind.startswith(UUIDS):
        return text.strip()[:MAX_TEXT]
    try:
        return str(uuid.UUID(text))
    except ValueError as problem:
        raise MessageIllegal(f"{text[:60]!r} is no id.") from problem


def _wanted(kind: str, texts: Mapping[str, str]) -> dict[str, Any]:
    wanted = forms.read(FILTERS.get(kind, TRANSACTIONS), texts)
    if kind not in FILTERS:
        wanted["state"] = STATES.get(kind) or wanted.get("state", "PREPARED")
    return wanted
