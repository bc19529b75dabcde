"""Converts the URL of a database, from DATABASE_URL or of a cell, into Django's settings of the database."""

import re
from typing import Any

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS
from psycopg.conninfo import conninfo_to_dict

from store.db import pooling
from store.db.patience import RECONNECT_SECONDS, PatientConnection
from store.db.session import OURS, as_options

# A URL must not weaken the durability of changes by operators. Behind a pooler, the role's defaults for the last four
# settings are meant for the message path, so Django's connections set them again.
SESSION = {
    **OURS,
    "idle_in_transaction_session_timeout": "60s",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "enable_seqscan": "on",
    "plan_cache_mode": "auto",
}

FORM = "give postgresql://user:password@host:port/database"
# A host name, or an address, perhaps with a zone.
HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}|[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9_.-]{1,32})?")
ENCODE = "write @ / : ? # and % of a user, a password and a database as %40 %2F %3A %3F %23 and %25"
HOSTS = f"{FORM}, or several servers as host1:port1,host2:port2"


def database(url: str, called: str = "DATABASE_URL") -> dict[str, Any]:
    """Django's database settings for a URL in libpq's form, which may name several hosts.

    Raises ImproperlyConfigured when the URL does not name a PostgreSQL database. The error calls the URL `called`.
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
        # Each concurrent request has a thread, and a connection kept by a thread serves no other thread. So a small
        # pool serves all threads.
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": 3,
            # The ms after which a cut network breaks a connection; the operating system's limit is a quarter of an
            # hour.
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
    """Django's databases: the default one, and the same server without the pooler (equal if there is no pooler).

    Raises ImproperlyConfigured as `database`, and if connections that need their own session would go through the
    pooler.
    """
    default = database(url)
    if pooler == pooling.NONE:
        return {DEFAULT_DB_ALIAS: default}, default
    if not direct_url:
        raise ImproperlyConfigured(
            f"MQBROKER_DATABASE_POOLER={pooler} needs DIRECT_DATABASE_URL, which names the server behind the pooler: "
            "notices, maintenance, migrations and exports need sessions of their own."
        )
    # The pooler does not pass on the settings of a session.
    del default["OPTIONS"]["options"]
    # A server-side cursor may outlive its transaction, and the session may then belong to another client.
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
    """The fields of a URL, by libpq's names. Raises ImproperlyConfigured, which never contains the text of the URL.

    The reason: a password with a reserved character is read as part of the host or database, and would be shown.
    """
    if not url.startswith(("postgres://", "postgresql://")):
        raise ImproperlyConfigured(f"{called} does not name a PostgreSQL database: {FORM}.")
    authority, _, behind = url.partition("://")[2].partition("/")
    if authority.count("@") > 1 or "@" in behind:
        raise ImproperlyConfigured(f"{called} has an @ that stands before no server: {ENCODE}.")
    try:
        # libpq's message, and later messages about the host, may contain the whole URL with the password.
        found = {name: str(value) for name, value in conninfo_to_dict(url).items() if value}
    except (psycopg.ProgrammingError, ValueError):
        raise ImproperlyConfigured(f"{called} cannot be read as a PostgreSQL URL: {FORM}.") from None
    hosts = [host for host in found.get("host", "").split(",") if not host.startswith("/")]
    if not all(HOST.fullmatch(host) for host in hosts if host):
        raise ImproperlyConfigured(f"{called} names a server that is no host name and no address: {ENCODE}.")
    return found
