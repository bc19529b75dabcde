"""Homes: topics with the same home are in one cell, and move together."""

from collections.abc import Sequence

from django.db.models import Q

from access import audit
from access.audit import Signature
from console.cells.errors import CellIllegal
from store import registry as topic_registry
from store.cells import copies
from store.models import Cell, Topic
from store.naming import topics


def topics_of(homes: Sequence[str]) -> Sequence[Topic]:
    """The users' topics with these homes. A topic without a home counts as a home by its own name."""
    found = topic_registry.of_users().filter(Q(home__in=homes) | Q(home="", name__in=homes))
    return list(found.order_by("name"))


def set_home(home: str, names: Sequence[str], signature: Signature) -> Sequence[Topic]:
    """Gives topics this home; topics that have the home already keep it. Returns all topics of the home.

    Raises TopicIllegal, TopicNotExist, or CellIllegal unless all topics of the home lie in one cell.
    """
    topics.validate_sending(home)
    with audit.change(signature, "topic.home", home) as change:
        found = [topic_registry.find(name) for name in names]
        for topic in found:
            topics.validate_sending(topic.name)
        together = {topic.id: topic for topic in (*found, *topics_of([home]))}
        require_whole(home, list(together.values()))
        change.before = {topic.name: topic.home for topic in found}
        Topic.objects.filter(id__in=list(together)).update(home=home)
        copies.write(Topic, list(together))
        change.after = {topic.name: home for topic in found}
    return topics_of([home])


def require_whole(home: str, found: Sequence[Topic]) -> None:
    """Raises CellIllegal unless topics of one home lie in one cell."""
    of_cells = {topic.cell_id: topic.name for topic in reversed(found)}
    if len(of_cells) > 1:
        names = dict(Cell.objects.filter(id__in=list(of_cells)).values_list("id", "name"))
        places = ", ".join(f"{topic} in {names.get(cell, cell)}" for cell, topic in sorted(of_cells.items()))
        raise CellIllegal(
            f"Topics of the home {home} lie in several cells ({places}): all topics of a home must lie in one cell."
        )
