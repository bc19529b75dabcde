"""A worker killed in the middle of an action on all that match: nothing is done twice, and nothing is left out."""

import os
import uuid
from collections.abc import Iterator

import psycopg
import pytest

from mqbroker.embedded import commands
from tests.broker import databases, forks
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire
from tests.console.operators import Operator

HALVES = 3000
PASSWORD = "let me act"
MAKE_USER = f"""
from access import roles
from django.contrib.auth.models import User
roles.assign(User.objects.create_user("oda", password="{PASSWORD}"), "operator", bodies=False)
"""


@pytest.fixture(scope="module")
def broker(prepared: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker whose worker may be killed."""
    with databases.copied(prepared) as database_url:
        broker = RunningBroker(tmp_path_factory.mktemp("broker"), database_url, os.environ["REDIS_URL"])
        words = commands.manage("shell", "--verbosity", "0", "--command", MAKE_USER)
        forks.run(words, broker.environment).check_returncode()
        with broker:
            yield broker


def test_an_action_is_finished_once_for_each_target_however_often_its_worker_is_killed(
    broker: RunningBroker, wire: Wire, orders: str
) -> None:
    half = {"op": "half", "topic": orders, "producer_group": "shop", "body": "order"}
    begun = [one for _ in range(HALVES // 1000) for one in wire.bulk(*([half] * 1000))]
    ids = {uuid.UUID(one["transaction_id"]) for one in begun}
    oda = Operator.signed_in(broker.url, "oda", PASSWORD)
    form: dict[str, object] = {"action": "transaction.rollback", "all": "1", "state": "PREPARED", "reason": "of a test"}

    with psycopg.connect(broker.database_url, autocommit=True) as connection:

        def entries() -> int:
            [(found,)] = connection.execute("SELECT count(*) FROM audit_entry WHERE action_id IS NOT NULL").fetchall()
            return int(found)

        page = oda.posts("actions/new/", form)
        seen = [0]
        for _ in range(2):
            eventually(lambda: entries() > seen[-1], within_seconds=60)
            broker.worker.kill()
            seen.append(entries())
            broker.worker.start()
        path = page.address.partition("/console/")[2]
        eventually(lambda: oda.sees(path).figure("state") == "done", within_seconds=120)
        targets = connection.execute(
            "SELECT target::uuid, result FROM audit_entry WHERE action_id IS NOT NULL"
        ).fetchall()
        ended = connection.execute("SELECT transaction_id, count(*) FROM operation GROUP BY 1").fetchall()

    assert seen[1] < HALVES, "the worker was faster than the test: it was not killed in the middle"
    assert sorted(targets) == sorted((transaction_id, "done") for transaction_id in ids)
    assert dict(ended) == dict.fromkeys(ids, 1)
