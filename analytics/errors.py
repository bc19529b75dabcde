"""The failures of an export: one class per stable code, one sentence with the way out."""

from typing import ClassVar


class ExportFailed(Exception):
    """An export that cannot be done, or was not finished; the target folder is as it was before."""

    code: ClassVar[str] = "export_failed"


class ExtraMissing(ExportFailed):
    """PySpark is not installed, or the Python of its workers lacks what reads."""

    code = "extra_missing"


class JavaMissing(ExportFailed):
    """No Java that Spark runs on."""

    code = "java_missing"


class DriverMissing(ExportFailed):
    """No JDBC driver for PostgreSQL."""

    code = "driver_missing"


class SocketRefused(ExportFailed):
    """The database is reached by a Unix socket, and JDBC needs TCP."""

    code = "socket_refused"


class FolderRefused(ExportFailed):
    """The target is not a folder that an export may replace."""

    code = "folder_refused"


class ExportUnderWay(ExportFailed):
    """Another export writes to the same target."""

    code = "export_under_way"


class LogBusy(ExportFailed):
    """No moment without a write under way was found."""

    code = "log_busy"


class SegmentDropped(ExportFailed):
    """Retention dropped a segment while it was read."""

    code = "segment_dropped"


class CountsDiffer(ExportFailed):
    """The files do not hold as many rows as the broker."""

    code = "counts_differ"


class OptionRefused(ExportFailed):
    """An option of the data source that it does not understand."""

    code = "option_refused"


class HoleFound(ExportFailed):
    """Retention dropped messages that a stream has not read yet."""

    code = "hole_found"


class LogBehind(ExportFailed):
    """A stream has read more of the log than there is."""

    code = "log_behind"


class ExportDamaged(ExportFailed):
    """The files of an export are not what was exported."""

    code = "export_damaged"


class CellDiffers(ExportFailed):
    """The database at a cell's URL is not that cell's."""

    code = "cell_differs"


class ExportIncomplete(ExportFailed):
    """Some cells of the installation were not exported; each keeps the export that it had."""

    code = "export_incomplete"
