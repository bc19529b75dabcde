"""The barrier and the inbox work however a database is set: what they read has a form that they set themselves."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from mqbroker_client import Delivery, Message
from mqbroker_client.barrier.inbox import Inbox
from mqbroker_client.barrier.sessions import Connection
from mqbroker_client.barrier.table import Table
from mqbroker_client.core.states import LocalTransactionState

from tests.barrier import places
from tests.barrier.places import half
from tests.barrier.test_autocommit import received

SETTINGS = {
    "DateStyle": "'German, DMY'",
    "IntervalStyle": "sql_standard",
    "TimeZone": "'Asia/Kathmandu'",
    "bytea_output": "escape",
    "extra_float_digits": "'-15'",
    "client_encoding": "LATIN1",
    "default_transaction_isolation": "serializable",
    "jit_above_cost": "0",
}


@pytest.mark.parametrize("isolation", ["read committed", "serializable"])
def test_a_database_with_other_settings_decides_keeps_and_handles_once(isolation: str) -> None:
    with places.postgresql(isolation) as place:
        database = urlsplit(place.url).path[1:]
        place.run(*(f"ALTER DATABASE {database} SET {name} TO {value}" for name, value in SETTINGS.items()))
        barrier, committed, missing = place.barrier, half(), half()
        barrier.create_table()
        with closing(place.connect()) as connection:
            barrier.insert_commit(connection, committed.transaction_id, [Message("orders", "naïve".encode())])
            connection.commit()

        states = [outcome.state for outcome in barrier.answer([committed, missing])]
        kept = barrier.in_own_session(lambda table: list(Table.all_kept(table)))

        assert states == [LocalTransactionState.COMMIT, LocalTransactionState.ROLLBACK]
        assert [(one.transaction_id, one.messages) for one in kept] == [(committed.transaction_id, 1)]
        # By the clock of the server, which runs on this machine.
        assert abs(kept[0].committed_at - datetime.now(UTC)) < timedelta(hours=1)
        assert barrier.purge() == 0

        inbox, handled = Inbox("payments", place.connect), []
        inbox.create_table()

        @inbox.exactly_once
        def handle(given: Delivery, connection: Connection) -> None:
            handled.append(given)

        repeated = received()
        for _ in range(2):
            handle(repeated)
        assert len(handled) == 1
        assert inbox.purge() == 0
