"""The failures of an export: one class for each stable code, with one sentence that says what to do."""

from typing import ClassVar


class ExportFailed(Exception):
    """An export cannot be done or was not finished. The target folder is unchanged."""

    code: ClassVar[str] = "export_failed"

    def __init_subclass__(cls, code: str) -> None:
        cls.code = code


class ExtraMissing(ExportFailed, code="extra_missing"):
    """PySpark is not installed, or the Python of its workers lacks a package that reads the database."""


class JavaMissing(ExportFailed, code="java_missing"):
    """There is no Java that Spark can run on."""


class DriverMissing(ExportFailed, code="driver_missing"):
    """No JDBC driver for PostgreSQL."""


class SocketRefused(ExportFailed, code="socket_refused"):
    """The database is reached by a Unix socket, but JDBC needs TCP."""


class FolderRefused(ExportFailed, code="folder_refused"):
    """The target is not a folder that an export may replace."""


class ExportUnderWay(ExportFailed, code="export_under_way"):
    """Another export writes to the same target."""


class LogBusy(ExportFailed, code="log_busy"):
    """The export did not find a moment without a write under way."""


class SegmentDropped(ExportFailed, code="segment_dropped"):
    """Retention dropped a segment while the export read it."""


class CountsDiffer(ExportFailed, code="counts_differ"):
    """The number of rows in the files differs from the number in the broker."""


class OptionRefused(ExportFailed, code="option_refused"):
    """An option that the data source does not know, or whose value it cannot use."""


class HoleFound(ExportFailed, code="hole_found"):
    """Retention dropped messages that a stream has not read yet."""


class LogBehind(ExportFailed, code="log_behind"):
    """A stream has read further than the log now reaches, as after the restore of a back-up."""


class ExportDamaged(ExportFailed, code="export_damaged"):
    """The files of an export have changed since they were exported."""


class CellDiffers(ExportFailed, code="cell_differs"):
    """The URL of a cell leads to the database of another cell."""


class ExportIncomplete(ExportFailed, code="export_incomplete"):
    """Some cells of the installation were not exported; each of them keeps its earlier export."""
