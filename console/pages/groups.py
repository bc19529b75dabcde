"""Pages of producer groups with their endpoints, and of consumer groups with their lag."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.pages import frame
from console.reads import clock, consumers, producers


@require_GET
def all_producers(request: HttpRequest) -> HttpResponse:
    """Producer groups by name."""
    page = producers.page(request.GET.get("after", ""))
    return frame.show(
        request,
        "console/producer_groups.html",
        "Producer groups",
        now=clock.now(),
        page=page,
    )


@require_GET
def one_producer(request: HttpRequest, name: str) -> HttpResponse:
    """One producer group: what it has pending, and how its endpoints are."""
    found = producers.find(name)
    if found is None:
        return frame.not_there(request, f"Producer group {name} does not exist.", "producer_groups")
    return frame.show(
        request,
        "console/producer_group.html",
        f"Producer group {name}",
        now=clock.now(),
        producers=found,
        endpoints=producers.endpoints(found.group),
    )


@require_GET
def all_consumers(request: HttpRequest) -> HttpResponse:
    """Consumer groups by name."""
    page = consumers.page(request.GET.get("after", ""))
    return frame.show(
        request,
        "console/consumer_groups.html",
        "Consumer groups",
        now=clock.now(),
        page=page,
    )


@require_GET
def one_consumer(request: HttpRequest, name: str) -> HttpResponse:
    """One consumer group: its progress and lag in each queue."""
    found = consumers.find(name)
    if found is None:
        return frame.not_there(request, f"Consumer group {name} does not exist.", "consumer_groups")
    return frame.show(
        request,
        "console/consumer_group.html",
        f"Consumer group {name}",
        now=clock.now(),
        consumers=found,
        queues_limit=consumers.QUEUES,
    )
