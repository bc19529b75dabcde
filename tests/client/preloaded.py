"""A program that uses its Broker before it forks workers, as under gunicorn's preload or in Celery's prefork pool."""

import json
import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from mqbroker_client import Broker, Message, Producer

FORKS = 20

_processes = multiprocessing.get_context("fork")
producer = Producer(Broker(sys.argv[1], os.environ["API_KEY"]), "preloaded")
topic, WORKERS, SENDS = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def send(count: int) -> list[bool]:
    """For each of so many sends, whether the answer was its own."""
    messages = [Message(topic, b"order") for _ in range(count)]
    return [producer.send_message(message).message_id == message.message_id for message in messages]


def together() -> list[bool]:
    """Workers and their parent send at the same time, over what the parent had opened before the fork."""
    with ThreadPoolExecutor(WORKERS) as threads:
        answers = list(threads.map(send, [2] * WORKERS))
    with _processes.Pool(WORKERS) as pool:
        theirs = pool.map_async(send, [SENDS] * WORKERS, chunksize=1)
        answers += [send(SENDS), *theirs.get()]
    return [own for answer in answers for own in answer]


def among_busy_threads() -> list[int]:
    """The exit codes of workers that are forked while threads of their parent send, and send themselves."""
    with busy_threads():
        workers = [_processes.Process(target=send, args=(3,)) for _ in range(FORKS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return [worker.exitcode if worker.exitcode is not None else -1 for worker in workers]


@contextmanager
def busy_threads() -> Iterator[None]:
    enough = threading.Event()

    def work() -> None:
        while not enough.is_set():
            send(1)

    with ThreadPoolExecutor(WORKERS) as threads:
        for _ in range(WORKERS):
            threads.submit(work)
        try:
            yield
        finally:
            enough.set()


if __name__ == "__main__":
    answers = together()
    print(json.dumps({"sent": len(answers), "own": sum(answers), "codes": sorted(set(among_busy_threads()))}))
