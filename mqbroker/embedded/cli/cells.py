"""`./mq cells`: lists, adds, opens, repairs, splits and removes cells of the data folder's broker,
and runs standbys.
"""

import argparse
import os

import psycopg

from mqbroker.embedded.cli import database, manage, options
from mqbroker.embedded.errors import NoSuchDatabase, StandbyNotPrivate
from mqbroker.embedded.folder import DataFolder
from mqbroker.embedded.interrupts import Interrupted, Interrupts
from mqbroker.embedded.processes import leftovers
from mqbroker.embedded.servers.postgres import Server
from mqbroker.embedded.servers.standby import Standby, let_promote
from mqbroker.embedded.waiting import say

CONTROL = "c0"
LOOK_SECONDS = 1.0


def main(words: list[str]) -> int:
    """`./mq cells standby` runs a server; any other `./mq cells …` is `./mq manage cells …`. --data-dir comes first."""
    behind = manage.behind_folder("cells", words)
    if "standby" in behind[behind.index("cells") :][1:2]:
        return standby(words)
    return manage.main(behind)


def standby(words: list[str]) -> int:
    """Makes a standby of the private PostgreSQL, and runs it until Ctrl-C."""
    parser = argparse.ArgumentParser("mq cells standby", description=standby.__doc__)
    options.add_data_folder(parser)
    parser.add_argument("word", choices=["standby"], help=argparse.SUPPRESS)
    parser.add_argument("cell", help="the cell whose database the printed URL names")
    parser.add_argument(
        "--to",
        type=options.path_given,
        required=True,
        metavar="FOLDER",
        help="the folder of the standby; a standby in it is started again, even if it has become a cell",
    )
    given = parser.parse_args(words)
    if os.environ.get("DATABASE_URL"):
        raise StandbyNotPrivate
    with database.of(given.folder):
        name = _database_of(given.folder, given.cell)
        _run(Standby(Server(given.folder.path), given.to), name, given.cell)
    return 0


def _database_of(folder: DataFolder, cell: str) -> str:
    """The database of a cell on the private server.

    Also allows the broker's role to promote standbys of this server.
    """
    server = Server(folder.path)
    own = server.url.rpartition("/")[2]
    name = own if cell == CONTROL else f"{own}_{cell}"
    try:
        let_promote(server, name)
    except psycopg.errors.InsufficientPrivilege:
        pass  # the server is itself a standby now, and accepts no writes
    except psycopg.OperationalError as problem:
        if f'database "{name}" does not exist' in str(problem):
            raise NoSuchDatabase(cell) from None
        raise
    return name


def _run(server: Standby, name: str, cell: str) -> None:
    """Copies the standby unless it exists, starts it, prints how to use it, waits for a signal or the server's end."""
    with server.folder.claimed(), Interrupts() as interrupts:
        try:
            if not server.is_copied:
                print("Copying the private PostgreSQL.", flush=True)
                server.copy()
            server.start(say)
            leftovers.record(server.folder.processes, [server.child])
            print(_said(server, name, cell), flush=True)
            interrupts.hold()
            while server.child.is_running() and not interrupts.count:
                interrupts.wait(LOOK_SECONDS)
        except Interrupted:
            pass
        finally:
            server.stop()


def _said(server: Standby, name: str, cell: str) -> str:
    url = f"{server.url.rpartition('/')[0]}/{name}"
    server.folder.keep_secret("url", url)
    kept = server.folder.path / "secrets" / "url"
    return "\n".join(
        [
            f"Standby  {'follows' if server.follows else 'was promoted'}; its URL is kept in {kept}",
            f"Split    ./mq cells split {cell} --into NEW --home HOME --standby - < '{kept}'",
            "Stop     Ctrl-C",
        ]
    )
