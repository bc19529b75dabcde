"""Threads of one process that run whole transactions with the client.

python -m tools.bench.programs.callers URL KEY THREADS SECONDS OPTIONS: one round with the client that is on PYTHONPATH;
OPTIONS are the options of its `Broker`, as JSON. Prints all latencies, the duration, and the CPU in microseconds per
transaction.
"""

import json
import sys
import threading
import time

from mqbroker_client import Broker, Producer

BODY = b"x" * 1000


def measure(producer: Producer, threads: int, seconds: float) -> tuple[list[float], float, float]:
    """The figures of one round."""
    latencies: list[float] = []
    cpu, began = time.process_time(), time.perf_counter()

    def work() -> None:
        while (start := time.perf_counter()) < began + seconds:
            producer.begin("transactions", BODY).commit()
            latencies.append(time.perf_counter() - start)

    callers = [threading.Thread(target=work) for _ in range(threads)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    return latencies, took, cpu * 1e6 / len(latencies)


if __name__ == "__main__":
    url, key, threads, seconds, options = sys.argv[1:]
    producer = Producer(Broker(url, key, **json.loads(options)), "bench")
    print(json.dumps(measure(producer, int(threads), float(seconds))))
