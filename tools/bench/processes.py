"""Measures CPU and memory of a command and of all processes that it starts, by kind of process."""

import contextlib
import subprocess
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

# Reading the memory of a process takes milliseconds.
SECONDS_BETWEEN_LOOKS = 0.25


@dataclass
class Use:
    """CPU seconds by kind of process, and the peak of total memory in bytes; shared pages count once."""

    cpu_seconds: dict[str, float] = field(default_factory=dict)
    peak_bytes: int = 0


def watched(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> tuple[str, Use]:
    """Runs a command. Returns its output and its resource use. Raises RuntimeError when it fails."""
    with subprocess.Popen(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        over = threading.Event()
        watcher = Watcher(process.pid)
        looking = threading.Thread(target=watcher.look_until, args=(over,))
        looking.start()
        try:
            printed, _ = process.communicate()
        finally:
            over.set()
            looking.join()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return printed, watcher.use()


class Watcher:
    """Watches a tree of processes. CPU that is used after the last look does not count, so looks are frequent."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._cpu: dict[tuple[int, float], tuple[str, float]] = {}
        self._peak = 0

    def look_until(self, over: threading.Event) -> None:
        """Looks until then."""
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            with contextlib.suppress(psutil.NoSuchProcess):
                self._look()

    def use(self) -> Use:
        """The resource use up to the last look."""
        seconds: defaultdict[str, float] = defaultdict(float)
        for kind, used in self._cpu.values():
            seconds[kind] += used
        return Use(dict(seconds), self._peak)

    def _look(self) -> None:
        root = psutil.Process(self._root)
        memory = 0
        for process in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                used = process.cpu_times()
                key = (process.pid, process.create_time())
                self._cpu[key] = (_kind(process, root), used.user + used.system)
                memory += process.memory_full_info().pss
        self._peak = max(self._peak, memory)


def _kind(process: psutil.Process, root: psutil.Process) -> str:
    """The kind of a process: Java, a Python worker of Spark, the command (or the child in which it continues), or a
    shell.
    """
    words = process.cmdline()
    if words and Path(words[0]).name == "java":
        return "java"
    if any(word.startswith("pyspark.") for word in words):
        return "workers"
    return "command" if words == root.cmdline() else "others"
