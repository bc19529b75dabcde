"""Jobs of procrastinate: one `defer_async` for each job, and a worker that runs eight jobs at once and deletes them."""

import asyncio

from procrastinate import App, PsycopgConnector

from tools.bench import load
from tools.bench.jobs import DATABASE_URL, PRODUCERS, Times, paced

CONCURRENCY = 8

app = App(connector=PsycopgConnector(conninfo=DATABASE_URL, min_size=PRODUCERS, max_size=PRODUCERS + 4))


def prepare() -> None:
    """Creates procrastinate's tables."""

    async def create() -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    load.run(create())


def produce() -> None:
    """Defers jobs until the process is stopped."""

    async def producer(number: int, times: Times) -> None:
        deferrer = app.configure_task("job")
        async for due in paced(number):
            await deferrer.defer_async(due=due)
            times.note(due)

    async def all_producers() -> None:
        times = Times("produce")
        async with app.open_async():
            await asyncio.gather(*(producer(number, times) for number in range(PRODUCERS)))

    load.run(all_producers())


def consume() -> None:
    """Runs jobs until the process is stopped."""
    times = Times("consume")

    @app.task(name="job")
    async def job(due: float) -> None:
        times.note(due)

    async def work() -> None:
        async with app.open_async():
            await app.run_worker_async(concurrency=CONCURRENCY, delete_jobs="successful")

    load.run(work())
