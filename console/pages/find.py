"""The search box: leads to the page of the typed id or name, lists matches, or lists the words that can be typed."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from access import namespaces as namespace_registry
from console import search
from console.pages import frame
from console.search import Typed
from delivery import registry as consumer_registry
from store import registry as topic_registry
from store.db import sync
from store.naming import namespaces
from store.reading import lookup, previews
from store.reading.search import MAX_OF_KEY
from store.stats import now
from transactions import registry as producer_registry
from transactions.reads import states

MAX_TYPED = 400
MESSAGES = 50
# The most names of each kind that a search shows.
NAMES = 10
SUGGESTED = 8
PAGE_OF_STATE = {"": "pending", "pending": "pending", "discarded": "discarded"}


@dataclass(frozen=True)
class Named:
    """An object with a name, and the URL of its page."""

    kind: str
    name: str
    page: str


@require_GET
def find(request: HttpRequest) -> HttpResponse:
    """The answer to a typed text: an id, a key, or words."""
    typed = search.parse(request.GET.get("q", "")[:MAX_TYPED])
    if typed.problems or not typed.text:
        return answer(request, typed)
    if typed.id is not None:
        return by_id(request, typed)
    if typed.key or typed.bare:
        return by_key(request, typed)
    if typed.lists:
        return HttpResponseRedirect(list_of(typed))
    return by_name(request, typed)


def answer(request: HttpRequest, typed: Typed, **found: object) -> HttpResponse:
    """The page of the search, with its matches."""
    return frame.show(
        request, "console/find.html", "Search", now=now(), typed=typed, understood=search.WORDS.items(), **found
    )


def by_id(request: HttpRequest, typed: Typed) -> HttpResponse:
    """The page of the transaction or message with this id; a choice when both exist."""
    assert typed.id is not None
    pages = []
    if sync.call(states.find, typed.id) is not None:
        pages.append(Named("Transaction", str(typed.id), reverse("admin:transaction", args=(typed.id,))))
    if sync.call(lookup.find_copies, typed.id):
        pages.append(Named("Message", str(typed.id), reverse("admin:message", args=(typed.id,))))
    if len(pages) == 1:
        return HttpResponseRedirect(pages[0].page)
    return answer(request, typed, names=pages, looked=True)


def by_key(request: HttpRequest, typed: Typed) -> HttpResponse:
    """The messages with this key, in one topic or in all, and the topics and groups with this name."""
    topic = topic_registry.named(typed.whole(typed.topic)) if typed.topic else None
    if typed.topic and topic is None:
        typed.problems.append(f"There is no topic “{typed.topic}”.")
        return answer(request, typed)
    # The rows may belong to other namespaces; such rows are removed below.
    most = MAX_OF_KEY if typed.namespace else MESSAGES
    found = previews.of_key(typed.key or typed.bare, topic.id if topic else None, most)
    heads = [head for head in found.heads if typed.namespace in ("", namespaces.part_of(head.topic or ""))][:MESSAGES]
    ids = {head.transaction_id for head in heads if head.transaction_id is not None}
    return answer(
        request,
        typed,
        heads=heads,
        too_many=found.too_many,
        limit=MESSAGES,
        states=states.of_each(ids),
        names=named(typed.bare, namespace=typed.namespace or None) if typed.bare else [],
        looked=True,
    )


def list_of(typed: Typed) -> str:
    """The address of the list of transactions that match the typed words, such as `topic:orders older:10m`."""
    page = PAGE_OF_STATE.get(typed.state, "ended")
    asked = {
        "state": typed.state if page == "ended" else "",
        "producer_group": typed.whole(typed.group),
        "topic": typed.whole(typed.topic),
        "namespace": typed.namespace,
        "older_than_seconds": typed.older_than_seconds,
    }
    return f"{reverse(f'admin:{page}')}?{urlencode({name: value for name, value in asked.items() if value})}"


def by_name(request: HttpRequest, typed: Typed) -> HttpResponse:
    """The page of the only topic or group with exactly this name; else a list of all names that contain the text."""
    text, kinds = (typed.topic, ("Topic",)) if typed.topic else (typed.group, GROUPS if typed.group else tuple(KINDS))
    found = named(text, kinds, typed.namespace or None)
    exact = [one for one in found if one.name == typed.whole(text)]
    if len(exact) == 1:
        return HttpResponseRedirect(exact[0].page)
    return answer(request, typed, names=exact or found, looked=True)


GROUPS = ("Producer group", "Consumer group")
KINDS: dict[str, tuple[Any, str]] = {
    "Topic": (topic_registry, "topic"),
    "Producer group": (producer_registry, "producer_group"),
    "Consumer group": (consumer_registry, "consumer_group"),
}


def named(text: str, kinds: tuple[str, ...] = tuple(KINDS), namespace: str | None = None) -> list[Named]:
    """The objects whose names contain a text: at most NAMES of each kind, an exact match first."""
    found = []
    whole = namespaces.wrapped(namespace, text) if namespace else text
    for kind in kinds:
        registry, page = KINDS[kind]
        names = dict.fromkeys(row.name for row in registry.page("", NAMES, text, namespace))
        if registry.named(whole) is not None:
            names = {whole: None, **names}
        found += [Named(kind, name, reverse(f"admin:{page}", args=(name,))) for name in names]
    return found


@require_GET
def suggest(request: HttpRequest) -> HttpResponse:
    """Completions of the last word that is being typed, as options of the search box."""
    typed = request.GET.get("q", "")[:MAX_TYPED]
    before, _, last = typed.rpartition(" ")
    options = [f"{before} {option}".strip() for option in completions(last)]
    return TemplateResponse(request, "console/suggestions.html", {"options": options})


def completions(word: str) -> list[str]:
    """The completions of a word, at most SUGGESTED."""
    name, colon, value = word.partition(":")
    if not colon:
        return [f"{one}:" for one in search.WORDS if one.startswith(word.lower())]
    if name == "state":
        return [f"state:{state}" for state in search.SHOWN_STATES if state.startswith(value.lower())]
    if name == "topic":
        return [f"topic:{row.name}" for row in topic_registry.page("", SUGGESTED, value)]
    if name == "group":
        names = [group.name for group in producer_registry.page("", SUGGESTED, value)]
        names += [group.name for group in consumer_registry.page("", SUGGESTED, value)]
        return [f"group:{one}" for one in dict.fromkeys(names)][:SUGGESTED]
    if name == "namespace":
        return [f"namespace:{row.name}" for row in namespace_registry.page("", SUGGESTED, value)]
    if name == "older":
        return [f"older:{age}" for age in search.AGES if age.startswith(value)]
    return []
