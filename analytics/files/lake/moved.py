"""Access to Iceberg's files at paths that they will only have after the export."""

from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO


class MovedIO:
    """Redirects paths in `mqbroker.target` to the folder `mqbroker.new`, which will replace the target.

    Has the methods that catalogs use of a FileIO. It is no subclass of FileIO, because type checkers run without the
    extra.
    """

    def __init__(self, properties: dict[str, Any]) -> None:
        self.properties = properties
        self._files: FileIO = PyArrowFileIO(properties)

    def new_input(self, location: str) -> Any:
        """The file at this location, opened for reading."""
        return self._moved(self._files.new_input(location))

    def new_output(self, location: str) -> Any:
        """The file at this location, opened for writing."""
        return self._moved(self._files.new_output(location))

    def delete(self, location: Any) -> None:
        """Does nothing: an unfinished folder is removed as a whole."""

    def _moved(self, file: Any) -> Any:
        target, new = self.properties["mqbroker.target"], self.properties["mqbroker.new"]
        if file._path.startswith(f"{target}/"):
            file._path = new + file._path.removeprefix(target)
        return file
