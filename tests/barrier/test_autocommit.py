"""SQLAlchemy in autocommit mode: a message and the work that it is to belong to could not be taken back together."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from mqbroker_client import Broker, Producer
from mqbroker_client.barrier.errors import BarrierError
from mqbroker_client.sqlalchemy import Outbox
from sqlalchemy.orm import sessionmaker

from tests.barrier import places
from tests.barrier.local import engine_url
from tests.barrier.places import Place

AWAY = Broker("http://127.0.0.1:1", "mq_key")


def is_refused_at_its_commit(place: Place, engine: sa.Engine, **options: str) -> None:
    """No row is written, and the broker is not asked."""
    place.barrier.create_table()
    outbox, sessions = Outbox(Producer(AWAY, place.group), engine), sessionmaker(engine)
    outbox.listen(sessions)
    with sessions() as session:
        session.connection(execution_options=options)
        outbox.send(session, place.topic, "tea")
        with pytest.raises(BarrierError, match="the connection is in autocommit mode"):
            session.commit()
    engine.dispose()

    assert place.run("SELECT count(*) FROM mqbroker_barrier") == [(0,)]


def test_a_session_of_an_engine_in_autocommit_mode_is_refused_at_its_commit() -> None:
    with places.postgresql("read committed") as place:
        is_refused_at_its_commit(place, sa.create_engine(engine_url(place.url), isolation_level="AUTOCOMMIT"))


def test_a_session_that_is_in_autocommit_mode_alone_is_refused_at_its_commit(tmp_path: Path) -> None:
    place = places.sqlite(tmp_path)
    is_refused_at_its_commit(place, sa.create_engine(engine_url(place.url)), isolation_level="AUTOCOMMIT")
