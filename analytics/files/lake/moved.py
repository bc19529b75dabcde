"""Files of Iceberg that lie in another folder than the one that they are named by."""

from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO


class MovedIO:
    """Reads and writes in the folder `mqbroker.new` what is named as in `mqbroker.target`, whose place it takes.

    What catalogs ask of a FileIO; no subclass of it, because checkers do without the extra.
    """

    def __init__(self, properties: dict[str, Any]) -> None:
        self.properties = properties
        self._files: FileIO = PyArrowFileIO(properties)

    def new_input(self, location: str) -> Any:
        """The file to read from."""
        return self._moved(self._files.new_input(location))

    def new_output(self, location: str) -> Any:
        """The file to write to."""
        return self._moved(self._files.new_output(location))

    def delete(self, location: Any) -> None:
        """Nothing: a folder that was not finished is removed as a whole."""

    def _moved(self, file: Any) -> Any:
        target, new = self.properties["mqbroker.target"], self.properties["mqbroker.new"]
        if file._path.startswith(f"{target}/"):
            file._path = new + file._path.removeprefix(target)
        return file
