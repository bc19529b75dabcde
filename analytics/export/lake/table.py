"""The table of the lake. Each of its commits says which offsets it has read, so rows and progress change in one step.

No other file notes the progress. A process that is killed before the commit leaves files that the table does not list,
and the next process reads the same offsets again; a process that is killed after the commit has done its work.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pyarrow
import pyarrow.compute as compute
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from analytics.errors import ExportFailed, ExportUnderWay, FolderRefused
from analytics.readers.datasource.orders import Position
from analytics.readers.datasource.published import COMMITTED
from analytics.tables import DAY, Table, arrow

CELL, BATCH, TOPIC_ID = "cell", "batch", "topic_id"
# The rows that a cell's database returns. Names of topics can be used again, so the topic's id is read, too.
READ = Table(
    COMMITTED.statement,
    StructType([StructField(TOPIC_ID, IntegerType()), *COMMITTED.columns]),
    COMMITTED.day_of,
)
SCHEMA = arrow(StructType([StructField(CELL, StringType()), StructField(BATCH, LongType()), *READ.columns]))
# A commit's own information has the batch under the first name. Commits that only merge files repeat the last batch
# under the second, because Delta Lake drops the information of old commits after 30 days.
OF_BATCH, AFTER_BATCH = "mqbroker.batch", "mqbroker.after"
# Delta Lake counts the batches under this name, even after the information of a commit is dropped.
APPLICATION = "mqbroker"
LOG = "_delta_log"
# Readers skip row groups by the lowest and highest batch in them.
PROPERTIES = WriterProperties(max_row_group_size=50_000)
# A small number, because each body may have some MB.
ROWS_AT_ONCE = 1_000
# The number of commits to read first: reading all commits takes a second for each 10,000.
FEW = 20


class Reach(msgspec.Struct, frozen=True):
    """The offsets of one cell that a batch has read: from `start` to `end`, exclusive, for each `topic_id/queue_id`.

    `start` names only queues of which the batch has read offsets, `end` names all queues. `holes` has the first and the
    last offset, both inclusive, that retention had dropped before they could be read.
    """

    cell_id: int
    start: Position
    end: Position
    holes: dict[str, tuple[int, int]]

    @property
    def offsets(self) -> int:
        """The number of offsets that were read. Some offsets, for example of retries, have no message for the lake."""
        return sum(int(self.end[queue]) - int(first) for queue, first in self.start.items())


class Batch(msgspec.Struct, frozen=True):
    """The offsets that one commit has read, by cell. A batch, numbered from 1, begins where its predecessor ended."""

    number: int
    installation: str
    cells: dict[str, Reach]


class Committed(msgspec.Struct, frozen=True):
    """A commit of the table: its version, its operation, and the batch that it added, if it is one of the lake's."""

    version: int
    operation: str
    batch: Batch | None
    is_of_lake: bool
    at: datetime


class LakeTable:
    """The table in a folder, at its latest version. Raises FolderRefused for the table of another program."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._table = DeltaTable(str(folder))
        if not {CELL, BATCH, TOPIC_ID} <= {field.name for field in self._table.schema().fields}:
            raise FolderRefused(f"{folder} holds another table of Delta Lake: give a new folder.")
        self.last = self._newest()

    @property
    def version(self) -> int:
        """The version of the table that this object has read."""
        return self._table.version()

    @property
    def counted(self) -> int:
        """The number of the last batch, as Delta Lake has counted it."""
        return self._table.transaction_version(APPLICATION) or 0

    def add(self, installation: str, reaches: dict[str, Reach], rows: Iterator[pyarrow.RecordBatch]) -> None:
        """Commits the rows and the offsets that were read, in one step; nothing if there is no row.

        `rows` have the columns of SCHEMA. Raises ExportUnderWay if another process has committed since this table was
        read, ExportFailed if Delta Lake cannot write.
        """
        first = next(rows, None)
        if first is None:
            return
        before = self.last.cells if self.last else {}
        batch = Batch((self.last.number if self.last else 0) + 1, installation, {**_at_rest(before), **reaches})
        with _failures_as_ours(self.folder):
            write_deltalake(
                self._table,
                pyarrow.RecordBatchReader.from_batches(SCHEMA, chain([first], rows)),
                mode="append",
                # A version of the broker with more columns adds them to the table; in earlier rows they are null.
                schema_mode="merge",
                writer_properties=PROPERTIES,
                commit_properties=CommitProperties(
                    custom_metadata={OF_BATCH: msgspec.json.encode(batch).decode()},
                    # Another process may have read the same offsets and committed first.
                    max_commit_retries=0,
                    app_transactions=[Transaction(APPLICATION, batch.number)],
                ),
            )

    def compact(self) -> tuple[int, int]:
        """Merges small files, and removes files that no version of the last seven days has.

        Returns how many files were merged into how many. The rows and their batches stay as they are.
        """
        last = {} if self.last is None else {AFTER_BATCH: msgspec.json.encode(self.last).decode()}
        properties = CommitProperties(custom_metadata=last)
        with _failures_as_ours(self.folder):
            done = self._table.optimize.compact(writer_properties=PROPERTIES, commit_properties=properties)
            self._table.vacuum(dry_run=False, full=True, commit_properties=properties)
        return done["numFilesRemoved"], done["numFilesAdded"]

    def commits(self) -> Sequence[Committed]:
        """The commits that are still in Delta Lake's log, in order."""
        return [_committed(each) for each in reversed(self._table.history())]

    def files(self) -> dict[Path, int]:
        """The files of this version, with their sizes in bytes."""
        added = pyarrow.table(self._table.get_add_actions())
        paths = (self.folder / path for path in added["path"].to_pylist())
        return dict(zip(paths, added["size_bytes"].to_pylist(), strict=True))

    def rows(self, first: int, last: int) -> Iterator[pyarrow.RecordBatch]:
        """The rows of the batches from `first` to `last`, both inclusive."""
        of_batches = (compute.field(BATCH) >= first) & (compute.field(BATCH) <= last)
        yield from self._table.to_pyarrow_dataset(schema=SCHEMA).to_batches(
            filter=of_batches, batch_size=ROWS_AT_ONCE, batch_readahead=1, fragment_readahead=1
        )

    def has(self, cell: str, message_id: str) -> bool:
        """Whether the table has a message of a cell."""
        # The read has no filter, because a filter fails for texts in files of other programs.
        found = self._table.to_pyarrow_dataset(schema=SCHEMA).to_batches([CELL, "message_id"])
        return any(row == {CELL: cell, "message_id": message_id} for batch in found for row in batch.to_pylist())

    def batches(self) -> dict[int | None, int]:
        """The number of rows of each batch; None is the number of rows without a batch."""
        return self._counted(BATCH)

    def messages(self) -> dict[str, int]:
        """The number of rows of each cell."""
        return self._counted(CELL)

    def _counted(self, column: str) -> dict[Any, int]:
        counted = self._table.to_pyarrow_dataset().to_table([column])[column].value_counts().to_pylist()
        return {each["values"]: each["counts"] for each in counted}

    def _newest(self) -> Batch | None:
        for limit in (FEW, None):
            for each in self._table.history(limit):
                if text := each.get(OF_BATCH) or each.get(AFTER_BATCH):
                    return msgspec.json.decode(text, type=Batch)
        if self.counted:
            raise FolderRefused(
                f"{self.folder} has {self.counted} batches, and none of its commits says what they have read: give a "
                "new folder."
            )
        return None


def opened(folder: Path, *, is_new: bool = False) -> LakeTable:
    """The table in a folder. With `is_new` a missing or empty folder becomes a new table. Raises FolderRefused."""
    if not DeltaTable.is_deltatable(str(folder)):
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        # A process that is killed while it creates the table leaves an unfinished first commit.
        if not is_new or names - {LOG} or (folder.exists() and not folder.is_dir()):
            raise FolderRefused(f"{folder} holds no lake: `./mq lake --to DIR` makes one in a new or an empty folder.")
        DeltaTable.create(str(folder), SCHEMA, mode="ignore", name="committed", partition_by=[CELL, DAY])
    with _failures_as_ours(folder):
        return LakeTable(folder)


@contextmanager
def _failures_as_ours(folder: Path) -> Iterator[None]:
    try:
        yield
    except CommitFailedError as problem:
        raise ExportUnderWay(f"Another process has written to {folder}: let one lake write to it.") from problem
    except DeltaError as problem:
        reason = " ".join(str(problem).split()).rstrip(".")
        raise ExportFailed(f"Delta Lake could not read or write {folder}: {reason}.") from problem


def _at_rest(cells: dict[str, Reach]) -> dict[str, Reach]:
    """The cells of the last batch, each with a reach that begins and ends at the end of that batch."""
    return {cell: Reach(reach.cell_id, {}, reach.end, {}) for cell, reach in cells.items()}


def _committed(about: dict[str, Any]) -> Committed:
    text = about.get(OF_BATCH)
    batch = msgspec.json.decode(text, type=Batch) if text else None
    at = datetime.fromtimestamp(about["timestamp"] / 1000, UTC)
    return Committed(about["version"], about["operation"], batch, batch is not None or AFTER_BATCH in about, at)
