"""Probes of the broker itself: alive, ready, and metrics for Prometheus."""

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from prometheus_client import CONTENT_TYPE_LATEST
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.monitoring import health, metrics
from mqbroker.api.control.resource import Resource
from mqbroker.api.control.shapes import Shape
from mqbroker.rights import MayMeasure
from store.errors import SystemBusy


class Alive(Shape):
    """The process answers."""

    status = serializers.CharField()


class Ready(Alive):
    """The process can do its work. The warnings name problems that make the process slower, not wrong."""

    warnings = serializers.ListField(child=serializers.CharField())


class Health(Resource):
    authentication_classes = ()
    permission_classes = ()

    @extend_schema(operation_id="healthz", tags=["health"], responses=Alive)
    def get(self, request: Request) -> Response:
        """Shows whether the process is alive, without asking its servers."""
        return Response({"status": "alive"})


class Readiness(Resource):
    authentication_classes = ()
    permission_classes = ()

    @extend_schema(operation_id="readyz", tags=["health"], responses=Ready)
    def get(self, request: Request) -> Response:
        """Shows whether the process can work: the database answers and has all migrations.

        Otherwise 503 with `reasons`.
        """
        reasons = health.reasons_not_ready()
        if reasons:
            raise SystemBusy(f"Not ready: {'; '.join(reasons)}.", reasons=reasons)
        return Response({"status": "ready", "warnings": health.warnings()})


class Metrics(Resource):
    permission_classes = (MayMeasure,)
    in_namespaces = True

    @extend_schema(operation_id="metrics", tags=["health"], responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request) -> HttpResponse:
        """The broker's metrics in Prometheus' text format, the same from every process of a port.

        A key that is bound to a namespace only gets metrics with a label `topic`, `producer_group`, `consumer_group` or
        `group`: the samples of its namespace, with names without the namespace. Metrics of the whole broker are left
        out.
        """
        return HttpResponse(metrics.exposition(self.narrowed_to), content_type=CONTENT_TYPE_LATEST)
