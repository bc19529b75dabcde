"""Runs the order and coupon services over a number of orders, on a running broker, or on a broker that it starts."""

import argparse
import subprocess

from mqbroker.embedded import commands, environment
from mqbroker.embedded.broker import Broker
from mqbroker.embedded.cli import beside, foreground, options, private
from mqbroker.embedded.cli.settings import refuse_bad_settings
from mqbroker.embedded.folder import free_port
from mqbroker.embedded.interrupts import Interrupts
from mqbroker.embedded.waiting import say


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq demo", description=__doc__)
    parser.add_argument("--orders", type=options.positive, default=100, help="the number of orders (default: 100)")
    beside.add_arguments(parser, "with every scope")
    given = parser.parse_args(words)
    orders = ("--orders", str(given.orders))
    if running := beside.broker(parser, given):
        return beside_broker(*running, orders)
    return on_own_broker(orders, given.api_key)


def beside_broker(broker_url: str, api_key: str, orders: tuple[str, ...]) -> int:
    """Runs the shop beside a broker that runs already."""
    return foreground.run(commands.demonstration(broker_url, *orders), environment.common() | {"SHOP_API_KEY": api_key})


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
