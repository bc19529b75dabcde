"""Turns: with more producer groups that have something due than are asked at once, none waits for ever."""

from collections.abc import Iterator

import pytest
from django.conf import settings

from store.commit import writer
from tests.broker import characters
from tests.broker.endpoints import ProducerEndpoint, states
from tests.broker.polling import eventually
from tests.store.keeper import Keeper
from transactions.checks.checker import Checker
from transactions.operations.begin import Begin
from transactions.operations.validation import BeginTransaction
from webhooks.addresses import parse_networks

GROUPS = 7
AT_ONCE = 2
ADD_ENDPOINT = """
    INSERT INTO endpoint (group_id, url, max_batch, timeout_seconds, concurrency, secret, state, failures)
    SELECT id, %s, 1, 5, 4, 'whsec_' || encode(sha256('of the tests'), 'base64'), 'healthy', 0 FROM producer_group
"""


@pytest.fixture
def undecided() -> Iterator[ProducerEndpoint]:
    """A producer's server that never can tell: its transactions stay due."""
    networks = settings.WEBHOOK_ALLOWED_NETWORKS
    settings.WEBHOOK_ALLOWED_NETWORKS = parse_networks("127.0.0.0/8")
    with ProducerEndpoint() as endpoint:
        endpoint.replies(states("UNKNOWN"))
        yield endpoint
    settings.WEBHOOK_ALLOWED_NETWORKS = networks


def test_each_of_many_groups_is_asked_in_its_turn(keeper: Keeper, orders: str, undecided: ProducerEndpoint) -> None:
    groups = {characters.name("order-service") for _ in range(GROUPS)}
    for group in groups:
        keeper.do(writer.run(Begin(BeginTransaction(producer_group=group, topic=orders, body="order"))))
    keeper.sql(ADD_ENDPOINT, undecided.url)
    checker = Checker(max_groups=AT_ONCE)

    for _ in range(-(-GROUPS // AT_ONCE)):
        # Those that were asked before are due again, for longer than any other.
        keeper.sql("UPDATE half_message SET line = 0, next_check_at = now() - make_interval(hours => 1 + check_times)")
        keeper.do(checker.run())
        eventually(lambda: not checker.groups)
    keeper.do(checker.close())

    assert {asked.document["producer_group"] for asked in undecided.asked} == groups
