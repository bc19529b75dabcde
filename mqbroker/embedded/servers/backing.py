"""The two servers of the broker: private servers, or external servers that the user names."""

from collections.abc import Mapping

from mqbroker.embedded.folder import DataFolder
from mqbroker.embedded.processes.child import Child
from mqbroker.embedded.servers import postgres, sized, valkey
from mqbroker.embedded.waiting import Say, silence


class Servers:
    """PostgreSQL and Valkey of a data folder, except one that `given` names by DATABASE_URL or REDIS_URL."""

    def __init__(self, folder: DataFolder, given: Mapping[str, str], kind: type[postgres.Server] = sized.Sized) -> None:
        self._given = given
        self.postgres = None if given.get("DATABASE_URL") else kind(folder.path)
        self.valkey = None if given.get("REDIS_URL") else valkey.Server(folder.path)

    def prepare(self) -> None:
        """Makes the files of PostgreSQL, the longest step of a first start. Raises CannotStart."""
        if self.postgres:
            self.postgres.prepare()

    def prepare_as(self, other: "Servers") -> None:
        """Prepares servers by copying the files of servers that are prepared and not started. Raises CannotStart."""
        if self.postgres and other.postgres:
            self.postgres.prepare_as(other.postgres)

    def start(self, say: Say = silence) -> None:
        """Starts both servers; returns when both answer, without a time limit. Raises CannotStart."""
        if self.postgres:
            self.postgres.start(say)
        if self.valkey:
            self.valkey.start(say)

    def stop(self) -> None:
        """Stops both servers, PostgreSQL last."""
        for child in reversed(self.children()):
            child.stop()

    def children(self) -> list[Child]:
        """The private servers, in the order of their start."""
        return [server.child for server in (self.postgres, self.valkey) if server]

    def urls(self) -> dict[str, str]:
        """The values of DATABASE_URL and REDIS_URL."""
        return {
            "DATABASE_URL": self.postgres.url if self.postgres else self._given["DATABASE_URL"],
            "REDIS_URL": self.valkey.url if self.valkey else self._given["REDIS_URL"],
        }
