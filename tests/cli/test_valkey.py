"""The private Valkey starts whatever a kill has left of its log."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from mqbroker.embedded.folder import DataFolder
from mqbroker.embedded.servers import valkey

NEVER = Retry(NoBackoff(), 0)


@pytest.fixture
def server(folder: DataFolder) -> Iterator[valkey.Server]:
    made = valkey.Server(folder.path)
    made.start()
    yield made
    made.stop()


def client(server: valkey.Server) -> redis.Redis:
    return redis.Redis.from_url(server.url, decode_responses=True)


def push(server: valkey.Server, *tasks: str) -> None:
    """Returns when the tasks are on disk."""
    connected = client(server)
    connected.rpush("queue", *tasks)
    assert connected.waitaof(num_local=1, num_replicas=0, timeout=5000)[0] == 1


def newest_log(server: valkey.Server) -> Path:
    return next((server.data / "appendonlydir").glob("*.incr.aof"))


def test_a_wrong_password_is_refused(server: valkey.Server) -> None:
    port = server.folder.port("valkey")

    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=port, password="guessed", retry=NEVER).ping()
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=port, retry=NEVER).ping()


def test_queued_tasks_outlive_kill_9(server: valkey.Server) -> None:
    push(server, "one", "two")

    server.kill()
    server.start()

    assert client(server).lrange("queue", 0, -1) == ["one", "two"]


def test_a_log_that_was_cut_in_its_last_record_loses_only_that(server: valkey.Server) -> None:
    push(server, "one")
    push(server, "two")
    server.kill()
    log = newest_log(server)
    log.write_bytes(log.read_bytes()[:-3])

    server.start()

    assert client(server).lrange("queue", 0, -1) == ["one"]


def test_a_log_that_cannot_be_read_is_put_aside(server: valkey.Server) -> None:
    push(server, "one")
    server.kill()
    newest_log(server).write_bytes(b"not a log at all\r\n")

    server.start()

    assert client(server).lrange("queue", 0, -1) == []
    assert list(server.folder.path.glob("valkey.unreadable.*/appendonlydir"))
