"""Namespaces: made, changed, listed and taken away."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from access import namespaces
from access.audit import picture
from mqbroker.api.control import lists
from mqbroker.api.control.fields import Time, Whole
from mqbroker.api.control.lists import PageQuery
from mqbroker.api.control.resource import Resource
from mqbroker.api.control.shapes import Given, Registered, Shape


class NamespaceSettings(Given):
    """The limits of a namespace. What is left out stays as it is."""

    settings = Registered(namespaces.FIELDS)


class Namespace(Shape):
    """A namespace: a part of the names of topics and groups, for the API keys that are bound to it."""

    name = serializers.CharField()
    settings = Registered(namespaces.FIELDS, answers=True)
    created_at = Time()
    refused = Whole(help_text="Requests that these limits refused, ever; a process adds its own every few seconds.")
    refused_at = Time(allow_null=True)


class NamespaceList(Resource):
    @extend_schema(operation_id="list_namespaces", parameters=[PageQuery], responses=lists.page_of(Namespace))
    def get(self, request: Request) -> Response:
        """Namespaces by name."""
        return lists.by_name(Namespace, self.query(PageQuery), namespaces.page)


class NamespaceDetail(Resource):
    actions: ClassVar = {"PUT": "namespace.put", "DELETE": "namespace.delete"}

    @extend_schema(operation_id="get_namespace", responses=Namespace)
    def get(self, request: Request, namespace: str) -> Response:
        """A namespace with its limits."""
        return Response(Namespace(namespaces.find(namespace)).data)

    @extend_schema(operation_id="put_namespace", request=NamespaceSettings, responses={200: Namespace, 201: Namespace})
    def put(self, request: Request, namespace: str) -> Response:
        """Makes a namespace, or changes its limits, for every request behind the answer.

        POST /v1/api-keys binds a key to it: `orders` of such a key is the topic `<namespace>%orders`, in every path,
        field and answer, and it sees no other.
        """
        given = self.body(NamespaceSettings)
        with self.recorded(namespace) as change:
            change.before = picture(self.standing(namespaces.named, namespace))
            row, made = namespaces.put(namespace, given)
            change.after = picture(row)
        return Response(Namespace(row).data, status=201 if made else 200)

    @extend_schema(operation_id="delete_namespace", responses={204: None})
    def delete(self, request: Request, namespace: str) -> Response:
        """Takes a namespace away; refused while API keys are bound to it. Its topics and groups stay."""
        return self.removed(namespace, lambda: namespaces.find(namespace), namespaces.remove)
