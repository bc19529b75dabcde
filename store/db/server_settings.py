"""What the broker needs of its server that no session can set: what is wrong, and the line that mends it."""

from collections.abc import Iterator
from typing import NamedTuple

from django.conf import settings

from store.db import pooling, sync
from store.db.statements import Statement

# Of a web or worker process: beside those for reads, those that write, listen and serve the control plane.
OTHER_CONNECTIONS = 12


class Needed(NamedTuple):
    """The value that a setting needs, and what happens without it."""

    value: str
    without: str


class ServerSetting(NamedTuple):
    """A setting of the server. `source` says where it was set, `context` when a change holds."""

    name: str
    value: str
    source: str
    context: str


class Wrong(NamedTuple):
    """A setting that the broker needs otherwise, what happens that way, and what mends it."""

    what: str
    why: str
    mend: str


READ_SERVER_SETTINGS = Statement(__file__, "read_server_settings", ServerSetting)

NEEDED = {
    "autovacuum": Needed("on", "dead rows stay in the tables, and receives and checks get slower"),
    "track_activities": Needed("on", "a writer that is frozen within a transaction is not found, and its locks stay"),
    "track_counts": Needed("on", "autovacuum does not see which tables need it, and dead rows stay"),
    # Of PostgreSQL 17 and later. A session of an older one refuses the name, so no session is given it at its start.
    "transaction_timeout": Needed("0", "it ends migrations, exports and the maintenance of segments"),
}
# What sets a setting, which then holds at once or from the next start of the server on.
AT_ONCE = "ALTER SYSTEM SET {} = {}; SELECT pg_reload_conf();"
FROM_ITS_START = "ALTER SYSTEM SET {} = {}; then restart the server"
CONNECTIONS, RESERVED = "max_connections", ("superuser_reserved_connections", "reserved_connections")


def wrong(processes: int) -> list[Wrong]:
    """What is wrong with the server of the cell that this work has entered, for so many web and worker processes.

    Raises Django's OperationalError when the database is away.
    """
    names = [*NEEDED, CONNECTIONS, *RESERVED]
    found = {row.name: row for row in sync.read(READ_SERVER_SETTINGS, {"names": names})}
    return [*_otherwise(found), *_too_few(found, processes)]


def line(setting: ServerSetting, value: str) -> str:
    """What sets a setting of the server to a value."""
    if setting.source == "command line":
        return f"start the server with {setting.name}={value}, which is set on its command line"
    way = FROM_ITS_START if setting.context == "postmaster" else AT_ONCE
    return way.format(setting.name, value)


def _otherwise(found: dict[str, ServerSetting]) -> Iterator[Wrong]:
    for name, needed in NEEDED.items():
        if name in found and found[name].value != needed.value:
            yield Wrong(f"{name} is {found[name].value} on the server", needed.without, line(found[name], needed.value))


def _too_few(found: dict[str, ServerSetting], processes: int) -> Iterator[Wrong]:
    """A pooler has as many sessions as it is given."""
    each = settings.DATABASE_CONNECTIONS + OTHER_CONNECTIONS
    reserved = sum(int(found[name].value) for name in RESERVED if name in found)
    if settings.DATABASE_POOLER == pooling.NONE and int(found[CONNECTIONS].value) - reserved < processes * each:
        why = f"{processes} processes may have {each} each, and {reserved} are kept for superusers"
        mend = line(found[CONNECTIONS], str(processes * each + reserved))
        yield Wrong(f"{CONNECTIONS} is {found[CONNECTIONS].value} on the server", why, mend)
