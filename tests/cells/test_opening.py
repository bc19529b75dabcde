"""New topics go to the open cell, however they are made; those that there are stay."""

import psycopg

from tests.broker.polling import eventually
from tests.cells.installation import Installation
from tests.control.operators import Operator


def stored(url: str) -> int:
    """How many messages a database has."""
    with psycopg.connect(url) as session:
        [[count]] = session.execute("SELECT count(*) FROM commit_log").fetchall()
    return int(count)


def sessions_of_broker(url: str) -> set[tuple[int, str]]:
    """The sessions in a database besides this one: their processes, and for what they are."""
    others = """
        SELECT pid, application_name FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
    """
    with psycopg.connect(url) as session:
        return set(session.execute(others).fetchall())


def receives(operator: Operator, topic: str) -> list[str]:
    """The bodies that a group of its own receives of a topic."""
    answer = operator.post("/v1/consumer-groups/stock/receive", {"topic": topic, "max_messages": 10})
    assert answer.status == 200, answer
    return [entry["message"]["body"] for entry in answer.document["messages"]]


def test_new_topics_lie_in_the_open_cell_and_the_others_where_they_were(
    installation: Installation, operator: Operator
) -> None:
    operator.put("/v1/topics/old")
    opened = installation.run("open", "c1")
    operator.put("/v1/topics/made")

    for topic in ("old", "made", "first-used"):
        assert operator.post("/v1/messages", {"topic": topic, "body": topic}).status == 201, topic

    assert opened.stdout == "New topics go to c1.\n"
    assert [installation.state(name) for name in ("c0", "c1")] == ["ready", "takes new topics"]
    assert [stored(url) for url in (installation.broker.database_url, installation.cells["c1"])] == [1, 2]
    assert [receives(operator, topic) for topic in ("old", "made", "first-used")] == [["old"], ["made"], ["first-used"]]
    assert installation.differences("c1") == {}
    assert installation.refusal("remove", "c1") == (
        "The cell c1 still has 2 topics: delete the topics and their messages first."
    )

    installation.run("open", "c0")
    assert operator.post("/v1/messages", {"topic": "newest", "body": "newest"}).status == 201
    assert [stored(url) for url in (installation.broker.database_url, installation.cells["c1"])] == [2, 2]


def test_another_url_of_a_cell_is_used_by_processes_that_run(installation: Installation, operator: Operator) -> None:
    url = installation.cells["c1"]
    before = sessions_of_broker(url)

    installation.add("c1", f"{url}?connect_timeout=9")
    answer = operator.post("/v1/messages", {"topic": "made", "body": "again"})

    assert before
    assert answer.status == 201
    eventually(lambda: not before & sessions_of_broker(url))
    assert receives(operator, "made") == ["again"]


def test_a_cell_without_topics_is_removed_and_the_broker_goes_on(
    installation: Installation, operator: Operator
) -> None:
    for topic in ("made", "first-used"):
        assert operator.delete(f"/v1/topics/{topic}").status == 204, topic

    removed = installation.run("remove", "c1")

    assert removed.stdout == "c1 is no cell any more. Its database is as it was, and running processes have left it.\n"
    eventually(lambda: not sessions_of_broker(installation.cells["c1"]))
    assert operator.put("/v1/topics/latest").status == 201
    assert operator.post("/v1/messages", {"topic": "latest", "body": "latest"}).status == 201
    assert receives(operator, "latest") == ["latest"]
    assert receives(operator, "newest") == ["newest"]


def test_a_cell_that_is_not_there_is_not_opened(installation: Installation) -> None:
    assert installation.refusal("open", "c7") == "There is no cell c7: `cells list` shows all cells."
