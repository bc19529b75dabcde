"""Lists, adds, opens, repairs and removes the cells of the data folder's broker."""

from embedded.cli import manage


def main(words: list[str]) -> int:
    """`./mq cells …` is `./mq manage cells …`; --data-dir comes first, as there."""
    folder = words[:2] if words[:1] == ["--data-dir"] else []
    return manage.main([*folder, "cells", *words[len(folder) :]])
