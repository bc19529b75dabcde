"""The database of a command: the given database, the running broker's, or a server that is started for it."""

import contextlib
import os
from collections.abc import Iterator

from mqbroker.embedded import environment
from mqbroker.embedded.errors import FolderInUse
from mqbroker.embedded.folder import DataFolder
from mqbroker.embedded.interrupts import Interrupts
from mqbroker.embedded.processes import leftovers
from mqbroker.embedded.servers.backing import Servers
from mqbroker.embedded.servers.postgres import Server
from mqbroker.embedded.waiting import say


@contextlib.contextmanager
def of(folder: DataFolder) -> Iterator[dict[str, str]]:
    """The environment of commands on the folder's database. A server that this starts is stopped after the block."""
    folder.make()
    # Valkey is not started, because no command needs it.
    servers = Servers(folder, os.environ)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(folder.claimed())
        except FolderInUse:
            yield environment.embedded(folder, servers)
            return
        if servers.postgres:
            stack.enter_context(started(servers.postgres, folder))
        yield environment.embedded(folder, servers)


@contextlib.contextmanager
def started(server: Server, folder: DataFolder) -> Iterator[None]:
    """Runs the folder's PostgreSQL within the block. If this process is killed, the next start ends the server."""
    with Interrupts():
        try:
            server.start(say)
            leftovers.record(folder.processes, [server.child])
            yield
        finally:
            server.stop()
