"""Pages of subscriptions: the servers to which messages are pushed, and the health of these servers."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from console.pages import frame
from delivery.push import registry
from store.stats import now

PAGE = 25


@require_GET
def all_subscriptions(request: HttpRequest) -> HttpResponse:
    """Subscriptions by name."""
    rows, shown = frame.by_name(request, registry.page, PAGE)
    return frame.show(request, "console/subscriptions.html", "Subscriptions", subscriptions=rows, **shown)


@require_GET
def one(request: HttpRequest, name: str) -> HttpResponse:
    """The page of one subscription: its topic and URL, the lag of its group, and the health of its server."""
    subscription = registry.named(name)
    if subscription is None:
        return frame.not_there(request, f"Subscription {name} does not exist.", "subscriptions")
    return frame.show(
        request,
        "console/subscription.html",
        f"Subscription {name}",
        now=now(),
        subscription=subscription,
        lag=registry.lag(subscription),
    )
