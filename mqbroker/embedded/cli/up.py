"""Runs the broker on this machine until Ctrl-C, and prints its addresses and a first call."""

import argparse

from mqbroker.embedded.broker import Broker
from mqbroker.embedded.cli import options
from mqbroker.embedded.cli.settings import refuse_bad_settings
from mqbroker.embedded.interrupts import Interrupted, Interrupts
from mqbroker.embedded.preparation import Access
from mqbroker.embedded.waiting import say
from mqbroker.web import counts


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("mq up", description=__doc__)
    parser.add_argument("--port", type=options.port, default=8000, help="the port of the web process (default: 8000)")
    options.add_data_folder(parser)
    options.add_api_key(parser, "the key that callers will use (default: one is made)")
    parser.add_argument("--no-demo", action="store_true", help="do not start the order and coupon services")
    parser.add_argument("--processes", type=processes, default="auto", help=f"{counts.MEANING} (default: auto)")
    parser.add_argument(
        "--cells",
        type=options.positive,
        help="number of cells to try, each a database of the private server: c0 to c<N-1>; further ones are made, "
        "none is removed",
    )
    options.add_rocketmq_port(parser)
    return serve(parser.parse_args(words))


def processes(text: str) -> str:
    """A number of web processes, as text that the web process parses. Raises ArgumentTypeError for an invalid text."""
    counts.parse(text)
    return text


def serve(given: argparse.Namespace, reload: bool = False) -> int:
    """Starts, prints the addresses, serves and stops. A signal at any time is a regular end."""
    refuse_bad_settings()
    with given.folder.claimed(), Interrupts() as interrupts:
        ways = (given.processes, given.cells, given.rocketmq_port)
        broker = Broker(given.folder, given.port, interrupts, say, *ways)
        try:
            access = broker.start(given.api_key, reload)
            if not interrupts.count:
                print(addresses(broker, access), flush=True)
                if not given.no_demo:
                    broker.demonstrate()
                broker.run()
        except Interrupted:
            pass
        finally:
            if interrupts.count:
                say("Stopping.")
            broker.stop()
    return 0


def addresses(broker: Broker, access: Access) -> str:
    key_file = broker.folder.path / "secrets" / "api-key"
    user = (
        f"  user {access.console_user}, password {access.console_password} (shown once)" if access.console_user else ""
    )
    key, bearer = f"in {key_file}", f"$(cat '{key_file}')"
    if access.api_key:
        key = f"{access.api_key} (kept in {key_file})"
    elif not broker.folder.kept_secret("api-key"):
        key, bearer = "one that the database knows; with --api-key it is kept here", "<api key>"
    send = (
        f'curl -s {broker.url}/v1/messages -H "Authorization: Bearer {bearer}" '
        """-d '{"topic": "hello", "body": "hello, world"}'"""
    )
    rocketmq = f"RocketMQ 127.0.0.1:{broker.rocketmq_port}, access key and access secret: the API key"
    return "\n".join(
        [
            f"Console  {broker.url}/console/{user}",
            f"API key  {key}",
            f"Docs     {broker.url}/docs",
            *([rocketmq] if broker.rocketmq_port else []),
            f"Try      {send}",
            "Stop     Ctrl-C",
        ]
    )
