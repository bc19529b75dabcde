"""The database that a one-off command works on: the given one, the running broker's, or one that is started for it."""

import contextlib
import os
from collections.abc import Iterator

from embedded import environment, leftovers
from embedded.errors import FolderInUse
from embedded.folder import DataFolder
from embedded.interrupts import Interrupts
from embedded.servers import Servers


@contextlib.contextmanager
def of(folder: DataFolder) -> Iterator[dict[str, str]]:
    """The environment for commands on the folder's database; what had to be started ends with them."""
    folder.make()
    # Valkey is not worth a start: nothing that a command does is lost without it.
    servers = Servers(folder, os.environ)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(folder.claimed())
        except FolderInUse:
            yield environment.embedded(folder, servers)
            return
        if servers.postgres:
            stack.enter_context(Interrupts())
            stack.callback(servers.postgres.stop)
            servers.postgres.start()
            leftovers.record(folder.processes, [servers.postgres.child])
        yield environment.embedded(folder, servers)
