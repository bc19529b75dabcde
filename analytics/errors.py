"""The failures of an export: one class for each stable code, with one sentence that says what to do."""

from typing import ClassVar


class ExportFailed(Exception):
    """An export cannot be done or was not finished. The target folder is unchanged."""

    code: ClassVar[str] = "export_failed"


class ExtraMissing(ExportFailed):
    """PySpark is not installed, or the Python of its workers lacks a package that reads the database."""

    code = "extra_missing"


class JavaMissing(ExportFailed):
    """There is no Java that Spark can run on."""

    code = "java_missing"


class DriverMissing(ExportFailed):
    """No JDBC driver for PostgreSQL."""

    code = "driver_missing"


class SocketRefused(ExportFailed):
    """The database is reached by a Unix socket, but JDBC needs TCP."""

    code = "socket_refused"


class FolderRefused(ExportFailed):
    """The target is not a folder that an export may replace."""

    code = "folder_refused"


class ExportUnderWay(ExportFailed):
    """Another export writes to the same target."""

    code = "export_under_way"


class LogBusy(ExportFailed):
    """The export did not find a moment without a write under way."""

    code = "log_busy"


class SegmentDropped(ExportFailed):
    """Retention dropped a segment while the export read it."""

    code = "segment_dropped"


class CountsDiffer(ExportFailed):
    """The number of rows in the files differs from the number in the broker."""

    code = "counts_differ"


class OptionRefused(ExportFailed):
    """An option that the data source does not know, or whose value it cannot use."""

    code = "option_refused"


class HoleFound(ExportFailed):
    """Retention dropped messages that a stream has not read yet."""

    code = "hole_found"


class LogBehind(ExportFailed):
    """A stream has read further than the log now reaches, as after the restore of a back-up."""

    code = "log_behind"


class ExportDamaged(ExportFailed):
    """The files of an export have changed since they were exported."""

    code = "export_damaged"


class CellDiffers(ExportFailed):
    """The URL of a cell leads to the database of another cell."""

    code = "cell_differs"


class ExportIncomplete(ExportFailed):
    """Some cells of the installation were not exported; each of them keeps its earlier export."""

    code = "export_incomplete"
