"""Keys of a broker from before the scope `read:`: after its migration they read what they could read."""

import os
from pathlib import Path

import psycopg
from psycopg.types.json import Jsonb

from access.keys import digest_of
from mqbroker.embedded import commands
from tests.broker import databases, forks
from tests.broker.running import RunningBroker
from tests.broker.wire import Wire
from tests.control.conftest import SETTINGS

OLD_KEY = "mq_of_the_version_before"


def test_a_key_that_exists_reads_every_topic_after_the_migration(prepared: str, tmp_path: Path) -> None:
    with databases.copied(prepared) as url:
        running = RunningBroker(
            tmp_path, url, os.environ.get("REDIS_URL", "redis://127.0.0.1:9/0"), SETTINGS, tasks=False
        )
        # Back to the version before.
        words = commands.manage("migrate", "access", "0002_roles", "--verbosity", "0")
        forks.run(words, running.environment).check_returncode()
        with psycopg.connect(url) as connection:
            connection.execute(
                "INSERT INTO api_key (name, digest, hint, scopes) VALUES ('old', %s, 'fore', %s)",
                [digest_of(OLD_KEY), Jsonb(["produce:orders", "consume:coupons"])],
            )
        running.prepare()

        with running:
            consumer = Wire(running.url, OLD_KEY)
            consumer.post("/v1/messages", {"topic": "orders", "body": "order 1"})

            received = consumer.post("/v1/consumer-groups/coupons/receive", {"topic": "orders"})

    assert [entry["message"]["body"] for entry in received.document["messages"]] == ["order 1"]
