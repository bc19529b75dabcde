"""A COMMIT that succeeds and whose reply is lost: its end is sent at once, by whatever framework it was committed."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import sqlalchemy as sa
from mqbroker_client import Producer
from mqbroker_client.contrib.sqlalchemy import Outbox
from sqlalchemy.orm import sessionmaker

from tests.barrier import places
from tests.barrier.conftest import make_barrier
from tests.barrier.local import engine_url
from tests.barrier.places import Place
from tests.barrier.test_django import told_by
from tests.broker.database_proxy import DatabaseProxy
from tests.broker.running import RunningBroker
from tests.broker.tellings import told

Commit = Callable[[Place, RunningBroker], None]


def by_django(place: Place, broker: RunningBroker) -> None:
    assert told_by(place, broker.url, "lost_reply") == "OperationalError"


def by_a_session(place: Place, broker: RunningBroker) -> None:
    _by_sqlalchemy(place, broker, joined=False)


def by_a_connection(place: Place, broker: RunningBroker) -> None:
    _by_sqlalchemy(place, broker, joined=True)


def _by_sqlalchemy(place: Place, broker: RunningBroker, *, joined: bool) -> None:
    engine = sa.create_engine(engine_url(place.url))
    outbox, sessions = Outbox(Producer(broker.client(), place.group), engine), sessionmaker(engine)
    outbox.listen(sessions)
    with engine.connect() as connection, sessions(bind=connection if joined else engine) as session:
        transaction = connection.begin() if joined else session
        session.execute(sa.text("INSERT INTO orders (order_id) VALUES ('tea')"))
        outbox.send(session, place.topic, "tea")
        session.flush() if not joined else session.commit()
        with pytest.raises(sa.exc.OperationalError):
            transaction.commit()
        transaction.rollback()
    engine.dispose()


@pytest.mark.parametrize("commit", [by_django, by_a_session, by_a_connection])
def test_a_commit_whose_reply_is_lost_is_ended_at_once(commit: Commit, broker: RunningBroker) -> None:
    with places.postgresql("read committed") as place:
        make_barrier(place, "django")
        with DatabaseProxy(place.url) as proxy:
            proxy.drops_commits = 1
            commit(replace(place, url=proxy.url), broker)
        [(transaction_id,)] = place.run("SELECT transaction_id FROM mqbroker_barrier")
        found = told(broker.wire(), transaction_id)

        assert found["state"] == "COMMITTED"
        assert [event["by"] for event in found["history"] if event["event"] == "end"] == ["producer"]
        assert place.orders() == {"tea"}
