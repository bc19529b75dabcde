"""How the message path connects: the connection string of a database, and the settings of each session."""

from typing import Any

from django.conf import settings
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from store.db import pooling
from store.db.session import OURS, as_options

CONNECT_TIMEOUT_SECONDS = 3
# Django's options that are not used for connections of the message path.
ORM_OPTIONS = ("pool", "connect_timeout", "tcp_user_timeout", "application_name", "options")
# A cut network is noticed after this time. With keepalives alone a cut was noticed after more than 25 s.
TCP_USER_TIMEOUT_MS = 3000
SESSION = {
    **OURS,
    "statement_timeout": "15s",
    # The limit is below REQUEST_SECONDS, so that the refusal of a request that waits for a lock can name the lock.
    "lock_timeout": "3s",
    "idle_in_transaction_session_timeout": "20s",
    # The statements of the message path read by index. A plan that was made while a partition was empty must not scan
    # the partition when it is full, and planning again each time costs more than the statement.
    "enable_seqscan": "off",
    "plan_cache_mode": "force_generic_plan",
}


def conninfo(application: str, url: str = "", *, direct: bool = False) -> str:
    """The connection string for libpq, of a URL's or the settings' database. `direct`: without the pooler."""
    given = conninfo_to_dict(url) if url else _of(settings.DIRECT_DATABASE if direct else settings.DATABASES["default"])
    # SESSION comes last, so that the options of a URL cannot change settings on which the message path relies.
    sent = "" if is_pooled(url, direct=direct) else as_options(SESSION)
    ours = {
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "tcp_user_timeout": TCP_USER_TIMEOUT_MS,
        "application_name": application,
        "options": f"{given.get('options', '')} {sent}".strip(),
    }
    return make_conninfo(**{**given, **ours})


def is_pooled(url: str, *, direct: bool = False) -> bool:
    """Whether a session goes through a pooler: only a session of the control may, whose URL is in the settings."""
    return not url and not direct and settings.DATABASE_POOLER != pooling.NONE


def _of(default: dict[str, Any]) -> dict[str, Any]:
    return {
        # The options of the URL, such as sslmode.
        **{name: value for name, value in default["OPTIONS"].items() if name not in ORM_OPTIONS},
        "options": default["OPTIONS"].get("options", ""),
        "dbname": default["NAME"],
        "user": default["USER"],
        "password": default["PASSWORD"] or None,
        "host": default["HOST"] or None,
        "port": default["PORT"] or None,
    }
