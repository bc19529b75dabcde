"""Namespaces: create, change, list and delete."""

import functools
from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from access import namespaces
from mqbroker.api.control import lists
from mqbroker.api.control.fields import Time, Whole
from mqbroker.api.control.lists import PageQuery
from mqbroker.api.control.resource import Resource
from mqbroker.api.control.shapes import Given, Registered, Shape


class NamespaceSettings(Given):
    """The limits of a namespace. A field that is left out keeps its value."""

    settings = Registered(namespaces.FIELDS)


class Namespace(Shape):
    """A namespace: a prefix of the names of topics and groups, to which API keys can be bound."""

    name = serializers.CharField()
    settings = Registered(namespaces.FIELDS, answers=True)
    created_at = Time()
    refused = Whole(
        help_text="Requests refused because of these limits, in total; each process adds its count every few seconds."
    )
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
        """Shows a namespace with its limits."""
        return Response(Namespace(namespaces.find(namespace)).data)

    @extend_schema(operation_id="put_namespace", request=NamespaceSettings, responses={200: Namespace, 201: Namespace})
    def put(self, request: Request, namespace: str) -> Response:
        """Creates a namespace, or changes its limits, for every request after the answer.

        POST /v1/api-keys binds a key to it: the name `orders` in a request with such a key means the topic
        `<namespace>%orders`, in every path, field and answer, and the key sees no other namespace.
        """
        given = self.body(NamespaceSettings)
        put = functools.partial(namespaces.put, namespace, given)
        return self.kept(namespace, namespaces.named, put, lambda row: Namespace(row).data)

    @extend_schema(operation_id="delete_namespace", responses={204: None})
    def delete(self, request: Request, namespace: str) -> Response:
        """Deletes a namespace; refused while API keys are bound to it. Its topics and groups stay."""
        return self.removed(namespace, lambda: namespaces.find(namespace), namespaces.remove)
