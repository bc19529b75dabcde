"""Threads of one process that run whole transactions with the client. Prints their rate, and the CPU per transaction.

python -m tools.bench.programs.callers URL KEY THREADS SECONDS OPTIONS: one round with the client that is on PYTHONPATH;
OPTIONS are the options of its `Broker`, as JSON.
"""

import json
import resource
import sys
import threading
import time
from statistics import median

from mqbroker_client import Broker, Producer

BODY = b"x" * 1000
WARM_UP_SECONDS = 0.5


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(producer: Producer, threads: int, seconds: float) -> dict[str, float]:
    """The figures of one round."""
    latencies: list[float] = []
    began = time.perf_counter()

    def work() -> None:
        while (start := time.perf_counter()) < began + seconds:
            producer.begin("transactions", BODY).commit()
            latencies.append(time.perf_counter() - start)

    cpu = cpu_seconds()
    callers = [threading.Thread(target=work) for _ in range(threads)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    took, cpu = time.perf_counter() - began, cpu_seconds() - cpu
    return {
        "per_second": len(latencies) / took,
        "p50_ms": 1000 * median(latencies),
        "p99_ms": 1000 * sorted(latencies)[len(latencies) * 99 // 100],
        "load_cpu_us": cpu * 1e6 / len(latencies),
    }


def main() -> None:
    url, key, threads, seconds, options = sys.argv[1:]
    producer = Producer(Broker(url, key, **json.loads(options)), "bench")
    measure(producer, int(threads), WARM_UP_SECONDS)
    print(json.dumps(measure(producer, int(threads), float(seconds))))


if __name__ == "__main__":
    main()
