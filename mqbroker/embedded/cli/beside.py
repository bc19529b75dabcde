"""Finds the running broker for a command: the broker that the options name, or the data folder's broker."""

import argparse

from mqbroker.embedded.cli import options
from mqbroker.embedded.errors import CannotStart
from mqbroker.embedded.folder import DataFolder


def add_arguments(parser: argparse.ArgumentParser, scopes: str) -> None:
    """Adds the options for the broker's URL and key."""
    parser.add_argument("--broker", metavar="URL", help="the URL of a running broker; needs --api-key")
    options.add_api_key(parser, f"that the broker knows, {scopes}")
    options.add_data_folder(parser)


def broker(parser: argparse.ArgumentParser, given: argparse.Namespace) -> tuple[str, str] | None:
    """URL and key of the broker; None when no broker is named and none runs on the data folder."""
    if given.broker and not given.api_key:
        parser.error("--broker needs --api-key: the key that this broker knows.")
    if given.broker:
        return given.broker, given.api_key
    return on_folder(given.folder, given.api_key)


def on_folder(folder: DataFolder, api_key: str | None) -> tuple[str, str] | None:
    """URL and key of the broker that runs on the data folder; None if no broker runs there."""
    port = folder.kept_port("web")
    if port is None or not folder.is_claimed():
        return None
    key = api_key or folder.kept_secret("api-key")
    if key is None:
        raise CannotStart(f"The broker on port {port} runs, and {folder.path} keeps no key of it: give --api-key.")
    return f"http://127.0.0.1:{port}", key
