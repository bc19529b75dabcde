"""A reader of a page, who types its lines with PATH and HOME alone, and has names and servers of their own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from mqbroker.embedded.servers import plain
from tests.docs import stories


@dataclass(frozen=True)
class Reader:
    """`own` has what the reader writes instead of words of the page: addresses, passwords and folders."""

    home: Path
    own: Mapping[str, str]

    def writes(self, text: str) -> str:
        """A text of the page, with the reader's own words."""
        for word, own in self.own.items():
            text = text.replace(word, own)
        return text

    def saves(self, name: str, *texts: str) -> None:
        """Saves blocks of the page as a file."""
        (self.home / name).write_text(self.writes("\n".join(texts)))

    def types(self, *blocks: str, **variables: str) -> str:
        """What the blocks print, one after another in one shell. A line that fails is a failure of the test."""
        return "".join(stories.run([self.writes(block) for block in blocks], self.home, variables))


@dataclass(frozen=True)
class Postgres:
    """A PostgreSQL as `initdb` makes it: only its superuser is there."""

    place: str
    password: str

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres:{self.password}@{self.place}/{database}"


@contextmanager
def postgres(folder: Path) -> Iterator[Postgres]:
    """Such a server, on a port of its own."""
    # PostgreSQL may run as another user, which has to pass through.
    folder.chmod(0o755)
    server = plain.Plain(folder / "server")
    server.start()
    try:
        own = Postgres(f"127.0.0.1:{server.folder.port('postgres')}", server.folder.secret("postgres"))
        with psycopg.connect(own.url(), autocommit=True) as session:
            # What `./mq up` needs of its server.
            session.execute("DROP DATABASE mqbroker")
            session.execute("DROP ROLE mqbroker")
        yield own
    finally:
        server.stop()
