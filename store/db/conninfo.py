"""How the message path connects: the connection string of a database, and what each session is set to."""

from typing import Any

from django.conf import settings
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from store.db.patience import KEEPALIVES

CONNECT_TIMEOUT_SECONDS = 3
# Settings of Django's own connections; these connections have their own.
ORM_OPTIONS = ("pool", "connect_timeout", "tcp_user_timeout", "application_name", "options")
# A cut network is noticed after this, where keepalives alone took more than 25 s.
TCP_USER_TIMEOUT_MS = 3000
SESSION = " ".join(
    (
        "-c statement_timeout=15s",
        # Below REQUEST_SECONDS: a request that waits for a lock is answered with that reason.
        "-c lock_timeout=3s",
        "-c idle_in_transaction_session_timeout=20s",
        "-c synchronous_commit=on",
        KEEPALIVES,
        # A batch reads the ends of its queues in statements that are newer than its locks.
        "-c default_transaction_isolation=read\\ committed",
        "-c TimeZone=UTC",
        # The statements of the message path go by index. A plan made while a partition was empty must not scan it
        # when it is full, and planning anew each time costs more than the statement.
        "-c enable_seqscan=off",
        "-c plan_cache_mode=force_generic_plan",
    )
)


def conninfo(application: str, url: str = "") -> str:
    """The connection string of the database of a URL, or else of the settings', for libpq."""
    given = conninfo_to_dict(url) if url else _of_settings()
    ours = {
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "tcp_user_timeout": TCP_USER_TIMEOUT_MS,
        "application_name": application,
        # SESSION comes last: a URL must not change what the message path relies on.
        "options": f"{given.get('options', '')} {SESSION}".strip(),
    }
    return make_conninfo(**{**given, **ours})


def _of_settings() -> dict[str, Any]:
    default: dict[str, Any] = settings.DATABASES["default"]
    return {
        # Options of the URL, such as sslmode.
        **{name: value for name, value in default["OPTIONS"].items() if name not in ORM_OPTIONS},
        "options": default["OPTIONS"].get("options", ""),
        "dbname": default["NAME"],
        "user": default["USER"],
        "password": default["PASSWORD"] or None,
        "host": default["HOST"] or None,
        "port": default["PORT"] or None,
    }
