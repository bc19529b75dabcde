"""The roles of docs/sql.md in a database of producers."""

import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sql.md"
# What a role of the page is called there, and here.
BROKER = "mqbroker"
WRITES = "GRANT INSERT, SELECT (id) ON mqbroker_outbox TO {}"


class Roles:
    """Roles without a right in this database but those of the page; `nobody` may connect, and has none."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.password = secrets.token_urlsafe(12)
        self.all = [f"{name}_{secrets.token_hex(4)}" for name in ("writer", "drain", "nobody")]
        self.writer, self.drain, self.nobody = self.all

    def __enter__(self) -> "Roles":
        grants = re.findall(r"^GRANT .* TO mqbroker;$", PAGE.read_text(), re.MULTILINE)
        assert len(grants) == 4
        [made_by_page] = re.findall(r"^CREATE ROLE mqbroker .*;$", PAGE.read_text(), re.MULTILINE)
        with psycopg.connect(self._url, user="postgres", autocommit=True) as session:
            for role in self.all:
                made = made_by_page.replace(BROKER, role).replace("'password'", f"'{self.password}'")
                session.execute(made.encode())
            # An operator may have set it; a drain's transactions have to see what was committed last.
            isolated = sql.SQL("ALTER ROLE {} SET default_transaction_isolation TO 'repeatable read'")
            session.execute(isolated.format(sql.Identifier(self.drain)))
            session.execute(sql.SQL(WRITES).format(sql.Identifier(self.writer)))
            for grant in grants:
                session.execute(grant.replace(f"TO {BROKER}", f"TO {self.drain}").encode())
        return self

    def __exit__(self, *_: object) -> None:
        with psycopg.connect(self._url, user="postgres", autocommit=True) as session:
            for role in self.all:
                session.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [role])
                session.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(role)))

    def set(self, role: str, settings: Mapping[str, str]) -> None:
        """What each further session of a role is set to; those that there are end."""
        with psycopg.connect(self._url, user="postgres", autocommit=True) as session:
            for name, value in settings.items():
                setting = sql.SQL("ALTER ROLE {} SET {} TO {}")
                # A list of values is no text of one.
                values = sql.SQL(", ").join(map(sql.Literal, value.split(", ")))
                session.execute(setting.format(sql.Identifier(role), sql.Identifier(name), values))
            session.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [role])

    def url(self, role: str) -> str:
        """Where the database is, for a role."""
        parts = urlsplit(self._url)
        place = f"{role}:{self.password}@{parts.hostname}:{parts.port}"
        return parts._replace(netloc=place).geturl()
