"""Sources that no outbox can be drained of: servers that are none, and what is wrong with a table."""

import re
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from tests.outboxes.roles import PAGE, Roles

PASSWORD = "s3cr3t-of-this-test"
SEND = "mq_send(text, text, text, text[], text, jsonb, double precision, uuid)"
# What is done to the outbox of a schema, and what the refusal names: the obstacle and what mends it. {role} drains it.
BROKEN = {
    "no table": ("DROP TABLE mqbroker_outbox CASCADE", 'relation "mqbroker_outbox" does not exist', "docs/sql.md"),
    "no refused table": (
        "DROP TABLE mqbroker_outbox_refused",
        'relation "mqbroker_outbox_refused" does not',
        "docs/sql.md",
    ),
    "no state": ("DROP TABLE mqbroker_outbox_state", 'relation "mqbroker_outbox_state" does not', "docs/sql.md"),
    "no row of the state": ("DELETE FROM mqbroker_outbox_state", "has no row", "INSERT INTO mqbroker_outbox_state"),
    "a view": (
        "ALTER TABLE mqbroker_outbox RENAME TO other; CREATE VIEW mqbroker_outbox AS SELECT * FROM other",
        "is a view",
        "drop it",
    ),
    "a plain table": (
        "ALTER TABLE mqbroker_outbox RENAME TO other; CREATE TABLE mqbroker_outbox (LIKE other INCLUDING ALL)",
        "is a table without partitions",
        "drop it",
    ),
    "an unlogged partition": ("ALTER TABLE mqbroker_outbox_1 SET UNLOGGED", "an unlogged table", "docs/sql.md"),
    "a partition that is gone": (
        "ALTER TABLE mqbroker_outbox DETACH PARTITION mqbroker_outbox_1",
        "mqbroker_outbox_1 is no partition",
        "ATTACH PARTITION",
    ),
    "no column": ("ALTER TABLE mqbroker_outbox DROP COLUMN traceparent", "no column traceparent text", "ADD COLUMN"),
    "a column of another type": (
        "ALTER TABLE mqbroker_outbox ALTER COLUMN properties TYPE text",
        "no column properties jsonb",
        "ALTER COLUMN",
    ),
    "a column of a domain": (
        "CREATE DOMAIN words AS text; ALTER TABLE mqbroker_outbox ALTER COLUMN tags TYPE words",
        "no column tags text",
        "ALTER COLUMN",
    ),
    "a column that is generated": (
        "ALTER TABLE mqbroker_outbox DROP COLUMN keys,"
        " ADD COLUMN keys varchar[] GENERATED ALWAYS AS (ARRAY[topic]) STORED",
        "no column keys text[]",
        "ALTER COLUMN",
    ),
    "a partition that is partitioned": (
        "DROP TABLE mqbroker_outbox_1;"
        " CREATE TABLE mqbroker_outbox_1 PARTITION OF mqbroker_outbox FOR VALUES IN (1) PARTITION BY LIST (slot)",
        "mqbroker_outbox_1 is a partitioned table",
        "drop it",
    ),
    "a view of the state": (
        "ALTER TABLE mqbroker_outbox_state RENAME TO other; CREATE VIEW mqbroker_outbox_state AS SELECT * FROM other",
        "mqbroker_outbox_state is a view",
        "drop it",
    ),
    "two rows of the state": (
        "ALTER TABLE mqbroker_outbox_state DROP CONSTRAINT mqbroker_outbox_state_single_check;"
        " INSERT INTO mqbroker_outbox_state VALUES (false)",
        "has 2 rows",
        "DELETE FROM mqbroker_outbox_state WHERE NOT single",
    ),
    "a column of its own": (
        "ALTER TABLE mqbroker_outbox_refused ADD COLUMN tenant text NOT NULL",
        "mqbroker_outbox_refused has a column tenant that needs a value",
        "ALTER TABLE {schema}.mqbroker_outbox_refused ALTER COLUMN tenant DROP NOT NULL",
    ),
    "no right to see": ("REVOKE SELECT ON mqbroker_outbox FROM {role}", "may not SELECT", "GRANT SELECT, DELETE ON"),
    "no right to delete": ("REVOKE DELETE ON mqbroker_outbox FROM {role}", "may not DELETE", "GRANT SELECT, DELETE ON"),
    "no right to set apart": ("REVOKE ALL ON mqbroker_outbox_refused FROM {role}", "may not INSERT", "GRANT INSERT ON"),
    "no right to lock": (
        "REVOKE UPDATE ON mqbroker_outbox_state FROM {role}",
        "may not UPDATE",
        "GRANT SELECT, UPDATE",
    ),
    "no right to the schema": (
        "REVOKE USAGE ON SCHEMA {schema} FROM {role}",
        "may not use the schema",
        "GRANT USAGE ON",
    ),
    "no right to clear": (
        "REVOKE EXECUTE ON FUNCTION mqbroker_outbox_clear(smallint) FROM PUBLIC",
        "may not execute",
        "GRANT EXECUTE ON FUNCTION",
    ),
    "row level security": (
        "ALTER TABLE mqbroker_outbox ENABLE ROW LEVEL SECURITY",
        "row level security hides rows",
        "DISABLE ROW LEVEL SECURITY",
    ),
    "no trigger": (
        "DROP TRIGGER mqbroker_outbox_number ON mqbroker_outbox",
        "no trigger mqbroker_outbox_number",
        "ENABLE",
    ),
    "a trigger that is disabled": (
        "ALTER TABLE mqbroker_outbox DISABLE TRIGGER mqbroker_outbox_number",
        "no trigger mqbroker_outbox_number",
        "ENABLE TRIGGER",
    ),
    "a trigger of another function": (
        "CREATE SCHEMA {schema}_other; ALTER FUNCTION mqbroker_outbox_number() SET SCHEMA {schema}_other",
        "no trigger mqbroker_outbox_number of this schema",
        "docs/sql.md",
    ),
    "a rule": (
        "CREATE RULE nothing AS ON INSERT TO mqbroker_outbox_refused DO INSTEAD NOTHING",
        "the rule nothing stands before mqbroker_outbox_refused",
        "DROP RULE nothing",
    ),
    "no function": (
        "DROP FUNCTION mqbroker_outbox_clear(smallint)",
        "mqbroker_outbox_clear(smallint) does not exist",
        "make it",
    ),
    "a function that writes elsewhere": (
        f"ALTER FUNCTION {SEND} SET search_path = public",
        "writes to the table of the schema public",
        "SET search_path = {schema}",
    ),
    "a function that writes anywhere": (
        f"ALTER FUNCTION {SEND} RESET search_path",
        "its caller's search_path leads to",
        "SET search_path = {schema}",
    ),
}


def make(roles: Roles, url: str, table: str, schema: str, broken: str) -> None:
    """The outbox of the page in a schema, with the rights of the page, and then what is wrong with it."""
    grants = re.findall(r"^(GRANT .*) TO mqbroker;$", PAGE.read_text(), re.MULTILINE)
    with psycopg.connect(url, user="postgres", autocommit=True) as session:
        session.execute(sql.SQL("CREATE SCHEMA {0}; SET search_path TO {0}").format(sql.Identifier(schema)))
        session.execute(table.encode())
        for grant in [*grants, f"GRANT USAGE ON SCHEMA {schema}"]:
            session.execute(f"{grant} TO {roles.drain}".encode())
        session.execute(broken.format(role=roles.drain, schema=schema).encode())


def _error(text: str) -> bytes:
    """An ErrorResponse of PostgreSQL's protocol."""
    fields = f"SFATAL\0VFATAL\0C28P01\0M{text}\0\0".encode()
    return b"E" + struct.pack("!I", len(fields) + 4) + fields


def _ready() -> bytes:
    """What a server says to begin a session."""
    parts = [(b"R", bytes(4)), (b"S", b"server_version\x0017.0\0"), (b"S", b"server_encoding\0UTF8\0"), (b"Z", b"I")]
    return b"".join(kind + struct.pack("!I", len(payload) + 4) + payload for kind, payload in parts)


# What a server answers, whatever it is sent; None: nothing, and it keeps the connection.
SERVERS: dict[str, bytes | None] = {
    "a server of HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a server of noise": bytes(range(1, 256)) * 8,
    "a server that ends the connection": b"",
    "a server that says nothing": None,
    "a server that says nothing after its greeting": _ready(),
    "a server that sends the password back": _error(f"no: {PASSWORD}"),
}


@contextmanager
def server(answer: bytes | None) -> Iterator[int]:
    """The port of a server that gives this answer."""
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            first = self.request.recv(8)
            if answer is None:
                over.wait()
            elif answer.startswith((b"E", b"R")) and first[4:] == b"\x04\xd2\x16\x2f":
                # No TLS, and then the start itself.
                self.request.sendall(b"N")
                self.request.recv(1024)
            if answer:
                self.request.sendall(answer)
                if answer.startswith(b"R"):
                    over.wait()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made.server_address[1]
        over.set()
        made.shutdown()
