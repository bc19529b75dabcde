"""Runs the order and coupon services over a number of orders, on a running broker or one of its own."""

import argparse
import subprocess

from embedded import commands, environment
from embedded.broker import Broker
from embedded.cli import foreground, options, private
from embedded.cli.settings import refuse_bad_settings
from embedded.cli.up import say
from embedded.errors import CannotStart
from embedded.folder import DataFolder, free_port
from embedded.interrupts import Interrupts


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq demo", description=__doc__)
    parser.add_argument("--orders", type=options.positive, default=100, help="how many (default: 100)")
    parser.add_argument("--broker", metavar="URL", help="of a running broker; needs --api-key")
    options.add_api_key(parser, "that the broker knows, with every scope")
    options.add_data_folder(parser)
    given = parser.parse_args(words)
    orders = ("--orders", str(given.orders))
    if given.broker and not given.api_key:
        parser.error("--broker needs --api-key: the key that this broker knows.")
    if given.broker:
        return beside(given.broker, given.api_key, orders)
    if running := running_broker(given.folder, given.api_key):
        return beside(*running, orders)
    return on_own_broker(orders, given.api_key)


def beside(broker_url: str, api_key: str, orders: tuple[str, ...]) -> int:
    """Runs the shop beside a broker that runs already."""
    return foreground.run(commands.demonstration(broker_url, *orders), environment.common() | {"SHOP_API_KEY": api_key})


def running_broker(folder: DataFolder, api_key: str | None) -> tuple[str, str] | None:
    """URL and key of the broker that runs on the data folder, or None."""
    port = folder.kept_port("web")
    if port is None or not folder.is_claimed():
        return None
    key = api_key or folder.kept_secret("api-key")
    if key is None:
        raise CannotStart(f"The broker on port {port} runs, and {folder.path} keeps no key of it: give --api-key.")
    return f"http://127.0.0.1:{port}", key


def on_own_broker(orders: tuple[str, ...], api_key: str | None) -> int:
    refuse_bad_settings()
    with private.folder() as folder, Interrupts() as interrupts:
        broker = Broker(folder, free_port(), interrupts, say)
        try:
            broker.start(api_key)
            variables = broker.environment() | {"SHOP_API_KEY": folder.secret("api-key")}
            words = commands.demonstration(broker.url, *orders)
            with subprocess.Popen(words, env=variables, cwd=commands.ROOT) as shop:
                broker.run(until=lambda: shop.poll() is not None)
                shop.terminate()
            return shop.returncode
        finally:
            broker.stop()
