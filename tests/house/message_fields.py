"""The fields of a message: one list, and every place of the product that has to name each of them."""

import re
from collections.abc import Collection, Iterable, Iterator

from sqlglot import exp

from store.messages import Message
from store.models import CommitLog
from tests.house.sources import BROKER, Source, modules, sources
from tests.house.statements import parsed_of

# What carries whole messages names these columns: records, selects, rows and documents.
CARRIES = re.compile(r"(?s)(?=.*\bbody_form\b)(?=.*\btraceparent\b)")
# The heads of messages for pages, with the form of the body whose beginning they show.
PREVIEWS = ("store/rows.py", "store/sql/preview_messages.sql")
# The client shows the fields without the broker's columns.
SHOWS = ("client/mqbroker_client/core/messages.py",)
# What is sent at once has no transaction.
OF_TRANSACTIONS = ("transaction_id", "producer_group_id")
SENDS = "store/sql/send_messages.sql"
# What the broker gives a message itself, however an append comes by it.
GIVEN_BY_BROKER = ("segment_id", "log_offset", "stored_at")


def fields() -> frozenset[str]:
    """What a producer sends and the commit log keeps: these fields go all the way, from request to answer."""
    return frozenset(Message.__struct_fields__) & {field.attname for field in CommitLog._meta.fields}


def carriers() -> list[Source]:
    """The product's files that carry whole messages."""
    every = (*modules(*BROKER), *sources("*.sql", *BROKER))
    return [source for source in every if CARRIES.match(source.text) and str(source) not in PREVIEWS]


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


def columns() -> list[str]:
    """The columns of a message, in their order."""
    return [field.attname for field in CommitLog._meta.concrete_fields]


def appends() -> list[Source]:
    """The statements that write messages."""
    return [source for source in sources("*.sql", *BROKER) if _insert(source) is not None]


def append_breaches(source: Source) -> Iterator[str]:
    """Where an append leaves a column of a message out, or fills it with what has another name."""
    insert = _insert(source)
    assert insert is not None
    wanted = [name for name in columns() if str(source) != SENDS or name not in OF_TRANSACTIONS]
    found = [column.name for column in insert.this.expressions]
    if found != wanted:
        yield f"{source} writes {found}, a message has {wanted}"
        return
    for name, value in zip(found, insert.expression.selects, strict=True):
        if name not in GIVEN_BY_BROKER and name not in _names(value):
            yield f"{source} fills {name} with {value.sql(dialect='postgres')}"
    for rows in insert.root().find_all(exp.Unnest):
        alias = rows.args.get("alias")
        given = [name for array in rows.expressions for name in _names(array)[:1]]
        called = [column.name for column in alias.columns] if alias else []
        if "body" in given and called[: len(given)] != given:
            yield f"{source} takes {given} for {called}"


def _insert(source: Source) -> exp.Insert | None:
    statement = parsed_of(source)
    inserts = statement.find_all(exp.Insert) if statement else ()
    return next((insert for insert in inserts if insert.this.find(exp.Table).name == CommitLog._meta.db_table), None)


def _names(value: exp.Expr) -> list[str]:
    """The columns and the parameters of an expression."""
    return [str(node.name) for node in value.find_all(exp.Column, exp.Placeholder)]
