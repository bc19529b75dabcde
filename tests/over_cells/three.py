"""Three databases that are the cells of one installation, and refuse what belongs to another one."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests.broker import databases

REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
IDENTIFY = "UPDATE cell_identity SET cell_id = %s, installation = %s"
ADD = "INSERT INTO cell (id, name, url, takes_topics) VALUES (%s, %s, %s, false)"
# Tables of the message path whose rows name a topic.
OF_TOPICS = ("commit_log", "consume_queue", "timer", "receipt")
GONE = "ALTER TABLE commit_log ADD CONSTRAINT topic_has_gone CHECK (topic_id <> ALL ('{{{}}}')) NOT VALID"
GUARD = """
CREATE FUNCTION is_of_this_cell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM topic AS t, cell_identity AS i
        WHERE t.id = NEW.topic_id AND t.cell_id <> i.cell_id AND t.permission <> 'r'
    ) THEN
        RAISE EXCEPTION 'topic % is that of another cell', NEW.topic_id;
    END IF;
    RETURN NEW;
END
$$
"""
TRIGGER = "CREATE TRIGGER is_of_this_cell BEFORE INSERT ON {} FOR EACH ROW EXECUTE FUNCTION is_of_this_cell()"


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
        """Ends all sessions in the database of a cell."""
        self.sql(
            cell,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )

    def stored(self, topic: str) -> list[int]:
        """How many messages of a topic each cell has, visible or not."""
        [[id_]] = self.sql(0, "SELECT id FROM topic WHERE name = %s", topic)
        return [self.sql(cell, "SELECT count(*) FROM commit_log WHERE topic_id = %s", id_)[0][0] for cell in range(3)]

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


@contextmanager
def three(template: str) -> Iterator[Cells]:
    """Three copies of a prepared database, joined to one installation; dropped afterwards."""
    with ExitStack() as stack:
        cells = Cells([stack.enter_context(databases.copied(template)) for _ in range(3)])
        [[installation]] = cells.sql(0, "SELECT installation FROM cell_identity")
        for cell in range(3):
            cells.sql(cell, GUARD)
            for table in OF_TOPICS:
                cells.sql(cell, TRIGGER.format(table))
        for cell in (1, 2):
            cells.sql(cell, IDENTIFY, cell, installation)
            cells.sql(0, ADD, cell, f"c{cell}", cells.urls[cell])
        yield cells
