"""Options that several commands share, and paths as the user gives them."""

import argparse
import os
import re
from pathlib import Path

from mqbroker.embedded.commands import ROOT
from mqbroker.embedded.folder import DataFolder

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def place_given(text: str) -> Path | str:
    """A path from the folder in which ./mq was called, or a URL unchanged."""
    return text if URL.match(text) else path_given(text).resolve()


def path_given(text: str) -> Path:
    """A path from the folder in which ./mq was called. A URL is refused: as a path it would name a folder, too."""
    if URL.match(text):
        raise argparse.ArgumentTypeError(f"{text} is a URL: give a folder of this machine.")
    return Path(os.environ.get("MQ_CALLED_FROM", ".")).joinpath(Path(text).expanduser()).absolute()


def data_folder(text: str) -> DataFolder:
    return DataFolder(path_given(text))


def port(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{number} is no port: give a number from 1 to 65535.")
    return number


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is too few: give a whole number from 1 on.")
    return number


def add_data_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir",
        type=data_folder,
        default=os.environ.get("MQBROKER_DATA_DIR") or str(ROOT / ".mqbroker"),
        help="the folder of all data (default: .mqbroker beside manage.py)",
        metavar="FOLDER",
        dest="folder",
    )


def add_rocketmq_port(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rocketmq-port",
        type=port,
        help="serve RocketMQ 5's clients at this port, over gRPC (default: no port)",
        metavar="PORT",
    )


def add_api_key(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Adds the option for an API key, which may also come from the environment: arguments are visible to all users."""
    parser.add_argument(
        "--api-key",
        metavar="KEY",
        default=os.environ.get("MQBROKER_API_KEY") or None,
        help=f"{meaning}; or MQBROKER_API_KEY",
    )


def asks_for_help(words: list[str]) -> bool:
    """Whether the words ask for help; for commands whose options belong to a program that may not be installed yet."""
    own = words[: words.index("--")] if "--" in words else words
    return not {"-h", "--help"}.isdisjoint(own)
