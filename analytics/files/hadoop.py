"""A folder named by a URL and reached by Hadoop's FileSystem in Spark's Java: hdfs, file, or s3a."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j ships no types
from pyspark.sql import SparkSession

from analytics.errors import FolderRefused
from analytics.files.place import Local

# The Maven packages of file systems whose jars Spark lacks. VERSION is the version of Hadoop in Spark.
PACKAGES = {
    "s3a": "org.apache.hadoop:hadoop-aws:VERSION",
    "abfs": "org.apache.hadoop:hadoop-azure:VERSION",
    "abfss": "org.apache.hadoop:hadoop-azure:VERSION",
}
# Streams of an object store have this capability: their file appears when it is closed, and is complete then.
WHOLE_AT_CLOSE = "fs.capability.outputstream.abortable"
# The bytes that are passed between Java and Python at once. As text they take three times the memory.
CHUNK_BYTES = 4 * 1024 * 1024


class Hadoop:
    """A folder of a file system that Hadoop reaches. It has the methods of Local, with the same meaning."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        """Raises FolderRefused when Spark has no file system for the URL, or cannot reach it."""
        self._spark = spark
        java: Any = spark._jvm
        context: Any = spark._jsc
        self._java, self._configuration = java, context.hadoopConfiguration()
        try:
            self._root = self._java.org.apache.hadoop.fs.Path(url)
            self._system = self._root.getFileSystem(self._configuration)
            self._root = self._system.makeQualified(self._root)
            # Raises here, at the start, if the file system cannot be used.
            self._renames = None if self._is_whole_at_close() else self._context()
        except Py4JJavaError as problem:
            raise FolderRefused(self._refusal(url, problem)) from problem

    def __str__(self) -> str:
        return str(self._root.toString())

    def within(self, folder: str) -> "Hadoop":
        return Hadoop(self._spark, self.url(folder))

    def url(self, path: str) -> str:
        return str(self._path(path).toString())

    def names(self) -> set[str]:
        """The names in the folder itself; empty if the folder does not exist."""
        with _failures():
            if not self._system.exists(self._root):
                return set()
            return {str(status.getPath().getName()) for status in self._system.listStatus(self._root)}

    def files(self, folder: str = "") -> list[str]:
        with _failures():
            if not self._system.exists(self._path(folder)):
                return []
            found, beginning = [], f"{str(self).rstrip('/')}/"
            listing = self._system.listFiles(self._path(folder), True)
            while listing.hasNext():
                found.append(str(listing.next().getPath().toString()).removeprefix(beginning))
        return sorted(found)

    def size(self, path: str) -> int:
        with _failures():
            return int(self._system.getFileStatus(self._path(path)).getLen())

    def read(self, path: str) -> bytes:
        with self.opened(path) as opened:
            return bytes(opened.read())

    def write(self, path: str, content: bytes) -> None:
        """Writes with one PUT if the store shows a file only when it is closed; else renames a new file."""
        unfinished = f".{path}.unfinished"
        with self.created(path if self._renames is None else unfinished) as created:
            created.write(content)
        if self._renames is not None:
            with _failures():
                self._renames.rename(self._path(unfinished), self._path(path), self._replacing())

    def opened(self, path: str) -> pyarrow.NativeFile:
        with _failures():
            return pyarrow.PythonFile(_Input(self._system.open(self._path(path)), self.size(path)), mode="r")

    def created(self, path: str) -> pyarrow.NativeFile:
        with _failures():
            return pyarrow.PythonFile(_Output(self._system.create(self._path(path), True)), mode="w")

    def checksum(self, path: str) -> str:
        """Computes the SHA-256 in Java, so that the bytes need not be copied to Python."""
        with _failures():
            stream = self._system.open(self._path(path))
            try:
                return str(self._java.org.apache.commons.codec.digest.DigestUtils.sha256Hex(stream))
            finally:
                stream.close()

    def remove(self, path: str) -> None:
        with _failures():
            self._system.delete(self._path(path), True)

    def _path(self, path: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(self._root, path) if path else self._root

    def _is_whole_at_close(self) -> bool:
        return bool(self._system.hasPathCapability(self._root, WHOLE_AT_CLOSE))

    def _context(self) -> Any:
        contexts = self._java.org.apache.hadoop.fs.FileContext
        return contexts.getFileContext(self._root.toUri(), self._configuration)

    def _replacing(self) -> Any:
        renames = self._java.java.lang.Class.forName("org.apache.hadoop.fs.Options$Rename")
        options = self._java.java.lang.reflect.Array.newInstance(renames, 1)
        options[0] = renames.getEnumConstants()[1]
        return options

    def _refusal(self, url: str, problem: Py4JJavaError) -> str:
        scheme = url.partition(":")[0].lower()
        version = self._java.org.apache.hadoop.util.VersionInfo.getVersion()
        package = PACKAGES.get(scheme, "GROUP:NAME:VERSION").replace("VERSION", version)
        return (
            f"Spark has no file system for {url} ({_reason(problem)}): give one by its package, as by --conf "
            f"spark.jars.packages={package}, and what it needs by spark.hadoop.fs.{scheme}.… settings; or export to a "
            "folder and copy it."
        )


# The place of an export. An increment to a Hadoop folder is written beside the earlier files, which stay.
Place = Local | Hadoop


class _Input(io.RawIOBase):
    """A file that Hadoop reads, as a Python file object."""

    def __init__(self, stream: Any, size: int) -> None:
        self._stream, self._size, self._at = stream, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        with _failures():
            self._at = start + offset
            self._stream.seek(self._at)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer as far as the file reaches: Parquet's readers take a shorter read for the file's end."""
        done = 0
        with _failures():
            while done < len(buffer):
                found = self._stream.readNBytes(min(CHUNK_BYTES, len(buffer) - done))
                if not found:
                    break
                buffer[done : done + len(found)] = found
                done += len(found)
        self._at += done
        return done

    def close(self) -> None:
        if not self.closed:
            with _failures():
                self._stream.close()
        super().close()


class _Output(io.RawIOBase):
    """A new file that Hadoop writes, as a Python file object."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        given = memoryview(content)
        with _failures():
            for start in range(0, len(given), CHUNK_BYTES):
                self._stream.write(bytes(given[start : start + CHUNK_BYTES]))
        return len(given)

    def close(self) -> None:
        if not self.closed:
            with _failures():
                self._stream.close()
        super().close()


@contextmanager
def _failures() -> Iterator[None]:
    """Turns failures of Java into OSError, or FileNotFoundError if a file is missing."""
    try:
        yield
    except Py4JJavaError as problem:
        name = problem.java_exception.getClass().getSimpleName()
        kind = FileNotFoundError if name == "FileNotFoundException" else OSError
        raise kind(_reason(problem)) from problem


def _reason(problem: Py4JJavaError) -> str:
    """The first line of a Java error, without the class name in front."""
    lines = str(problem.java_exception.toString()).splitlines()
    return lines[0].rpartition("Exception: ")[2].strip(" .")
