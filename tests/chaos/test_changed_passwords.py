"""The password of the database's role changes while the broker runs: new sessions read it anew from its file."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mqbroker.embedded.servers import postgres
from tests.broker import prepared_servers
from tests.broker.polling import eventually
from tests.broker.running import RunningBroker

END_SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rotated'"


@pytest.fixture
def administrator(tmp_path: Path) -> Iterator[psycopg.Connection]:
    """A session that may change roles, at a server where `rotated` may use the broker's tables."""
    tmp_path.chmod(0o711)
    server = prepared_servers.started(postgres.Server(tmp_path / "server"))
    try:
        with psycopg.connect(server.url.replace("//mqbroker:", "//postgres:"), autocommit=True) as session:
            session.execute("CREATE ROLE rotated LOGIN PASSWORD 'first' IN ROLE mqbroker")
            yield session
    finally:
        server.stop()


def test_a_password_that_changes_in_its_file_needs_no_restart(
    administrator: psycopg.Connection, tmp_path: Path
) -> None:
    file = tmp_path / "passwords"
    file.touch(mode=0o600)
    file.write_text("*:*:*:rotated:first\n")
    port = administrator.info.port
    url = f"postgresql://rotated@127.0.0.1:{port}/mqbroker?passfile={file}"
    broker = RunningBroker(tmp_path / "broker", url, os.environ["REDIS_URL"])

    def sends() -> bool:
        return broker.wire().post("/v1/messages", {"topic": "orders", "body": "1"}).status == 201

    with broker:
        assert sends()
        administrator.execute("ALTER ROLE rotated PASSWORD 'second'")
        administrator.execute(END_SESSIONS)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
        file.write_text("*:*:*:rotated:second\n")

        eventually(sends, within_seconds=20)
        assert broker.wire().get("/readyz").status == 200
