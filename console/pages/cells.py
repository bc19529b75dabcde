"""The page of the cells: where topics lie, which databases are away or behind, and moves of topics, live."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.cells import moves, stats
from console.pages import frame


@require_GET
def cells(request: HttpRequest) -> HttpResponse:
    """All cells with their topics and their problems."""
    found = stats.read()
    shown = {"found": found, "moves": moves.latest(), "every": 30 if found.move is None else 1}
    return frame.show(request, "console/cells.html", "Cells", **shown)
