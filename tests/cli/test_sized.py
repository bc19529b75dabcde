"""The private PostgreSQL of `./mq up` has buffers by the memory of the machine."""

import psycopg
import pytest

from mqbroker.embedded.folder import DataFolder
from mqbroker.embedded.servers import postgres, sized

MEGABYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("megabytes", "value"), [(512, "128MB"), (1024, "128MB"), (4096, "512MB"), (8192, "1024MB"), (262_144, "1024MB")]
)
def test_the_buffers_are_an_eighth_of_the_memory_within_limits(megabytes: int, value: str) -> None:
    assert sized.buffers(megabytes * MEGABYTE) == value


def test_a_server_that_follows_the_memory_starts_with_these_buffers_and_a_file_of_wal(folder: DataFolder) -> None:
    server = sized.Sized(folder.path)
    server.start()
    try:
        with psycopg.connect(server.url) as session:
            found = session.execute(
                "SELECT pg_size_bytes(current_setting('shared_buffers')), current_setting('wal_buffers')"
            ).fetchone()
    finally:
        server.stop()

    assert found == (int(sized.buffers(sized.memory_bytes())[:-2]) * MEGABYTE, "16MB")
    assert postgres.Server(folder.path).settings["shared_buffers"] == "128MB"
