"""Settings that the broker needs and that only the server has: finds wrong values, and the line that corrects each."""

from collections.abc import Iterator
from typing import NamedTuple

from django.conf import settings

from store.db import pooling, sync
from store.db.statements import Statement
from store.rows import ServerSetting

# Connections of a process besides DATABASE_CONNECTIONS (reads): 7 of writers, 1 for notices, 4 of the control plane.
OTHER_CONNECTIONS = 12


class Needed(NamedTuple):
    """The value that the broker needs for a setting, and the consequence of any other value."""

    value: str
    without: str


class Least(NamedTuple):
    """The least number of blocks of 8 kB for a setting, the value to set, and the cost of a smaller value."""

    blocks: int
    value: str
    without: str


class Wrong(NamedTuple):
    """A setting with a wrong value, what happens because of it, and the line that corrects it."""

    what: str
    why: str
    mend: str


READ_SERVER_SETTINGS = Statement(__file__, "read_server_settings", ServerSetting)

NEEDED = {
    "autovacuum": Needed("on", "dead rows stay in the tables, and receives and checks get slower"),
    "track_activities": Needed("on", "a writer that is frozen within a transaction is not found, and its locks stay"),
    "track_counts": Needed("on", "autovacuum does not see which tables need it, and dead rows stay"),
    # This setting exists from PostgreSQL 17 on. Older servers refuse the name, so no session sets it at its start.
    "transaction_timeout": Needed("0", "it ends migrations, exports and the maintenance of segments"),
}
# If a server does nothing else, a quarter of its memory is the usual size of `shared_buffers`.
LEAST = {
    "shared_buffers": Least(
        32_768,
        "1GB",
        "sessions write pages of others to the disk first, to find room for their messages",
    ),
    "wal_buffers": Least(2_048, "16MB", "a session that finds the WAL's buffers full writes them to the disk first"),
}
BLOCKS_PER_MEGABYTE = 128
# How a setting is set, so that it takes effect at once or at the next start of the server.
AT_ONCE = "ALTER SYSTEM SET {} = {}; SELECT pg_reload_conf();"
FROM_ITS_START = "ALTER SYSTEM SET {} = {}; then restart the server"
CONNECTIONS, RESERVED = "max_connections", ("superuser_reserved_connections", "reserved_connections")


def wrong(processes: int) -> list[Wrong]:
    """The wrong settings of the server of the cell that this work has entered, given the number of processes.

    `processes`: web and worker processes together. Raises Django's OperationalError when the database is away.
    """
    names = [*NEEDED, CONNECTIONS, *RESERVED]
    found = {row.name: row for row in sync.read(READ_SERVER_SETTINGS, {"names": names})}
    return [*_otherwise(found), *_too_few(found, processes)]


def small() -> list[Wrong]:
    """The settings of the server of this cell that slow writes down, unless the server's command line has set them."""
    found = sync.read(READ_SERVER_SETTINGS, {"names": [*LEAST]})
    return [
        Wrong(
            f"{each.name} is {int(each.value) // BLOCKS_PER_MEGABYTE}MB on the server",
            LEAST[each.name].without,
            line(each, f"'{LEAST[each.name].value}'"),
        )
        for each in found
        if int(each.value) < LEAST[each.name].blocks and each.source != "command line"
    ]


def line(setting: ServerSetting, value: str) -> str:
    """The line that sets a setting of the server to a value."""
    if setting.source == "command line":
        return f"start the server with {setting.name}={value}, which is set on its command line"
    way = FROM_ITS_START if setting.context == "postmaster" else AT_ONCE
    return way.format(setting.name, value)


def _otherwise(found: dict[str, ServerSetting]) -> Iterator[Wrong]:
    for name, needed in NEEDED.items():
        if name in found and found[name].value != needed.value:
            yield Wrong(f"{name} is {found[name].value} on the server", needed.without, line(found[name], needed.value))


def _too_few(found: dict[str, ServerSetting], processes: int) -> Iterator[Wrong]:
    """Findings about a `max_connections` that is too low.

    Behind a pooler no findings, because the pooler decides how many sessions are open.
    """
    each = settings.DATABASE_CONNECTIONS + OTHER_CONNECTIONS
    reserved = sum(int(found[name].value) for name in RESERVED if name in found)
    if settings.DATABASE_POOLER == pooling.NONE and int(found[CONNECTIONS].value) - reserved < processes * each:
        why = f"{processes} processes may have {each} each, and {reserved} are kept for superusers"
        mend = line(found[CONNECTIONS], str(processes * each + reserved))
        yield Wrong(f"{CONNECTIONS} is {found[CONNECTIONS].value} on the server", why, mend)
