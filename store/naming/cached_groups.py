"""Groups of one kind by name, cached for seconds by each process: the common part of producer and consumer groups."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import quote

from django.conf import settings
from django.db.models import Model

from store.cells import cells, copies
from store.db import connections
from store.db.statements import NoRow, Statement
from store.db.ttl_cache import CONFIGURATION_SECONDS, TtlCache
from store.errors import GroupNotExist, MessageIllegal
from store.naming import names

Facts = TypeVar("Facts")

# Attempts to create a group, if another process deletes it each time.
MAX_ATTEMPTS = 3


@dataclass
class Groups(Generic[Facts]):
    """The groups of one kind: producer or consumer groups. `found` is the statement that finds a group by name."""

    kind: str
    max_characters: int
    found: Statement[Facts]
    created: Statement[NoRow]
    model: type[Model]
    _by_name: TtlCache[str, Facts] = field(default_factory=lambda: TtlCache(CONFIGURATION_SECONDS))
    # Thousands of requests may use a new group at once: one request creates the group, and the others wait for its
    # result.
    _making: TtlCache[str, Facts] = field(default_factory=lambda: TtlCache(0))

    def is_name(self, name: str) -> bool:
        """Whether a group of this kind may have this name."""
        return names.is_name(name, self.max_characters)

    def validate_name(self, name: str, called: str) -> None:
        """Raises MessageIllegal unless a group may have this name. `called` is the name of the field."""
        if not self.is_name(name):
            raise MessageIllegal(
                f"{called} {name[:140]!r} is not a valid group name: {names.rule(self.max_characters)}."
            )

    def known(self, name: str) -> Facts | None:
        """The group of this name, if this process has it in its cache; else None."""
        return self._by_name.known(name)

    async def find(self, name: str) -> Facts | None:
        """The group of this name, or None."""

        async def look_up() -> Facts | None:
            rows = await connections.read_control(self.found, {"name": name})
            return rows[0] if rows else None

        # An invalid name has no group. It is not looked up, because it may have any length and characters that
        # PostgreSQL refuses.
        if not self.is_name(name):
            return None
        return await self._by_name.get(name, lambda: cells.or_last(self._by_name, name, look_up))

    async def existing(self, name: str) -> Facts:
        """The group of this name. Raises GroupNotExist if there is none."""
        group = await self.find(name)
        if group is None:
            raise self.absent(name)
        return group

    async def at_first_use(self, name: str, **fields: object) -> Facts:
        """The group of this name. With AUTO_CREATE_TOPICS a missing group is created, with the parameters of `created`.

        Raises GroupNotExist.
        """
        if (group := await self.find(name)) is not None:
            return group
        if not settings.AUTO_CREATE_TOPICS:
            raise self.absent(name)
        return await self.make(name, **fields)

    def absent(self, name: str) -> GroupNotExist:
        """The refusal for a group that does not exist."""
        way = f"PUT /v1/{self.kind}-groups/{quote(name)} makes it"
        return GroupNotExist(f"There is no {self.kind} group {name}: {way}.")

    def forget(self, name: str) -> None:
        """Drops a group from the cache, after this process has changed it."""
        self._by_name.forget(name)

    def forget_all(self) -> None:
        """Drops all groups from the cache, because another process may have changed them."""
        self._by_name.forget_all()

    async def make(self, name: str, **fields: object) -> Facts:
        """The group of this name; a missing group is created with the parameters of `created`."""

        async def made_here() -> Facts | None:
            # Another process may delete the group at this moment.
            for _ in range(MAX_ATTEMPTS):
                await copies.first_use(self.created, {"name": name, **fields}, self.model, name=name)
                self.forget(name)
                if (made := await self.find(name)) is not None:
                    return made
            raise self.absent(name)

        group = await self._making.get(name, made_here)
        assert group is not None
        return group
