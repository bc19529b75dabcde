"""The command line of each process of the broker. All start as `python -m`, so that a moved checkout still runs."""

import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


# Waiting consumers hold a connection each. At granian's own limit, 1024 by the number of workers, a worker takes no
# further connection: whoever sends would wait for them.
MAX_CONNECTIONS_PER_WEB_PROCESS = 65536


def python(*words: str) -> list[str]:
    return [sys.executable, *words]


def manage(*words: str) -> list[str]:
    return python("manage.py", *words)


def web(port: int, processes: int, reload: bool) -> list[str]:
    options = ["--interface", "asgi", "--host", "127.0.0.1", "--port", str(port), "--workers", str(processes)]
    options += ["--loop", "uvloop", "--no-ws", "--log-level", "warning"]
    options += ["--log-config", "mqbroker/granian_log.json", "--workers-kill-timeout", "2"]
    options += ["--backpressure", str(MAX_CONNECTIONS_PER_WEB_PROCESS)]
    if reload:
        options += ["--reload"]
    elif processes > 1:
        # A single worker's death ends granian, and we start it again at once; one of several is replaced in place.
        options += ["--respawn-failed-workers", "--respawn-interval", "0.2"]
    return python("-m", "granian", *options, "mqbroker.asgi:application")


def worker() -> list[str]:
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    return celery("worker", "--pool", "threads", "--concurrency", "8", *quiet, "-l", "WARNING")


def beat(schedule: Path) -> list[str]:
    return celery("beat", "--schedule", str(schedule), "--pidfile=", "-l", "WARNING")


def celery(*words: str) -> list[str]:
    """Without its banner, which is no event."""
    return python("-m", "celery", "--quiet", "-A", "mqbroker", *words)


def watched(command: list[str], folders: list[Path]) -> list[str]:
    """The command, started again whenever Python code in one of the folders changes."""
    return python("-m", "watchfiles", "--filter", "python", shlex.join(command), *map(str, folders))


def demonstration(broker_url: str, *options: str) -> list[str]:
    """It finds its API key in SHOP_API_KEY: everybody on the machine can read arguments."""
    return python("-m", "examples.shop", *options, "--broker", broker_url)
