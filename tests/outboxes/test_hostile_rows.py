"""One row holds up no other: whatever a producer inserts is sent, or set apart with a reason that names the field."""

from tests.broker.polling import eventually
from tests.outboxes.conftest import Shop
from tests.outboxes.hostile import ROWS, SENT

# Of an older table, or of one that was altered: the broker believes none of them.
UNCHECKED = """
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT conname FROM pg_constraint WHERE conrelid = 'mqbroker_outbox'::regclass AND contype = 'c' LOOP
        EXECUTE format('ALTER TABLE mqbroker_outbox DROP CONSTRAINT %I', one.conname);
    END LOOP;
END
$$
"""


def test_each_hostile_row_is_sent_or_set_apart_by_field_and_the_good_rows_between_them_flow(shop: Shop) -> None:
    assert len(ROWS) >= 60
    with shop.session() as session:
        session.execute(UNCHECKED)
        for number, one in enumerate(ROWS):
            columns = {"topic": f"'{shop.topic}'", "sharding_key": f"'key {number % 7}'", **one.columns}
            ids = f"('00000000-0000-4000-8000-' || lpad('{number}', 12, '0'))::uuid"
            names, values = ", ".join(columns), ", ".join(columns.values())
            session.execute(f"INSERT INTO mqbroker_outbox (id, {names}) VALUES ({ids}, {values})".encode())
            session.execute("SELECT mq_send(%s, %s)", [shop.topic, f"good {number}"])
    shop.register(topics=[shop.topic, "bad*", "RMQ*", "%RETRY*"])

    shop.drains()

    found = {message["message_id"]: message.get("body") for message in shop.receives_all(len(ROWS))}
    assert {f"good {number}" for number in range(len(ROWS))} <= set(found.values())
    with shop.session() as session:
        rows = session.execute("SELECT id::text AS id, reason FROM mqbroker_outbox_refused").fetchall()
    reasons = {int(row["id"].rpartition("-")[2]): row["reason"] for row in rows}
    wrong = [
        (one, reasons.get(number, "sent"))
        for number, one in enumerate(ROWS)
        if (one.word == SENT) != (number not in reasons) or one.word not in reasons.get(number, "")
    ]
    assert wrong == []
    eventually(lambda: shop.outbox["refused"] == len(reasons))
    assert shop.outbox["failure"] is None


NIL, MOST = "'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"


def test_a_row_without_an_id_is_set_apart_and_rows_with_one_id_are_one_message(shop: Shop) -> None:
    rows = (("NULL", "none"), (NIL, "nil"), (MOST, "most"), (MOST, "most"), (MOST, "another"))
    with shop.session() as session:
        session.execute("ALTER TABLE mqbroker_outbox ALTER id DROP NOT NULL")
        for id_, body in rows:
            session.execute(
                f"INSERT INTO mqbroker_outbox (id, topic, body) VALUES ({id_}, %s, %s)".encode(), [shop.topic, body]
            )
    shop.register()

    shop.drains()

    assert sorted(message["body"] for message in shop.receives_all(2)) == ["most", "nil"]
    with shop.session() as session:
        found = session.execute("SELECT body, reason FROM mqbroker_outbox_refused").fetchall()
    reasons = {row["body"]: row["reason"] for row in found}
    assert reasons.keys() == {"none", "another"}
    assert "id is null" in reasons["none"]
    assert reasons["another"].startswith("message_id_reused")
