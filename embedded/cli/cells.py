"""Lists, adds, opens, repairs and removes the cells of the data folder's broker."""

from embedded.cli import manage


def main(words: list[str]) -> int:
    """`./mq cells …` is `./mq manage cells …`; --data-dir comes first, as there."""
    return manage.main(manage.behind_folder("cells", words))
