"""Reads the URL of a database, that of DATABASE_URL or of a cell, into the settings that Django has of it."""

import re
from typing import Any

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS
from psycopg.conninfo import conninfo_to_dict

from store.db import pooling
from store.db.patience import RECONNECT_SECONDS, PatientConnection
from store.db.session import OURS, as_options

# A URL must not take the durability of what operators decide. The last four are the message path's where there is a
# pooler, because the role has them by default.
SESSION = {
    **OURS,
    "idle_in_transaction_session_timeout": "60s",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "enable_seqscan": "on",
    "plan_cache_mode": "auto",
}

FORM = "give postgresql://user:password@host:port/database"
# A name, or an address, perhaps with its zone.
HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}|[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9_.-]{1,32})?")
ENCODE = "write @ / : ? # and % of a user, a password and a database as %40 %2F %3A %3F %23 and %25"
HOSTS = f"{FORM}, or several servers as host1:port1,host2:port2"


def database(url: str, called: str = "DATABASE_URL") -> dict[str, Any]:
    """Django's database settings for a URL that libpq reads: it may name several hosts.

    Raises ImproperlyConfigured when the URL, which the error calls `called`, does not name a PostgreSQL database.
    """
    given = parts(url, called)
    name, user, password = (given.pop(part, "") for part in ("dbname", "user", "password"))
    host, ports = given.pop("host", ""), given.pop("port", "")
    _require_place(name, host, ports, called)
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
            "options": f"{given.pop('options', '')} {as_options(SESSION)}".strip(),
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


def databases(url: str, pooler: str, direct_url: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Django's databases, and that of the server itself, which is the same one without a pooler.

    Raises ImproperlyConfigured as `database`, and where what needs a session of its own would go through the pooler.
    """
    default = database(url)
    if pooler == pooling.NONE:
        return {DEFAULT_DB_ALIAS: default}, default
    if not direct_url:
        raise ImproperlyConfigured(
            f"MQBROKER_DATABASE_POOLER={pooler} needs DIRECT_DATABASE_URL, which names the server behind the pooler: "
            "notices, maintenance, migrations and exports need sessions of their own."
        )
    # It passes no settings of a session on.
    del default["OPTIONS"]["options"]
    # A cursor of the server may outlast its transaction, whose session is another client's by then.
    default["DISABLE_SERVER_SIDE_CURSORS"] = True
    return {DEFAULT_DB_ALIAS: default}, database(direct_url, "DIRECT_DATABASE_URL")


def _require_place(name: str, host: str, ports: str, called: str) -> None:
    if not name:
        raise ImproperlyConfigured(f"{called} does not name a PostgreSQL database: {FORM}.")
    for port in filter(None, ports.split(",")):
        if not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65535:
            raise ImproperlyConfigured(f"{called} has the port {port!r}, which is none from 1 to 65535: {HOSTS}.")
    if ports.count(",") not in (0, host.count(",")):
        raise ImproperlyConfigured(f"{called} names more hosts than ports, or fewer: {HOSTS}.")


def parts(url: str, called: str) -> dict[str, str]:
    """The fields of a URL, by libpq's names. Raises ImproperlyConfigured, which never holds the text of the URL.

    A password with a character of the URL's own form would be read as a server or a database, and shown as one.
    """
    if not url.startswith(("postgres://", "postgresql://")):
        raise ImproperlyConfigured(f"{called} does not name a PostgreSQL database: {FORM}.")
    authority, _, behind = url.partition("://")[2].partition("/")
    if authority.count("@") > 1 or "@" in behind:
        raise ImproperlyConfigured(f"{called} has an @ that stands before no server: {ENCODE}.")
    try:
        # libpq's message may hold the whole URL, password included; so may its messages about such a server.
        found = {name: str(value) for name, value in conninfo_to_dict(url).items() if value}
    except (psycopg.ProgrammingError, ValueError):
        raise ImproperlyConfigured(f"{called} cannot be read as a PostgreSQL URL: {FORM}.") from None
    hosts = [host for host in found.get("host", "").split(",") if not host.startswith("/")]
    if not all(HOST.fullmatch(host) for host in hosts if host):
        raise ImproperlyConfigured(f"{called} names a server that is no host name and no address: {ENCODE}.")
    return found
