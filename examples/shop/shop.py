"""The shop: its two services as processes of their own, and their books."""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from mqbroker_client import Admin, Broker

from examples.shop.coupon_book import CouponBook
from examples.shop.order_book import OrderBook

# A service finishes its request, which may be a try at a broker that is gone.
STOP_SECONDS = 8.0


class ShopFailed(Exception):
    """A service is not running, with the reason on its standard error."""


@dataclass(frozen=True)
class Names:
    """The names of this shop's topic and groups; each run has its own."""

    run: str

    @property
    def topic(self) -> str:
        return f"demo-orders{self._suffix}"

    @property
    def producer_group(self) -> str:
        return f"demo-shop{self._suffix}"

    @property
    def consumer_group(self) -> str:
        return f"demo-coupons{self._suffix}"

    @property
    def _suffix(self) -> str:
        return f"-{self.run}" if self.run else ""


@dataclass
class Service:
    """A process that prints "ready" once it serves, and stops at the end of its standard input.

    Use as a context, which stops it.
    """

    name: str
    process: subprocess.Popen[str]
    #: The rest of the line "ready".
    ready: str = ""

    @classmethod
    def start(cls, name: str, api_key: str, *options: object) -> Self:
        process = subprocess.Popen(
            [sys.executable, "-m", f"examples.shop.{name}", *map(str, options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # The key is not among the arguments, which any process on the machine can read. Modules are found where
            # this process finds them.
            env={**os.environ, "SHOP_API_KEY": api_key, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            # A Ctrl-C at the terminal reaches only the shop, which stops its services in order.
            start_new_session=True,
        )
        return cls(name, process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait_until_ready(self) -> None:
        assert self.process.stdout
        word, _, self.ready = self.process.stdout.readline().strip().partition(" ")
        if word != "ready":
            raise ShopFailed(f"the service {self.name} did not start; see above")

    def require(self) -> None:
        if self.process.poll() is not None:
            raise ShopFailed(f"the service {self.name} ended with code {self.process.returncode}")

    def ask_to_stop(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    def stop(self) -> None:
        self.ask_to_stop()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass
class Shop:
    """Use as a context: the services run inside of it and are stopped at its end."""

    broker: Broker
    api_key: str
    names: Names
    workers: int
    data_dir: Path | None = None
    #: Where the order service listens, and the broker asks it.
    host: str = "127.0.0.1"
    orders: Service = field(init=False)
    coupons: Service = field(init=False)
    _ending: ExitStack = field(init=False, default_factory=ExitStack)

    def __enter__(self) -> Self:
        with ExitStack() as ending:
            folder = self.data_dir or Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="shop-")))
            folder.mkdir(parents=True, exist_ok=True)
            Admin(self.broker).create_topic(self.names.topic)
            Admin(self.broker).create_producer_group(self.names.producer_group)
            Admin(self.broker).create_consumer_group(self.names.consumer_group)
            self._open(folder, ending)
            self._ending = ending.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Both at once: they end their last work in parallel.
        self.orders.ask_to_stop()
        self.coupons.ask_to_stop()
        self._ending.close()

    @property
    def url(self) -> str:
        return self.orders.ready

    def require_services(self) -> None:
        self.orders.require()
        self.coupons.require()

    def paid(self) -> set[str]:
        return self._orders_book.paid()

    def deliveries(self) -> dict[str, int]:
        return self._coupons_book.deliveries()

    def _open(self, folder: Path, ending: ExitStack) -> None:
        orders, coupons = folder / "orders.sqlite3", folder / "coupons.sqlite3"
        common = ("--broker", self.broker.url, "--topic", self.names.topic)
        self.coupons = Service.start(
            "coupons", self.api_key, *common, "--group", self.names.consumer_group, "--database", coupons
        )
        ending.enter_context(self.coupons)
        self.orders = Service.start(
            "orders",
            self.api_key,
            *common,
            "--group",
            self.names.producer_group,
            "--database",
            orders,
            "--host",
            self.host,
            "--workers",
            self.workers,
        )
        ending.enter_context(self.orders)
        self.coupons.wait_until_ready()
        self.orders.wait_until_ready()
        self._orders_book = ending.enter_context(closing(OrderBook(orders)))
        self._coupons_book = ending.enter_context(closing(CouponBook(coupons)))
