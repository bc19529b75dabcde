"""The health check of a container: `python -m mqbroker.alive web|worker|beat` exits with 0 while that process works.

A web process (also the one for RocketMQ's clients) and a worker write a heartbeat to the database every few seconds;
beat, which does not use the database, touches a file. This module runs without Django, because a container runs it
every few seconds.
"""

import argparse
import os
import socket
import sys
import time
from pathlib import Path

import psycopg

from mqbroker.celery import beating
from store.db.statements import Statement

# A worker writes a heartbeat with each task that beat sends it, every three seconds.
SECONDS = 30.0
CONNECT_SECONDS = 3


FIND_HEARTBEAT = Statement(__file__, "find_heartbeat", one=bool)


def main(words: list[str]) -> int:
    """Returns 0 if the process works; otherwise prints the reason and returns 1."""
    parser = argparse.ArgumentParser("mqbroker.alive", description=__doc__)
    parser.add_argument("kind", choices=("web", "worker", "beat"))
    parser.add_argument("--schedule", type=Path, help="the file of beat's times; beat needs it")
    given = parser.parse_args(words)
    if given.kind == "beat" and given.schedule is None:
        parser.error("beat needs --schedule")
    try:
        is_alive = beats(given.schedule) if given.kind == "beat" else notes_itself(given.kind)
    except (psycopg.Error, OSError) as problem:
        print(" ".join(str(problem).split()), file=sys.stderr)
        return 1
    if not is_alive:
        print(f"The {given.kind} on {socket.gethostname()} has had no heartbeat for {SECONDS:g} s.", file=sys.stderr)
    return 0 if is_alive else 1


def beats(schedule: Path) -> bool:
    """Whether beat has touched its file within this number of seconds."""
    return time.time() - beating.touched(schedule).stat().st_mtime < SECONDS


def notes_itself(kind: str) -> bool:
    """Whether a process of this kind on this host has written a heartbeat within this number of seconds."""
    url = os.environ["DATABASE_URL"]
    asked = {"kind": kind, "host": socket.gethostname(), "seconds": SECONDS}
    with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as session:
        [is_alive] = session.cursor(row_factory=FIND_HEARTBEAT.rows).execute(FIND_HEARTBEAT.sql(), asked).fetchall()
    return is_alive


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
