"""A web process that waits for a processor is slow: it loses no batch again and again, and refuses nobody."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from mqbroker.embedded.processes import identity
from tests.broker import characters, databases
from tests.broker.load import Crowd, at_once
from tests.broker.running import RunningBroker

CALLERS = 12
MESSAGES = 40
SECONDS = 10.0
LAST = max(os.sched_getaffinity(0))
# The processor is taken for 0.7 s of each 0.8 s: for longer than the server first waits for the next step of a batch.
LOOP = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
end = time.monotonic() + float(sys.argv[2])
while (now := time.monotonic()) < end:
    if now % 0.8 > 0.7:
        time.sleep(0.8 - now % 0.8)
"""


def may_be_real_time() -> bool:
    """Whether a program that this process starts may have real-time priority: in some containers root may not."""
    program = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


pytestmark = [
    pytest.mark.chaos,
    pytest.mark.alone,
    pytest.mark.skipif(not may_be_real_time(), reason="no program may have real-time priority here"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="all others need a processor of their own"),
]


@pytest.fixture
def slow_broker(prepared: str, tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker of one web process, which may use the last processor alone."""
    with (
        databases.copied(prepared) as url,
        RunningBroker(tmp_path / "broker", url, os.environ["REDIS_URL"], tasks=False) as broker,
    ):
        for number in identity.session_members(broker.webs[0].pid):
            psutil.Process(number).cpu_affinity([LAST])
            for thread in psutil.Process(number).threads():
                os.sched_setaffinity(thread.id, {LAST})
        yield broker


@contextlib.contextmanager
def busy_loops() -> Iterator[None]:
    """Two programs that want all of the web process's processor, before it. They end by themselves, too."""
    words = [sys.executable, "-c", LOOP, str(LAST), str(2 * SECONDS)]
    loops = [subprocess.Popen(words) for _ in range(2)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def test_no_transaction_is_refused_beside_two_programs_that_take_the_processor(slow_broker: RunningBroker) -> None:
    topic, group = characters.name("orders"), characters.name("shop")
    document = {"producer_group": group, "messages": [{"topic": topic, "body": "order"}] * MESSAGES}
    answers: Counter[str] = Counter()

    async def call(crowd: Crowd, until: float) -> None:
        while time.monotonic() < until:
            status, answer = await crowd.post("/v1/transactions", document)
            answers[f"{status} {answer.get('detail', '')}".strip()] += 1

    async def begin() -> None:
        async with Crowd(slow_broker.urls) as crowd:
            # Topic and group are made at their first use.
            await crowd.post("/v1/transactions", document)
            with busy_loops():
                until = time.monotonic() + SECONDS
                await at_once(lambda _: call(crowd, until), range(CALLERS))

    asyncio.run(begin())

    print(f"{answers} within {SECONDS:.0f} s")
    assert set(answers) == {"201"}
    assert answers["201"] > CALLERS
