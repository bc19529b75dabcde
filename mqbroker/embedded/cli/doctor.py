"""Prints the findings about the data folder's broker, with their reasons and how to mend them."""

from mqbroker.embedded.cli import manage


def main(words: list[str]) -> int:
    """`./mq doctor …` is `./mq manage doctor …`; --data-dir comes first, as there."""
    return manage.main(manage.behind_folder("doctor", words))
