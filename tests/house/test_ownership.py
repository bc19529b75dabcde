"""Each table whose rows belong to topics has one way by which a cell writes nothing for topics that have left it.

A CHECK of the log refuses messages. What is undecided or delivered is purged within
the fence. What waits for its time is dropped where it would be released. The rest follows a message, or tells of one.
Read from the parsed statements, so that a new statement, or one that loses its way, is found.
"""

import ast
from collections.abc import Callable

import pytest
from django.apps import apps
from sqlglot import exp

from tests.house.sources import BROKER, ROOT, Source, labels, modules, sources
from tests.house.statements import parsed_of, uses, written

STATEMENTS = sources("*.sql", *BROKER)
PURGING = "console/cells/purging.py"
# The constraint stands on the parent, and holds for each partition.
REFUSED_BY_THE_GUARD = {"commit_log"}
PURGED_WITHIN_THE_FENCE = {"bundle", "half_message", "pace", "receipt", "waiting"}
DROPPED_WHERE_DUE = {"timer"}
# Entries of a message that this database has: with its append, of a half that was purged, of a release that drops.
FOLLOWS_A_MESSAGE = {"consume_queue", "recall"}
# Numbers and positions: no message comes of them.
TELLS = {"lateness", "operation", "progress", "queue_floor", "retry_queue", "transaction_total"}
WAYS = (REFUSED_BY_THE_GUARD, PURGED_WITHIN_THE_FENCE, DROPPED_WHERE_DUE, FOLLOWS_A_MESSAGE, TELLS)
# What writes entries: the first with its append, the others in a batch that has appended, or that ends halves.
ENTERS = {
    "send_messages": {"commit_log", "consume_queue"},
    "enter_numbered": {"consume_queue"},
    "enqueue_entries": {"consume_queue"},
    "enqueue_first_entries": {"consume_queue"},
}


def parsed(source: Source) -> exp.Expr:
    found = parsed_of(source)
    return exp.Select() if found is None else found


def inserted(statement: exp.Expr) -> set[str]:
    return {insert.this.find(exp.Table).name for insert in statement.find_all(exp.Insert)}


def takes_due(statement: exp.Expr) -> bool:
    """Whether it takes rows away that wait for their time, and hands them over."""
    return any(
        delete.this.find(exp.Table).name in DROPPED_WHERE_DUE and delete.args.get("returning")
        for delete in statement.find_all(exp.Delete)
    )


def asks_for_departed(module: Source, function: str) -> bool:
    """Whether a function of a module asks what has left the cell."""
    [found] = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function
    ]
    return any(isinstance(node, ast.Attribute) and node.attr == "departed" for node in ast.walk(found))


def purges(statement: exp.Expr, table: str) -> bool:
    """Whether it deletes the rows of a table by a list of topics."""
    return any(
        delete.this.find(exp.Table).name == table
        and any(place.name == "topics" for place in delete.args["where"].find_all(exp.Placeholder))
        and any("topic_id" in column.name for column in delete.args["where"].find_all(exp.Column))
        for delete in statement.find_all(exp.Delete)
    )


def test_each_table_with_a_topic_has_one_way() -> None:
    columns = {"topic_id", "source_topic_id", "origin_topic_id", "queue_id"}
    with_topic = {
        model._meta.db_table
        for model in apps.get_models()
        if model._meta.app_label in labels().values()
        and columns & {field.column for field in model._meta.concrete_fields}
    }

    assert sorted(table for way in WAYS for table in way) == sorted(with_topic)


def test_messages_are_stored_under_the_guard() -> None:
    """No statement goes past the parent, whose constraint it is, to a partition."""
    logs = {table for source in STATEMENTS for table in written(parsed(source)) if table.startswith("commit_log")}

    assert logs == REFUSED_BY_THE_GUARD
    guard = (ROOT / "store/db/fences.py").read_text()
    assert "ALTER TABLE commit_log ADD CONSTRAINT {} CHECK (topic_id <> ALL ({}::integer[]))" in guard


def test_entries_are_written_with_their_message_or_behind_it() -> None:
    entering = {
        source.path.stem: tables for source in STATEMENTS if "consume_queue" in (tables := inserted(parsed(source)))
    }

    assert entering == ENTERS


@pytest.mark.parametrize("table", sorted(PURGED_WITHIN_THE_FENCE))
def test_what_is_undecided_or_delivered_is_purged_within_the_fence(table: str) -> None:
    [name] = [source.path.stem for source in STATEMENTS if purges(parsed(source), table)]

    module = Source(ROOT / PURGING, (ROOT / PURGING).read_text())
    [fence] = [node for node in module.tree.body if isinstance(node, ast.FunctionDef) and node.name == "of_fence"]
    assert name.upper() in {node.id for node in ast.walk(fence) if isinstance(node, ast.Name)}


def test_what_waits_for_its_time_is_dropped_where_it_would_be_released() -> None:
    taking = {source.path for source in STATEMENTS if takes_due(parsed(source))}
    taking |= {source.path for source in STATEMENTS if source.path.stem == "take_due_of_level"}
    users = {path: module for module in modules(*BROKER) for path in uses(module) if path in taking}

    # A recall takes one timer, by its handle, which names the cell; a purge deletes without handing over.
    assert {path.stem: str(module) for path, module in users.items()} == {
        "take_timers": "scheduling/release.py",
        "take_due_of_level": "scheduling/release.py",
        "delete_timer": "scheduling/recalls.py",
        "purge_timers": "scheduling/purges.py",
    }
    release = users[next(path for path in users if path.stem == "take_timers")]
    assert asks_for_departed(release, "_timers")
    assert asks_for_departed(release, "_level")


@pytest.mark.parametrize(
    ("holds", "name", "old", "new"),
    [
        (
            lambda statement: purges(statement, "half_message"),
            "purge_halves",
            "&& %(topics)s::integer []",
            "IS NOT NULL",
        ),
        (lambda statement: purges(statement, "receipt"), "purge_receipts", "origin_topic_id", "queue_id"),
        (lambda statement: purges(statement, "bundle"), "purge_receipts", "bundle", "receipt"),
        (lambda statement: purges(statement, "waiting"), "purge_receipts", "WHERE topic_id", "WHERE queue_id"),
        (lambda statement: written(statement) == {"commit_log"}, "append_messages", "commit_log", "commit_log_1"),
        (
            lambda statement: inserted(statement) == ENTERS["send_messages"],
            "send_messages",
            "INTO commit_log",
            "INTO x",
        ),
    ],
)
def test_a_statement_that_loses_its_way_is_found(
    holds: Callable[[exp.Expr], bool], name: str, old: str, new: str
) -> None:
    [source] = [source for source in STATEMENTS if source.path.stem == name]
    assert old in source.text

    assert holds(parsed(source))
    assert not holds(parsed(Source(source.path, source.text.replace(old, new))))
