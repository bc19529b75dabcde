"""An operation of the tests: it publishes what it is given."""

from collections.abc import Sequence
from typing import Self

from scheduling.publish import Publication, publish_all
from store.commit.batch import Batch
from store.commit.operation import Operation


class Publish(Operation[bool]):
    """Publishes what a test hands over, near by."""

    __slots__ = ("publication",)

    def __init__(self, publication: Publication) -> None:
        super().__init__()
        self.publication = publication

    @classmethod
    async def write(cls, batch: Batch, operations: Sequence[Self]) -> None:
        await publish_all(batch, [one.publication for one in operations])
        for one in operations:
            one.result = True
