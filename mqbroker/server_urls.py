"""Reads DATABASE_URL and REDIS_URL into the settings of Django and Celery."""

from urllib.parse import urlsplit

import psycopg
from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import conninfo_to_dict

from store.db.patience import KEEPALIVES, RECONNECT_SECONDS, PatientConnection

# A URL must not take the durability of what operators decide.
SESSION = f"-c synchronous_commit=on -c idle_in_transaction_session_timeout=60s {KEEPALIVES}"

FORM = "give postgresql://user:password@host:port/database"
HOSTS = f"{FORM}, or several servers as host1:port1,host2:port2"


def database(url: str) -> dict[str, object]:
    """Django's database settings for a URL that libpq reads: it may name several hosts.

    Raises ImproperlyConfigured when the URL does not name a PostgreSQL database.
    """
    given = _parts(url)
    name, user, password = (given.pop(part, "") for part in ("dbname", "user", "password"))
    host, ports = given.pop("host", ""), given.pop("port", "")
    if not name:
        raise ImproperlyConfigured(f"DATABASE_URL does not name a PostgreSQL database: {FORM}.")
    for port in filter(None, ports.split(",")):
        if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
            raise ImproperlyConfigured(f"DATABASE_URL has the port {port!r}, which is none from 1 to 65535: {HOSTS}.")
    if ports.count(",") not in (0, host.count(",")):
        raise ImproperlyConfigured(f"DATABASE_URL names more hosts than ports, or fewer: {HOSTS}.")
    return {
        "ENGINE": "store.db.backend",
        "NAME": name,
        "USER": user,
        "PASSWORD": password,
        "HOST": host,
        "PORT": ports,
        # Requests at once have a thread each, and a connection that a thread keeps serves no other: a small pool serves
        # all threads.
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": 3,
            # Milliseconds after which a cut network breaks a connection; the system's limit is a quarter of an hour.
            "tcp_user_timeout": 3000,
            "application_name": "mqbroker-orm",
            "options": f"{given.pop('options', '')} {SESSION}".strip(),
            "pool": {
                "min_size": 1,
                "max_size": 4,
                "timeout": 3,
                "reconnect_timeout": RECONNECT_SECONDS,
                "connection_class": PatientConnection,
            },
            **given,
        },
    }


def _parts(url: str) -> dict[str, str]:
    if not url.startswith(("postgres://", "postgresql://")):
        raise ImproperlyConfigured(f"DATABASE_URL does not name a PostgreSQL database: {FORM}.")
    try:
        return {name: str(value) for name, value in conninfo_to_dict(url).items() if value}
    except psycopg.ProgrammingError:
        # libpq's message may hold the whole URL, password included.
        raise ImproperlyConfigured(f"DATABASE_URL cannot be read as a PostgreSQL URL: {FORM}.") from None


def task_broker(url: str) -> str:
    """The URL of a Redis, as given.

    Raises ImproperlyConfigured when it names none.
    """
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("redis", "rediss") and parts.hostname and parts.port != 0
    except ValueError:  # the port is no number, as in a URL with two hosts
        named = False
    if not named:
        raise ImproperlyConfigured("REDIS_URL does not name a Redis: give redis://:password@host:port/number.")
    return url


def task_queue(database: dict[str, object]) -> str:
    """The list of ticks in Redis, named by the database: brokers that share a Redis have a list each."""
    return f"mqbroker.{database['NAME']}@{database['HOST'] or 'localhost'}:{database['PORT'] or 5432}"
