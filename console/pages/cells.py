"""The page of the cells: where topics lie, and which databases are away or lag."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from cells import stats
from console.pages import frame


@require_GET
def cells(request: HttpRequest) -> HttpResponse:
    """All cells with their topics, and what is wrong with them."""
    return frame.show(request, "console/cells.html", "Cells", found=stats.read())
