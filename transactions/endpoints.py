"""Endpoints: where the producers of a group are asked about their half messages."""

from store import database
from store.errors import MessageIllegal
from store.statements import Statement
from transactions.groups import GroupFacts

FIND_ENDPOINT = Statement(__file__, "find_endpoint")


async def of_url(group: GroupFacts, url: str) -> int:
    """The id of the group's endpoint at this URL.

    Raises MessageIllegal when the group has registered no such endpoint.
    """
    # PostgreSQL takes no NUL in a text, and no endpoint has one.
    rows = await database.read(FIND_ENDPOINT, {"group_id": group.id, "url": url}) if "\x00" not in url else ()
    if not rows:
        raise MessageIllegal(
            f"check_url {url[:200]!r} is no endpoint of the producer group {group.name}: "
            f"register it at POST /v1/producer-groups/{group.name}/endpoints."
        )
    return int(rows[0].id)
