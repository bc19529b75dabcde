"""The command line of each process of the broker. All run by `python -m`, so that a moved checkout still starts."""

import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def python(*words: str) -> list[str]:
    return [sys.executable, *words]


def manage(*words: str) -> list[str]:
    return python("manage.py", *words)


def web(port: int, processes: int | str, reload: bool, socket: int | None = None) -> list[str]:
    options = ["--host", "127.0.0.1", "--port", str(port), "--processes", str(processes)]
    options += ["--reload"] if reload else []
    options += [] if socket is None else ["--socket", str(socket)]
    return python("-m", "mqbroker.web", *options)


def rocketmq(port: int, host: str = "127.0.0.1") -> list[str]:
    return python("-m", "mqbroker.rocketmq", "--host", host, "--port", str(port))


def worker() -> list[str]:
    return python("-m", "mqbroker.celery.worker")


def beat(schedule: Path) -> list[str]:
    return python("-m", "mqbroker.celery.beat", "--schedule", str(schedule))


def watched(command: list[str], folders: list[Path]) -> list[str]:
    """The command under a watcher that starts it again when Python code in one of the folders changes."""
    return python("-m", "watchfiles", "--filter", "python", shlex.join(command), *map(str, folders))


def demonstration(broker_url: str, *options: str) -> list[str]:
    """The command of the examples' shop. Its API key comes in SHOP_API_KEY, because each user can read arguments."""
    return python("-m", "examples.shop", *options, "--broker", broker_url)
