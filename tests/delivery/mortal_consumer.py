"""A consumer in a process of its own that may be killed at any moment: it writes down what it does."""

import itertools
import os
import random
import sys
import time
from collections.abc import Sequence
from http.client import HTTPException

from tests.broker.wire import Document, Wire
from tests.delivery.diaries import Step

MAX_MESSAGES = 8
# The longest that its work with what it received takes: here most kills find it.
WORK_SECONDS = 0.15


class Life:
    """One consumer from its start to its death."""

    def __init__(self, diary: str, topic: str, group: str, key: str, invisible_seconds: float, urls: Sequence[str]):
        # Written at once and without a buffer: what is written outlives kill -9.
        self._diary = os.open(diary, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._wires = itertools.cycle([Wire(url, key) for url in urls])
        self._wire = next(self._wires)
        self._group = f"/v1/consumer-groups/{group}"
        self._asked = {
            "topic": topic,
            "max_messages": MAX_MESSAGES,
            "invisible_seconds": invisible_seconds,
            "wait_seconds": 1,
        }

    def live(self) -> None:
        """Consumes for ever: most messages are acked, poison is given back, and now and then one is forgotten."""
        while True:
            entries = self._post("receive", self._asked).get("messages", [])
            if not entries:
                continue
            self._write("took", entries)
            time.sleep(random.uniform(0, WORK_SECONDS))
            poison = [entry for entry in entries if entry["message"]["body"].startswith("poison")]
            done = [entry for entry in entries if entry not in poison and random.random() > 0.02]
            self._settle("ack", done)
            self._settle("nack", poison, delay_seconds=0)

    def _settle(self, verb: str, entries: list[Document], **more: object) -> None:
        if not entries:
            return
        self._write(f"{verb}ing", entries)
        handles = {entry["receipt_handle"]: entry for entry in entries}
        answer = self._post(verb, {"receipt_handles": list(handles), **more})
        results = answer.get("results", [])
        self._write(f"{verb}ed", [handles[one["receipt_handle"]] for one in results if one["status"] == 200])

    def _post(self, verb: str, document: Document) -> Document:
        """The answer; nothing when there is none, and then the other web process is asked from now on."""
        try:
            answer = self._wire.post(f"{self._group}/{verb}", document)
        except (OSError, HTTPException):
            self._wire = next(self._wires)
            return {}
        return answer.document if answer.status == 200 else {}

    def _write(self, verb: str, entries: list[Document]) -> None:
        now = time.time()
        steps = (Step(now, verb, entry["message"]["message_id"], entry["delivery_attempt"]) for entry in entries)
        os.write(self._diary, "".join(map(str, steps)).encode())


if __name__ == "__main__":
    _, diary, topic, group, key, invisible_seconds, *urls = sys.argv
    Life(diary, topic, group, key, float(invisible_seconds), urls).live()
