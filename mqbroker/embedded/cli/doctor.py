"""Says what is out of order at the data folder's broker, why, and what mends it."""

from mqbroker.embedded.cli import manage


def main(words: list[str]) -> int:
    """`./mq doctor …` is `./mq manage doctor …`; --data-dir comes first, as there."""
    return manage.main(manage.behind_folder("doctor", words))
