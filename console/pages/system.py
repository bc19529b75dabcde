"""The page of the broker's surroundings, which shows whether a problem is the broker's or its clients', and the page of
the cells.
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.cells import moves, stats
from console.monitoring import system as monitoring_system
from console.pages import frame

SECRET_WORDS = ("SECRET", "PASSWORD", "KEY", "URL")


@require_GET
def system(request: HttpRequest) -> HttpResponse:
    """Snapshots, connections, dead rows, disk and exports of one cell; Redis, processes, and the settings in force."""
    found = monitoring_system.read()
    asked = request.GET.get("cell", "")
    cell = asked if asked in found.databases else next(iter(found.databases))
    return frame.show(
        request,
        "console/system.html",
        "System",
        now=found.now,
        system=found,
        database=found.databases[cell],
        cell=cell,
        cells=list(found.databases),
        awaited_bytes=settings.RETAIN_UNTIL_EXPORTED_MAX_BYTES if settings.RETAIN_UNTIL_EXPORTED else None,
        processes=[(process, found.is_away(process)) for process in found.processes],
        settings_in_force=[
            (one, "set, and kept secret" if one.value and secret(one.name) else one.value)
            for one in settings.DECLARED_SETTINGS
        ],
    )


def secret(name: str) -> bool:
    """Whether a setting is secret, so that its value must not be shown."""
    return any(word in name for word in SECRET_WORDS)


@require_GET
def cells(request: HttpRequest) -> HttpResponse:
    """All cells with their databases, which may be away or behind, their topics, and moves of topics, live."""
    found = stats.read()
    shown = {"found": found, "moves": moves.latest(), "every": 30 if found.move is None else 1}
    return frame.show(request, "console/cells.html", "Cells", **shown)
