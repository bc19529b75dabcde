"""Every path of the control plane and the console; the data plane's own paths are in `mqbroker.api.routes`."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import RedirectView

from mqbroker.api.control import (
    api_keys,
    consumer_groups,
    delays,
    documents,
    endpoints,
    namespaces,
    probes,
    producer_groups,
    stats,
    subscriptions,
    topics,
    transactions,
)
from mqbroker.api.control.resource import Resource
from mqbroker.api.routes import routes
from mqbroker.errors import answer_status
from store.process import doors

# The admin's tables are registered here, because the apps do not import them: see `console.apps`.
admin.autodiscover()

handler400 = "mqbroker.errors.answer_bad_request"
handler403 = "mqbroker.errors.answer_forbidden"
handler404 = "mqbroker.errors.answer_not_found"
handler500 = "mqbroker.errors.answer_failure"


DATA_PLANE = {route.pattern: route.methods for route in routes}


def resource(route: str, view: type[Resource], name: str | None = None) -> URLPattern:
    """A path of the control plane; the data plane may serve other methods of it."""
    return path(route, view.as_view(data_plane_methods=DATA_PLANE.get(route, ())), name=name)


def wrong_method(route: str, methods: Sequence[str]) -> URLPattern:
    """A path that only the data plane serves: a request that arrives here has another method, and is refused."""

    @csrf_exempt
    def refuse(request: HttpRequest, **named: Any) -> HttpResponse:
        allowed = ", ".join(methods)
        detail = f"{request.path} has no method {request.method}: it has {allowed}."
        return answer_status(405, detail, headers={"Allow": allowed})

    return path(route, refuse)


CONTROL_PLANE = [
    resource("healthz", probes.Health),
    resource("readyz", probes.Readiness),
    resource("metrics", probes.Metrics),
    resource("v1/schema", documents.Schema, name="schema"),
    resource("v1/stats", stats.StatsDetail),
    resource("v1/topics", topics.TopicList),
    resource("v1/topics/<str:topic>", topics.TopicDetail),
    resource("v1/producer-groups", producer_groups.ProducerGroupList),
    resource("v1/producer-groups/<str:group>", producer_groups.ProducerGroupDetail),
    resource("v1/producer-groups/<str:group>/endpoints", endpoints.EndpointList),
    resource("v1/producer-groups/<str:group>/endpoints/<int:endpoint_id>", endpoints.EndpointDetail),
    resource("v1/producer-groups/<str:group>/endpoints/<int:endpoint_id>/rotate-secret", endpoints.EndpointSecret),
    resource("v1/producer-groups/<str:group>/endpoints/<int:endpoint_id>/test", endpoints.EndpointTrial),
    resource("v1/consumer-groups", consumer_groups.ConsumerGroupList),
    resource("v1/consumer-groups/<str:group>", consumer_groups.ConsumerGroupDetail),
    resource("v1/subscriptions", subscriptions.SubscriptionList),
    resource("v1/subscriptions/<str:name>", subscriptions.SubscriptionDetail),
    resource("v1/subscriptions/<str:name>/rotate-secret", subscriptions.SubscriptionSecret),
    resource("v1/transactions", transactions.TransactionList),
    resource("v1/discarded", transactions.DiscardedList),
    resource("v1/delay-levels", delays.DelayLevelList),
    resource("v1/timers", delays.TimersDetail),
    resource("v1/api-keys", api_keys.ApiKeyList),
    resource("v1/api-keys/<str:name_or_id>", api_keys.ApiKeyDetail),
    resource("v1/namespaces", namespaces.NamespaceList),
    resource("v1/namespaces/<str:namespace>", namespaces.NamespaceDetail),
    *(resource(route, view) for route, view in doors.added(doors.To.PATHS)),
]
SERVED = {str(pattern.pattern) for pattern in CONTROL_PLANE}

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("console/", admin.site.urls),
    resource("docs", documents.Docs),
    *CONTROL_PLANE,
    *(wrong_method(route, methods) for route, methods in DATA_PLANE.items() if route not in SERVED),
]
