"""An installation on a PostgreSQL of its own, whose cells are split by standbys of that server."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

from mqbroker.embedded import commands
from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.servers import postgres
from mqbroker.embedded.servers.standby import Standby
from tests.broker import forks, prepared_servers
from tests.broker.running import QUICK, RunningBroker
from tests.chaos import mutants
from tests.chaos.mutants import Mutant

# Within this a move that was stopped is finished or taken back.
ENDED_SECONDS = 30


class Ground:
    """The server `primary` with two cells: the control c0, and c1, where new topics go."""

    def __init__(self, folder: Path, mutant: Mutant | None = None) -> None:
        self.folder = folder
        folder.chmod(0o711)
        self.primary = prepared_servers.started_with_cells(postgres.Server(folder / "primary"))
        # What a page and a list tell of a move is read at once.
        settings = {**QUICK, "MQBROKER_CONSOLE_READING_SECONDS": "0"}
        self.broker = RunningBroker(folder / "broker", self.primary.url, os.environ["REDIS_URL"], settings, webs=2)
        if mutant is not None:
            mutants.give(mutant, self.broker)
        self._standbys: list[Standby] = []

    def cells(self, *words: str) -> str:
        """What `manage.py cells` said."""
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What `manage.py cells` did."""
        return forks.run(commands.manage("cells", *words), self.broker.environment)

    def kill_after(self, step: str, *words: str) -> None:
        """Begins `manage.py cells`, and kills it where it says that a step of a move is done."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        said, complaint = place / "said", place / "complaint"
        os.mkfifo(said)
        command = commands.manage("cells", *words)
        process = forks.server().fork(command, self.broker.environment, ROOT, said, complaint)
        with said.open() as lines:
            for line in lines:
                if line.strip() == f"{step}.":
                    os.kill(process.pid, signal.SIGKILL)
                    process.wait()
                    return
        pytest.fail(f"the move has ended without the step {step}: {complaint.read_text()}")

    def refusal(self, *words: str) -> str:
        """The sentence with which a command was refused."""
        done = self.run(*words)
        assert done.returncode == 1, done.stdout
        return done.stderr.splitlines()[-1].removeprefix("CommandError: ")

    def standby(self, of: postgres.Server | None = None) -> Standby:
        """A standby that follows a server, by default the primary; it ends with the ground."""
        made = Standby(of or self.primary, self.folder / f"standby-{len(self._standbys)}")
        made.copy()
        made.start()
        self._standbys.append(made)
        return made

    def sql(self, cell: str, statement: str, *values: object) -> list[tuple[object, ...]]:
        """The rows of a statement in the database of a cell."""
        with psycopg.connect(self.url_of(cell)) as session:
            cursor = session.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def url_of(self, cell: str) -> str:
        """The URL of a cell."""
        with psycopg.connect(self.primary.url) as session:
            found = session.execute("SELECT url FROM cell WHERE name = %s", [cell]).fetchone()
        assert found is not None
        return str(found[0] or self.primary.url)

    def stored(self, topic: str) -> dict[str, int]:
        """How many messages of a topic each cell's database has."""
        with psycopg.connect(self.primary.url) as session:
            names = [str(row[0]) for row in session.execute("SELECT name FROM cell ORDER BY id").fetchall()]
        counted = "SELECT count(*) FROM commit_log AS c JOIN topic AS t ON t.id = c.topic_id WHERE t.name = %s"
        return {name: int(str(self.sql(name, counted, topic)[0][0])) for name in names}

    def close(self) -> None:
        """Ends the servers."""
        for standby in self._standbys:
            standby.stop()
        self.primary.stop()
