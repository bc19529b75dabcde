"""Promises of what is kept of an endpoint that fails: when it began to fail, until it answers again."""

from datetime import datetime

import psycopg
from mqbroker_client import Producer

from tests.broker.endpoints import ProducerEndpoint, says, states
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker

FAILING = """
SELECT failing_since, last_failure_at FROM endpoint JOIN producer_group AS g ON g.id = group_id
WHERE g.name = %s AND failures >= %s
"""


def test_an_endpoint_fails_since_its_first_failure_until_it_answers(
    broker: RunningBroker, producer: Producer, producer_endpoint: ProducerEndpoint, orders: str
) -> None:
    def failing(failures: int) -> tuple[datetime | None, datetime | None] | None:
        with psycopg.connect(broker.database_of(orders)) as connection:
            return connection.execute(FAILING, [producer.group, failures]).fetchone()

    producer_endpoint.replies(says(500))
    producer.begin(orders, b"order 1")
    first, _ = eventually(lambda: failing(1))
    producer.begin(orders, b"order 2")

    since, last = eventually(lambda: failing(2))

    assert since is not None
    assert last is not None
    assert first == since < last
    producer_endpoint.replies(states("COMMIT"))
    eventually(lambda: (found := failing(0)) and found[0] is None)
