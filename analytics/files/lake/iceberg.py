"""Tables of Iceberg in the folder of an export: metadata and a catalog in SQLite, with a snapshot for each export.

The files have no column for the names of their folders, and the tables do without these. Metadata name files by the
place that the export goes to. It is not there yet: until then reads and writes go to the folder that takes its place.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from analytics import tables
from analytics.files.manifest import TABLES, Manifest
from analytics.files.parts import COLUMNS

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import Table

FOLDER = "_iceberg"
CATALOG = "catalog.db"
# The URL that the tables have.
PLACE = "place"
NAMESPACE = "mqbroker"


def commit(new: Path, target: Path, made: Manifest, columns: Mapping[str, StructType] = COLUMNS) -> None:
    """Commits to each table what is new in the list of the export, and takes out what is no longer in it.

    A table without one of the `columns` gets it.
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
    """As readers of Iceberg take it: nothing in it is escaped."""
    return f"file://{folder}"


def _begin_where_moved(folder: Path, target: Path) -> None:
    """Begins the tables anew where the export was moved since: they name their files by the place that it had."""
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
        "py-io-impl": "analytics.files.lake.moved.MovedIO",
    }
    return SqlCatalog(NAMESPACE, uri=f"sqlite:///{new / FOLDER / CATALOG}", **places)


def _table(catalog: "SqlCatalog", target: Path, table: str, schema: pyarrow.Schema) -> "Table":
    """The table with all columns: those that were added since are null in earlier files."""
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
            # Files are taken out only as all are: they have no column to tell them by.
            transaction.delete(AlwaysTrue(), snapshot_properties=properties)
            known = set()
        transaction.add_files([file for file in files if file not in known], snapshot_properties=properties)


def _schema(columns: StructType) -> pyarrow.Schema:
    """The columns of the table's files; Iceberg has no numbers of 16 bits."""
    of_files = to_arrow_schema(tables.in_files(columns), timezone="UTC")
    return pyarrow.schema(
        [field.with_type(pyarrow.int32()) if field.type == pyarrow.int16() else field for field in of_files]
    )
