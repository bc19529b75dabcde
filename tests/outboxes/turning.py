"""What the database of an outbox may turn into while it is drained, each with a word of the failure that names it."""

from collections.abc import Callable

import psycopg

from tests.outboxes.conftest import Shop


def of_statements(*statements: str) -> Callable[[Shop], None]:
    def make(shop: Shop) -> None:
        with psycopg.connect(shop.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    return make


# The body of a row, which no failure shows.
PRIVATE = "what Ada ordered"
INTO_VIEW = """
ALTER TABLE mqbroker_outbox RENAME TO outbox_of_yesterday;
CREATE FUNCTION is_deleted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END';
CREATE VIEW mqbroker_outbox AS
SELECT 0::smallint AS slot, ({seq})::bigint AS seq, 0::bigint AS bytes, gen_random_uuid() AS id, 'orders' AS topic,
    'x' AS body, NULL::bytea AS body_bytes, NULL::text AS tags, NULL::text[] AS keys, NULL::text AS sharding_key,
    NULL::jsonb AS properties, NULL::integer AS delay_level, NULL::double precision AS delay_seconds,
    NULL::timestamptz AS deliver_at, NULL::text AS traceparent, now() AS created_at
FROM generate_series(1, 1000000) AS n;
CREATE TRIGGER is_deleted INSTEAD OF DELETE ON mqbroker_outbox FOR EACH ROW EXECUTE FUNCTION is_deleted();
"""
# What a source may be, and a word of the failure that says so.
SOURCES: dict[str, tuple[Callable[[Shop], None], str]] = {
    "no table": (of_statements("DROP TABLE mqbroker_outbox CASCADE"), "mqbroker_outbox"),
    "no table of refused rows": (
        of_statements("DROP TABLE mqbroker_outbox_refused", "SELECT mq_send('another', 'x')"),
        "mqbroker_outbox_refused",
    ),
    "no turn": (of_statements("DELETE FROM mqbroker_outbox_state"), "INSERT INTO mqbroker_outbox_state"),
    "a column of another type": (
        of_statements(
            "ALTER TABLE mqbroker_outbox DROP bytes",
            "ALTER TABLE mqbroker_outbox ALTER body_bytes TYPE text",
            "SELECT mq_send('x', 'x')",
        ),
        "body_bytes",
    ),
    "no column": (
        of_statements("SELECT mq_send('x', 'x')", "ALTER TABLE mqbroker_outbox DROP COLUMN traceparent"),
        "traceparent",
    ),
    "rows that a policy hides": (
        of_statements(
            "ALTER TABLE mqbroker_outbox ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE mqbroker_outbox FORCE ROW LEVEL SECURITY",
        ),
        "security",
    ),
    "a rule that keeps rows": (
        of_statements(
            "CREATE RULE kept AS ON DELETE TO mqbroker_outbox DO INSTEAD SELECT o.*, 'x' FROM mqbroker_outbox AS o",
            "SELECT mq_send('x', 'x')",
        ),
        "rule",
    ),
    "a trigger that keeps rows": (
        of_statements(
            "CREATE FUNCTION kept() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
            "CREATE TRIGGER kept BEFORE DELETE ON mqbroker_outbox FOR EACH ROW EXECUTE FUNCTION kept()",
            "SELECT mq_send('x', 'x')",
        ),
        "trigger",
    ),
    "a trigger that drops refused rows": (
        of_statements(
            "CREATE FUNCTION dropped() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
            "CREATE TRIGGER dropped BEFORE INSERT ON mqbroker_outbox_refused FOR EACH ROW EXECUTE FUNCTION dropped()",
            "SELECT mq_send('another', 'x')",
        ),
        "0 of 1 rows",
    ),
    "a trigger that keeps a row that is too large": (
        of_statements(
            "CREATE FUNCTION kept() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
            "CREATE TRIGGER kept BEFORE DELETE ON mqbroker_outbox FOR EACH ROW EXECUTE FUNCTION kept()",
            "SELECT mq_send('x', repeat('x', 5000000))",
        ),
        "0 of 1 rows",
    ),
    "a refused table that wants more": (
        of_statements(
            "ALTER TABLE mqbroker_outbox_refused ADD COLUMN further text NOT NULL",
            f"SELECT mq_send('another', '{PRIVATE}')",
        ),
        "further",
    ),
    "a refused table that takes no long reason": (
        of_statements(
            "ALTER TABLE mqbroker_outbox_refused ADD CONSTRAINT short CHECK (length(reason) < 10)",
            "SELECT mq_send('another', 'x')",
        ),
        "short",
    ),
    "a trigger that raises": (
        of_statements(
            "CREATE FUNCTION raises() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'not this one'; END$$",
            "CREATE TRIGGER raises BEFORE DELETE ON mqbroker_outbox FOR EACH ROW EXECUTE FUNCTION raises()",
            "SELECT mq_send('x', 'x')",
        ),
        "not this one",
    ),
    "a column of the state that is gone": (
        of_statements("ALTER TABLE mqbroker_outbox_state RENAME COLUMN asleep TO awake"),
        "asleep",
    ),
    # Both time out, or are found to give too much.
    "a view of one row, many times": (of_statements(INTO_VIEW.format(seq="1")), ""),
    "a view of endless rows": (of_statements(INTO_VIEW.format(seq="n % 400")), ""),
}
