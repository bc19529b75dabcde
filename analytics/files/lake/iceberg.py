"""Tables of Iceberg in the folder of an export: metadata and a catalog in SQLite, with one snapshot per export.

The export's files lack the columns that their folder names contain, and so do the tables. The metadata names files by
their final path in the target. During an export the target is not replaced yet: until then, reads and writes of these
paths go to the new folder.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
from pyspark.sql.types import StructType

from analytics import tables
from analytics.files.manifest import TABLES, Manifest
from analytics.files.parts import COLUMNS

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import Table

FOLDER = "_iceberg"
CATALOG = "catalog.db"
# The property with the URL that the tables were made for.
PLACE = "place"
NAMESPACE = "mqbroker"


def commit(new: Path, target: Path, made: Manifest, columns: Mapping[str, StructType] = COLUMNS) -> None:
    """Commits to each table the new files of the manifest, and removes files that the manifest no longer lists.

    A table that lacks one of the `columns` gets it.
    """
    _begin_where_moved(new / FOLDER, target)
    catalog = _catalog(new, target)
    try:
        catalog.create_namespace_if_not_exists(NAMESPACE)
        for table in TABLES:
            files = [f"{_url(target)}/{part.path}" for part in made.parts if part.table == table]
            _commit(
                _table(catalog, target, table, _schema(columns[table])), files, {"mqbroker.taken_at": made.taken_at}
            )
    finally:
        catalog.engine.dispose()


def _url(folder: Path) -> str:
    """The folder as a URL for readers of Iceberg, which expect no escaped characters."""
    return f"file://{folder}"


def _begin_where_moved(folder: Path, target: Path) -> None:
    """Creates the tables anew if the export was moved since, because they name their files by the former path."""
    marker = folder / PLACE
    if marker.exists() and marker.read_text(encoding="utf-8") != _url(target):
        shutil.rmtree(folder)
    if not marker.exists():
        folder.mkdir(exist_ok=True)
        marker.write_text(_url(target), encoding="utf-8")


def _catalog(new: Path, target: Path) -> "SqlCatalog":
    from pyiceberg.catalog.sql import SqlCatalog

    places = {
        "mqbroker.new": str(new),
        "mqbroker.target": str(target),
        "py-io-impl": "analytics.files.lake.iceberg.MovedIO",
    }
    return SqlCatalog(NAMESPACE, uri=f"sqlite:///{new / FOLDER / CATALOG}", **places)


def _table(catalog: "SqlCatalog", target: Path, table: str, schema: pyarrow.Schema) -> "Table":
    """The table with all columns. In files that were written before a column was added, the column is null."""
    name = f"{NAMESPACE}.{table}"
    if not catalog.table_exists(name):
        return catalog.create_table(name, schema, location=f"{_url(target)}/{FOLDER}/{table}")
    found = catalog.load_table(name)
    with found.update_schema() as update:
        update.union_by_name(schema)
    return catalog.load_table(name)


def _commit(table: "Table", files: list[str], properties: dict[str, str]) -> None:
    from pyiceberg.expressions import AlwaysTrue

    known: set[Any] = set(table.inspect.files()["file_path"].to_pylist()) if table.current_snapshot() else set()
    if known == set(files):
        return
    with table.transaction() as transaction:
        if not known <= set(files):
            # All earlier files are removed: Iceberg deletes by a condition on rows, and no column identifies a file.
            transaction.delete(AlwaysTrue(), snapshot_properties=properties)
            known = set()
        transaction.add_files([file for file in files if file not in known], snapshot_properties=properties)


def _schema(columns: StructType) -> pyarrow.Schema:
    """The columns of the table's files. Columns of 16 bits become 32 bits, because Iceberg has no 16-bit type."""
    of_files = tables.arrow_of_files(columns)
    return pyarrow.schema(
        [field.with_type(pyarrow.int32()) if field.type == pyarrow.int16() else field for field in of_files]
    )


class MovedIO:
    """Redirects paths in `mqbroker.target` to the folder `mqbroker.new`, which will replace the target.

    Has the methods that catalogs use of a FileIO. It is no subclass of FileIO, because type checkers run without the
    extra.
    """

    def __init__(self, properties: dict[str, Any]) -> None:
        self.properties = properties
        from pyiceberg.io.pyarrow import PyArrowFileIO

        self._files = PyArrowFileIO(properties)

    def new_input(self, location: str) -> Any:
        """The file at this location, opened for reading."""
        return self._moved(self._files.new_input(location))

    def new_output(self, location: str) -> Any:
        """The file at this location, opened for writing."""
        return self._moved(self._files.new_output(location))

    def delete(self, location: Any) -> None:
        """Does nothing: the export removes an unfinished folder as a whole."""

    def _moved(self, file: Any) -> Any:
        target, new = self.properties["mqbroker.target"], self.properties["mqbroker.new"]
        if file._path.startswith(f"{target}/"):
            file._path = new + file._path.removeprefix(target)
        return file
