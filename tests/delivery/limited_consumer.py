"""Consumers of a group with limits, in a process that may be killed at any moment: they write down what they do."""

import os
import random
import sys
import threading
import time
from http.client import HTTPException

from tests.broker.wire import Document, Wire

THREADS = 5
MAX_MESSAGES = 8
# The longest that the work with one answer takes.
WORK_SECONDS = 0.05
INVISIBLE_SECONDS = 5.0


def consume(diary: int, topic: str, group: str, key: str, url: str) -> None:
    """Consumes for ever. A line has a time, `took` or `done`, the number of the delivery, and its value."""
    wire = Wire(url, key)
    asked = {"topic": topic, "max_messages": MAX_MESSAGES, "invisible_seconds": INVISIBLE_SECONDS, "wait_seconds": 1}
    while True:
        try:
            answer = wire.post(f"/v1/consumer-groups/{group}/receive", asked)
            entries: list[Document] = answer.document["messages"] if answer.status == 200 else []
            if not entries:
                continue
            write(diary, "took", entries)
            time.sleep(random.uniform(0, WORK_SECONDS))
            write(diary, "done", entries)
            handles = [entry["receipt_handle"] for entry in entries]
            wire.post(f"/v1/consumer-groups/{group}/ack", {"receipt_handles": handles})
        except (OSError, HTTPException):
            wire = Wire(url, key)


def write(diary: int, verb: str, entries: list[Document]) -> None:
    """Writes a line for each delivery, at once and without a buffer: the lines outlive kill -9."""
    now = time.time()
    lines = (f"{now} {verb} {one['receipt_handle']} {one['message']['body']}\n" for one in entries)
    os.write(diary, "".join(lines).encode())


if __name__ == "__main__":
    _, path, topic, group, key, url = sys.argv
    diary = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    threads = [threading.Thread(target=consume, args=(diary, topic, group, key, url)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
