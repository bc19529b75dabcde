"""What a split meets that is not as it should be: servers that are gone or wrong, and a run that has died."""

from functools import partial

import pytest
from mqbroker_client import Admin

from tests.broker import characters
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.moves.ground import Ground, url_in


@pytest.fixture
def home(broker: RunningBroker) -> str:
    """A topic of c1 with a message."""
    name = characters.name("shop")
    Admin(broker.client()).create_topic(name, queues=2)
    assert _sends(broker, name)
    return name


def _sends(broker: RunningBroker, topic: str) -> bool:
    return broker.wire().post("/v1/messages", {"topic": topic, "body": "x"}).status == 201


def test_a_split_whose_standby_is_gone_is_refused_and_the_topic_stays(
    ground: Ground, broker: RunningBroker, home: str
) -> None:
    standby = ground.standby()
    words = ("split", "c1", "--into", "c2", "--standby", url_in(standby, "mqbroker_c1"), "--home", home)
    standby.kill()

    refused = ground.refusal(*words)

    assert refused.startswith("The standby for the cell c2 cannot be reached: ")
    assert _sends(broker, home)


def test_a_database_that_is_no_standby_is_refused(ground: Ground, broker: RunningBroker, home: str) -> None:
    words = ("split", "c1", "--into", "c2", "--standby", ground.url_of("c1"), "--home", home)

    assert ground.refusal(*words) == (
        "The server of --standby is no standby of the cell c1: it takes writes, so it has been promoted, or is the "
        "primary itself."
    )


def test_a_fence_whose_run_has_died_is_ended_by_a_process_behind_its_time(
    ground: Ground, broker: RunningBroker, home: str
) -> None:
    ground.sql("c1", "UPDATE cell_identity SET epoch = epoch + 1, fenced_until = now() + interval '1 s'")
    ground.sql("c1", "ALTER DATABASE mqbroker_c1 SET default_transaction_read_only = on")
    _end_sessions(ground)

    eventually(partial(_sends, broker, home), within_seconds=20)

    assert ground.sql("c1", "SELECT fenced_until FROM cell_identity") == [(None,)]


def _end_sessions(ground: Ground) -> None:
    ground.sql(
        "c1",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename = current_user",
    )
