"""DATABASE_URL and REDIS_URL: what they may name, and the sentence for what they may not."""

import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.core.exceptions import ImproperlyConfigured

from mqbroker.environment.server_urls import task_broker
from store.db.server_url import database
from tests.broker import databases
from tests.broker.ports import free_port
from tests.broker.running import RunningBroker

PORTS = "give postgresql://user:password@host:port/database, or several servers as host1:port1,host2:port2."


def test_a_broker_finds_the_server_that_is_there_among_two(prepared: str, tmp_path: Path) -> None:
    with databases.copied(prepared) as url:
        parts = urlsplit(url)
        user, _, place = parts.netloc.rpartition("@")
        both = parts._replace(netloc=f"{user}@127.0.0.1:{free_port()},{place}", query="target_session_attrs=read-write")
        broker = RunningBroker(tmp_path, both.geturl(), os.environ["REDIS_URL"], tasks=False)
        broker.prepare()
        with broker:
            sent = broker.wire().post("/v1/messages", {"topic": "orders", "body": "order 1"})

    assert sent.status == 201


def test_hosts_and_ports_are_handed_to_libpq_side_by_side() -> None:
    found = database("postgresql://shop:p%40ss@[::1]:5433,db.example/orders?sslmode=require")

    assert [found[name] for name in ("HOST", "PORT", "NAME", "USER", "PASSWORD")] == [
        "::1,db.example",
        "5433,",
        "orders",
        "shop",
        "p@ss",
    ]
    options = found["OPTIONS"]
    assert isinstance(options, dict)
    assert options["sslmode"] == "require"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        (
            "postgresql://shop:secret@db:many/orders",
            f"DATABASE_URL has the port 'many', which is none from 1 to 65535: {PORTS}",
        ),
        (
            "postgresql://shop:secret@a:1,b:70000/orders",
            f"DATABASE_URL has the port '70000', which is none from 1 to 65535: {PORTS}",
        ),
        (
            "postgresql://shop:secret@a,b/orders?port=1,2,3",
            f"DATABASE_URL names more hosts than ports, or fewer: {PORTS}",
        ),
        (
            "postgresql://shop:secret@db/orders?surprise=1",
            "DATABASE_URL cannot be read as a PostgreSQL URL: give postgresql://user:password@host:port/database.",
        ),
    ],
)  # fmt: skip -- one case to a line
def test_a_url_that_libpq_would_refuse_is_refused_without_its_password(url: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        database(url)

    assert str(refused.value) == sentence


@pytest.mark.parametrize("url", ["redis://a:6379,b:6379/0", "redis://a:many/0", "redis:///0", "localhost:6379"])
def test_a_url_that_names_no_redis_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        task_broker(url)

    assert str(refused.value) == "REDIS_URL does not name a Redis: give redis://:password@host:port/number."
