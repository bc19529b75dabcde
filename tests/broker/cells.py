"""The databases of an installation's cells, which refuse what belongs to another cell.

With MQ_CELLS=3 in the environment the brokers of the tests have three cells, and new topics are placed in turns.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests.broker import databases

# How many cells a broker of the tests has.
CELLS = int(os.environ.get("MQ_CELLS", "1"))
IDENTIFY = "UPDATE cell_identity SET cell_id = %s, installation = %s"
ADD = "INSERT INTO cell (id, name, url, takes_topics) VALUES (%s, %s, %s, false)"
# Tables of the message path whose rows name a topic; and those that may name several.
OF_TOPIC = ("commit_log", "consume_queue", "timer", "receipt", "bundle", "progress", "queue_floor", "waiting", "pace")
OF_TOPICS = ("half_message", "operation")
# What a session of one cell does for a topic of another one is refused: rows, and so whole transactions, and locks. The
# functions that lock are found before PostgreSQL's own, by the search path. The broker's own topics are in each cell.
GUARD = """
CREATE SCHEMA guard;
CREATE FUNCTION guard.require_own(topics integer []) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    stranger integer;
BEGIN
    SELECT t.id INTO stranger FROM public.topic AS t, public.cell_identity AS i
    WHERE t.id = any(topics) AND t.cell_id <> i.cell_id AND t.permission <> 'r';
    IF stranger IS NOT NULL THEN
        RAISE EXCEPTION 'topic % is that of another cell', stranger;
    END IF;
END
$$;
CREATE FUNCTION guard.of_topic() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM guard.require_own(ARRAY[NEW.topic_id]); RETURN NEW; END
$$;
CREATE FUNCTION guard.of_topics() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM guard.require_own(NEW.topic_id || NEW.topic_ids); RETURN NEW; END
$$;
CREATE FUNCTION guard.pg_advisory_xact_lock(topic integer, queue integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN PERFORM guard.require_own(ARRAY[topic]); PERFORM pg_catalog.pg_advisory_xact_lock(topic, queue); END
$$;
CREATE FUNCTION guard.pg_try_advisory_xact_lock(topic integer, queue integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN PERFORM guard.require_own(ARRAY[topic]); RETURN pg_catalog.pg_try_advisory_xact_lock(topic, queue); END
$$;
CREATE FUNCTION guard.topic_of(key bigint) RETURNS integer [] LANGUAGE sql AS $$
    SELECT ARRAY[(key >> 18 & 16777215)::integer]
$$;
CREATE FUNCTION guard.pg_advisory_xact_lock(key bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN PERFORM guard.require_own(guard.topic_of(key)); PERFORM pg_catalog.pg_advisory_xact_lock(key); END
$$;
CREATE FUNCTION guard.pg_try_advisory_xact_lock(key bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN PERFORM guard.require_own(guard.topic_of(key)); RETURN pg_catalog.pg_try_advisory_xact_lock(key); END
$$
"""
FOUND_FIRST = """
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = "$user", public, guard, pg_catalog', current_database());
END
$$
"""
TRIGGER = "CREATE TRIGGER {0} BEFORE INSERT ON {1} FOR EACH ROW EXECUTE FUNCTION guard.{0}()"
# In the log of a broker: a session has worked for two cells.
REFUSED_BY_GUARD = "is that of another cell"
GONE = "ALTER TABLE commit_log ADD CONSTRAINT topic_has_gone CHECK (topic_id <> ALL ('{{{}}}')) NOT VALID"
# Of new topics of users, one after the other: two at once would wait for each other's rows.
TURNS = """
CREATE FUNCTION open_next_cell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('open_next_cell'));
    UPDATE cell SET takes_topics = false WHERE takes_topics;
    UPDATE cell SET takes_topics = true WHERE id = (NEW.cell_id + 1) % (SELECT count(*) FROM cell);
    RETURN NULL;
END
$$
"""
IN_TURNS = """
CREATE TRIGGER open_next_cell AFTER INSERT ON topic FOR EACH ROW WHEN (NEW.permission <> 'r')
EXECUTE FUNCTION open_next_cell()
"""
# A topic that is not there yet will lie in the open cell, and the broker's own in each.
DATABASE_OF_TOPIC = """
SELECT c.url FROM cell AS c
WHERE c.id = coalesce((SELECT t.cell_id FROM topic AS t WHERE t.name = %s), (SELECT id FROM cell WHERE takes_topics), 0)
"""


class Cells:
    """The databases of the cells of one installation; the first one is the control."""

    def __init__(self, urls: list[str]) -> None:
        self.urls = urls

    def sql(self, cell: int, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a statement in one cell."""
        with psycopg.connect(self.urls[cell]) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def open(self, cell: int) -> None:
        """Has new topics lie in a cell from now on."""
        self.sql(0, "UPDATE cell SET takes_topics = false")
        self.sql(0, "UPDATE cell SET takes_topics = true WHERE id = %s", cell)

    def move(self, topic: str, cell: int) -> None:
        """Has a topic lie in another cell from now on, which no process is told."""
        for each in {0, cell}:
            self.sql(each, "UPDATE topic SET cell_id = %s WHERE name = %s", cell, topic)

    def guard(self, cell: int, topic: str) -> None:
        """Has a cell refuse the messages of a topic that has left it."""
        [[id_]] = self.sql(0, "SELECT id FROM topic WHERE name = %s", topic)
        self.sql(cell, "ALTER TABLE commit_log DROP CONSTRAINT IF EXISTS topic_has_gone")
        self.sql(cell, GONE.format(id_))

    def end_sessions(self, cell: int) -> None:
        """Ends all sessions in the database of a cell: none of them is there any more."""
        self.sql(
            cell,
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )

    def stored(self, topic: str) -> list[int]:
        """How many messages of a topic each cell has, visible or not."""
        [[id_]] = self.sql(0, "SELECT id FROM topic WHERE name = %s", topic)
        counted = "SELECT count(*) FROM commit_log WHERE topic_id = %s"
        return [self.sql(cell, counted, id_)[0][0] for cell in range(len(self.urls))]

    @contextmanager
    def away(self, cell: int) -> Iterator[None]:
        """The database of a cell takes no sessions within the block, and has lost those that there were."""
        name = urlsplit(self.urls[cell]).path[1:]
        again = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(sql.Identifier(name))
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
            databases.shut(connection, name)
            try:
                yield
            finally:
                connection.execute(again)


def refuse_strangers(cells: Cells, cell: int) -> None:
    """Has the database of a cell refuse what a session does for topics of another one."""
    cells.sql(cell, GUARD)
    cells.sql(cell, FOUND_FIRST)
    for function, tables in (("of_topic", OF_TOPIC), ("of_topics", OF_TOPICS)):
        for table in tables:
            cells.sql(cell, TRIGGER.format(function, table))


@contextmanager
def joined(template: str, count: int) -> Iterator[Cells]:
    """Copies of a prepared database, joined to one installation; dropped afterwards."""
    with ExitStack() as stack:
        cells = Cells([stack.enter_context(databases.copied(template)) for _ in range(count)])
        [[installation]] = cells.sql(0, "SELECT installation FROM cell_identity")
        for cell in range(count):
            refuse_strangers(cells, cell)
        for cell in range(1, count):
            cells.sql(cell, IDENTIFY, cell, installation)
            cells.sql(0, ADD, cell, f"c{cell}", cells.urls[cell])
        yield cells


@contextmanager
def installation(template: str) -> Iterator[str]:
    """The URL of a copy of a prepared database; with MQ_CELLS that of the control of so many cells, in turns open."""
    if CELLS == 1:
        with databases.copied(template) as url:
            yield url
        return
    with joined(template, CELLS) as cells:
        cells.sql(0, TURNS)
        cells.sql(0, IN_TURNS)
        # A test that is run alone, too, has its topic beside the control.
        cells.open(1)
        yield cells.urls[0]


@contextmanager
def in_one(control_url: str, control: bool) -> Iterator[None]:
    """New topics lie beside each other within the block, in the control's database or in that of the open cell."""
    with psycopg.connect(control_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE topic DISABLE TRIGGER open_next_cell")
        if control:
            with connection.transaction():
                connection.execute("UPDATE cell SET takes_topics = false WHERE takes_topics")
                connection.execute("UPDATE cell SET takes_topics = true WHERE id = 0")
        yield
        connection.execute("ALTER TABLE topic ENABLE TRIGGER open_next_cell")


def databases_of(control_url: str) -> list[str]:
    """The URLs of the databases of all cells of a control, its own first."""
    with psycopg.connect(control_url) as connection:
        return [row[0] or control_url for row in connection.execute("SELECT url FROM cell ORDER BY id").fetchall()]


def database_of(control_url: str, topic: str) -> str:
    """The URL of the database where a topic lies, or will lie."""
    with psycopg.connect(control_url) as connection:
        found = connection.execute(DATABASE_OF_TOPIC.encode(), [topic]).fetchone()
    return control_url if found is None or not found[0] else str(found[0])
