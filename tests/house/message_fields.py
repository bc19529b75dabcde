"""The fields of a message: one list, and every place of the product that has to name each of them."""

import re
from collections.abc import Collection, Iterable

from store.messages import Message
from store.models import CommitLog
from tests.house.sources import APPS, Source, modules, sources

# Only what carries whole messages names this column: records, selects, rows and documents.
CARRIES = re.compile(r"\bbody_form\b")
# The client shows the fields without the broker's columns.
SHOWS = ("client/mqbroker_client/messages.py",)


def fields() -> frozenset[str]:
    """What a producer sends and the commit log keeps: these fields go all the way, from request to answer."""
    return frozenset(Message.__struct_fields__) & {field.attname for field in CommitLog._meta.fields}


def carriers() -> list[Source]:
    """The product's files that carry whole messages."""
    return [source for source in (*modules(*APPS), *sources("*.sql", *APPS)) if CARRIES.search(source.text)]


def places() -> list[Source]:
    """Every file that a new field of a message has to go into."""
    return [*carriers(), *(source for source in modules("client") if str(source) in SHOWS)]


def breaches(found: Iterable[Source], names: Collection[str]) -> list[str]:
    """The fields that a file leaves out."""
    return [
        f"{source} leaves out {name}"
        for source in found
        for name in sorted(names)
        if not re.search(rf"\b{name}\b", source.text)
    ]
