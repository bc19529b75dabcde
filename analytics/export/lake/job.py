"""Keeps the lake: adds the messages that became visible in each cell since the last batch, by one commit for all."""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import pyarrow

from analytics.errors import ExportDamaged, ExportFailed, ExportIncomplete, FolderRefused
from analytics.export.lake import proof, table
from analytics.export.lake.feeds import MAX_OFFSETS, Feed, marked
from analytics.export.lake.table import LakeTable, Reach
from analytics.readers.cells import Database, databases, require_own
from analytics.readers.failures import failures_as_ours

Say = Callable[[str], None]
# With one commit a minute, a day's folder has at most 60 small files.
BATCHES_PER_COMPACTION = 60


class Lake:
    """The lake of an installation, in one folder. `say` gets a line for each commit and each failure."""

    def __init__(self, control: str, folder: Path, say: Say) -> None:
        self._control = control
        self._folder = folder
        self._say = say
        self._feeds: dict[str, Feed] = {}
        self._installation: str | None = None
        # Offsets that were read since the batch with the number `_empty_since`, but have no message to add: offsets of
        # retries, for example.
        self._empty: dict[str, Reach] = {}
        self._empty_since = 0

    def keep(self, every_seconds: float) -> None:
        """Adds new messages until the process ends: once in this time, or without a pause while more messages wait.

        A failure after the first round, such as a database that is away, is passed to `say`, and the next round tries
        again. Raises FolderRefused and ExportDamaged at any time, and ExportFailed in the first round.
        """
        for number in count():
            began = time.monotonic()
            try:
                self.catch_up()
            except (FolderRefused, ExportDamaged):
                raise
            except ExportFailed as failure:
                if not number:
                    raise
                self._say(f"{failure} The next round tries again.")
            time.sleep(max(0.0, began + every_seconds - time.monotonic()))

    def catch_up(self) -> None:
        """Adds all messages that were final at the start of the call.

        After all other cells were read, raises ExportIncomplete with the cells that were left out. Also raises the
        errors of `add`.
        """
        is_behind, left_out = self.add()
        while is_behind:
            is_behind, left_out = self.add(anew=False)
        if left_out:
            raise ExportIncomplete(f"The lake lacks new messages of {'; '.join(left_out)}.")

    def add(self, *, anew: bool = True) -> tuple[bool, Sequence[str]]:
        """Adds one batch: at most MAX_OFFSETS of each cell, up to the rows that were final at the last call with
        `anew`.

        Returns whether there may be more, and the cells that were left out, each with its reason. Raises FolderRefused,
        ExportDamaged if the last batch differs from its cell, and ExportUnderWay if another process has written.
        """
        of = table.opened(self._folder, is_new=True)
        number = of.last.number + 1 if of.last else 1
        if number != self._empty_since:
            self._empty, self._empty_since = {}, number
        reaches, left_out = self._reaches(of, anew)
        self._commit(of, reaches, number)
        return any(reach.offsets >= MAX_OFFSETS for reach in reaches.values()), left_out

    def _commit(self, of: LakeTable, reaches: dict[str, Reach], number: int) -> None:
        """Commits the new rows, if any, together with all offsets that were read since the last commit."""
        count, failure = 0, None

        def read() -> Iterator[pyarrow.RecordBatch]:
            nonlocal count, failure
            try:
                for cell, reach in reaches.items():
                    for batch in marked(self._feeds[cell].rows(reach.start, reach.end), cell, number):
                        count += batch.num_rows
                        if batch.num_rows:
                            yield batch
            except Exception as problem:
                failure = problem
                raise

        together = {cell: _joined(self._empty.get(cell), reach) for cell, reach in reaches.items()}
        with failures_as_ours():
            try:
                of.add(self._installation or "", together, read())
            except Exception:
                # Raises the failure of the read itself, not the error of Delta Lake's writer that wraps it.
                if failure:
                    raise failure from None
                raise
        self._empty |= together
        if count:
            self._say(f"Batch {number}: {count:,} messages.")
            if number % BATCHES_PER_COMPACTION == 0:
                self.compact()

    def compact(self) -> None:
        """Merges small files of the table, and removes files that are not needed any more."""
        before, after = table.opened(self._folder).compact()
        self._say(f"{before} files merged into {after}.")

    def verify(self) -> None:
        """Verifies the table: `say` gets each difference from the lake's commits or the log. Raises ExportDamaged."""
        of = table.opened(self._folder)
        problems = 0
        with failures_as_ours():
            for cell in databases(self._control):
                self._feeds[cell.name] = self._feed(cell)
            for line in proof.of(of, self._feeds, self._say):
                self._say(line)
                problems += 1
        if problems:
            raise ExportDamaged(f"{self._folder} is not what the log has: {problems} problems, see above.")

    def _reaches(self, of: LakeTable, anew: bool) -> tuple[dict[str, Reach], Sequence[str]]:
        """The offsets that the next batch reads of each cell; and the cells that cannot be read, with the reasons."""
        reaches: dict[str, Reach] = {}
        left_out = []
        for cell in databases(self._control):
            try:
                with failures_as_ours():
                    if cell.name not in self._feeds:
                        self._feeds[cell.name] = self._proved(self._feed(cell), of)
                    before = self._empty.get(cell.name) or (of.last.cells.get(cell.name) if of.last else None)
                    reaches[cell.name] = self._feeds[cell.name].reach(before, anew=anew)
            except (FolderRefused, ExportDamaged):
                raise
            except ExportFailed as failure:
                left_out.append(f"{cell.name} ({failure.code}: {str(failure).rstrip('.')})")
        return reaches, left_out

    def _feed(self, cell: Database) -> Feed:
        conninfo, self._installation = require_own(cell, self._installation)
        return Feed(cell.cell_id, cell.name, conninfo)

    def _proved(self, feed: Feed, of: LakeTable) -> Feed:
        """The feed of a cell. Checks that the cell still has the last batch: after a restore it may not."""
        if of.last and of.last.installation != self._installation:
            raise FolderRefused(f"{self._folder} holds the lake of another installation: give a new folder.")
        if of.last:
            for fault in proof.of_batches([of.last], of, {feed.cell: feed}, _in_silence):
                raise ExportDamaged(
                    f"{fault} `./mq lake --verify DIR` names all that is wrong; after the restore of a back-up, give a "
                    "new folder."
                )
        return feed


def _in_silence(line: str) -> None:
    """Drops a sentence about rows that cannot be compared: only a verification prints such sentences."""


def _joined(empty: Reach | None, reach: Reach) -> Reach:
    """One reach with the offsets of two consecutive reaches. The first reach, `empty`, added no message."""
    if empty is None:
        return reach
    return Reach(reach.cell_id, {**reach.start, **empty.start}, reach.end, {**reach.holes, **empty.holes})
