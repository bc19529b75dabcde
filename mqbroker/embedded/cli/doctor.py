"""Prints the findings about the data folder's broker, each with its reason and its remedy."""

import argparse
import os

from mqbroker.embedded.cli import manage, options
from mqbroker.embedded.errors import CannotStart
from mqbroker.embedded.folder import DataFolder


def main(words: list[str]) -> int:
    """`./mq doctor …` is `./mq manage doctor …`; --data-dir comes first in both.

    Raises CannotStart if no broker has run on the data folder.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    options.add_data_folder(parser)
    folder: DataFolder = parser.parse_known_args(words)[0].folder
    if not os.environ.get("DATABASE_URL") and not (folder.path / "lock").exists():
        up = f"{os.environ.get('MQ_COMMAND', './mq')} up"
        raise CannotStart(f"No broker has run on {folder.path}: `{up}` starts one, --data-dir names another folder.")
    return manage.main(manage.behind_folder("doctor", words))
