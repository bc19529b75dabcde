"""The database's address for JDBC, from libpq's reading of DATABASE_URL."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from analytics.errors import SocketRefused
from analytics.readers.driver import CLASS
from store.db.session import OURS, as_options

APPLICATION = "mqbroker-export"
# The export may read slowly, so the server's time limits for requests are off. Parallel workers are off, because they
# would run at normal priority on processors that the export leaves to the broker. A role's defaults behind a pooler are
# meant for the message path.
SESSION = as_options(
    {
        **OURS,
        "statement_timeout": "0",
        "lock_timeout": "0",
        "idle_in_transaction_session_timeout": "0",
        "enable_seqscan": "on",
        "plan_cache_mode": "auto",
        "max_parallel_workers_per_gather": "0",
    }
)
# Options that libpq and JDBC name alike.
SHARED_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey")


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a database for JDBC. The password is not in the URL, because URLs appear in plans and logs."""

    url: str
    properties: Mapping[str, str] = field(repr=False)


def conninfo(database: Mapping[str, Any]) -> str:
    """The connection string for libpq, from an entry of Django's DATABASES."""
    given = {
        "dbname": database["NAME"],
        "user": database["USER"],
        "password": database["PASSWORD"],
        "host": database["HOST"],
        "port": database["PORT"],
    }
    options = {**database.get("OPTIONS", {}), **{name: value for name, value in given.items() if value}}
    # Other keys, such as `pool`, belong to Django.
    theirs = {option.keyword.decode() for option in Conninfo.get_defaults()}
    kept = {name: value for name, value in options.items() if name in theirs}
    return for_export(make_conninfo("", **kept))


def for_export(conninfo: str) -> str:
    """A connection string or URL, with the options that the export's sessions need."""
    return make_conninfo(conninfo, application_name=APPLICATION, options=SESSION)


def of(connection: Connection[Any]) -> Address:
    """The address of the server to which a connection leads, and the password that the connection used.

    Raises SocketRefused if it is a Unix socket.
    """
    info = connection.info
    if not info.host or info.host.startswith(("/", "@")):
        raise SocketRefused(
            f"DATABASE_URL reaches PostgreSQL by the Unix socket {info.host or 'of libpq'}, and Spark's driver speaks "
            f"TCP only: give postgresql://user:password@127.0.0.1:{info.port}/{info.dbname}."
        )
    host = f"[{info.host}]" if ":" in info.host else info.host
    given = conninfo_to_dict(info.dsn)
    properties = {option: str(given[option]) for option in SHARED_OPTIONS if given.get(option)}
    properties |= {
        "driver": CLASS,
        "user": info.user,
        "ApplicationName": APPLICATION,
        "options": SESSION,
        "tcpKeepAlive": "true",
    }
    if info.password:
        properties["password"] = info.password
    return Address(f"jdbc:postgresql://{host}:{info.port}/{quote(info.dbname, safe='')}", properties)
