"""Writes an archive of the Java classes that Spark loads, after the first command: later starts of Spark are shorter.

Without the archive Java reads and links 20,000 classes at each start of Spark: 6 s of an export of 10 s.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark import SparkContext

from analytics import java
from analytics.java import BUNDLED_JAVA, Java
from analytics.submit import is_submitted

# Spark's scripts start Java with these options, in addition to the scripts' own options.
OPTIONS = "SPARK_SUBMIT_OPTS"
# How many seconds a finished command may wait for the archive, and after how many it prints that it waits.
END_SECONDS = 60.0
SAID_SECONDS = 10.0


@contextmanager
def kept(runtime: Java, end_seconds: float = END_SECONDS) -> Iterator[None]:
    """If Java has no archive in this block, Java writes one after the block has ended without a failure.

    Without an archive, or without a right to write one, the command does the same work, and the next command tries to
    write the archive.
    """
    if is_submitted(os.environ) or OPTIONS in os.environ or java.archive(runtime).exists() or not _is_writable():
        yield
        return
    with tempfile.TemporaryDirectory(dir=java.CLASSES, ignore_cleanup_errors=True) as folder:
        draft, has_base = Path(folder, "draft.jsa"), _has_base(runtime)
        os.environ[OPTIONS] = java.keeping(runtime, draft) if has_base else ""
        try:
            yield
            sys.stdout.flush()
            # The command has done its work, so after Ctrl-C only the archive is missing.
            with suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
                _end(end_seconds)
                if not has_base:
                    subprocess.run([runtime.executable, "-Xshare:dump"], capture_output=True, timeout=end_seconds)
                if draft.exists():
                    draft.rename(java.archive(runtime))
        finally:
            del os.environ[OPTIONS]
            _kill()


def _is_writable() -> bool:
    with suppress(OSError):
        java.CLASSES.mkdir(exist_ok=True)
    return os.access(java.CLASSES, os.W_OK)


def _has_base(runtime: Java) -> bool:
    """Whether Java has the archive of its own classes, on which the archive of Spark's classes is based. The wheel of
    Java lacks this archive: it is written after the first command, and Spark's archive after the second.
    """
    return runtime.executable != BUNDLED_JAVA or (BUNDLED_JAVA.parents[1] / "lib/server/classes.jsa").exists()


def _process() -> "subprocess.Popen[bytes] | None":
    """The Java of this process, if it was started."""
    gateway = SparkContext._gateway
    return None if gateway is None else gateway.proc


def _end(seconds: float) -> None:
    """Closes the standard input of Java, which then ends and writes the archive. Raises TimeoutExpired."""
    process = _process()
    if process is None or process.stdin is None:
        return
    process.stdin.close()
    try:
        process.wait(SAID_SECONDS)
    except subprocess.TimeoutExpired:
        print("mq: Java keeps Spark's classes for later starts; Ctrl-C leaves them out.", file=sys.stderr, flush=True)
        process.wait(seconds - SAID_SECONDS)


def _kill() -> None:
    """Ends a Java that still runs."""
    process = _process()
    if process and process.poll() is None:
        process.kill()
        process.wait()
