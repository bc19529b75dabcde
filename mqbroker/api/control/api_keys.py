"""API keys: create, list, change and revoke."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from access import keys
from access.audit import picture
from mqbroker.api.control import lists
from mqbroker.api.control.fields import Time, Whole, Word
from mqbroker.api.control.lists import PageQuery
from mqbroker.api.control.resource import Resource
from mqbroker.api.control.shapes import Given, Registered, Shape


class NewApiKey(Given):
    """The request to create an API key."""

    name = Word(keys.NAME, keys.NAME_RULE)
    settings = Registered(keys.FIELDS, makes=True)


class ApiKeyChange(Given):
    """The changes of an API key. A field that is left out keeps its value."""

    settings = Registered(keys.FIELDS)


class ApiKey(Shape):
    """An API key without its secret text, which the broker does not keep.

    `hint`: the last four characters of the text.
    """

    id = Whole()
    name = serializers.CharField()
    hint = serializers.CharField()
    settings = Registered(keys.FIELDS, answers=True)
    created_at = Time()
    refused = Whole(
        help_text="Requests refused because of these limits, in total; each process adds its count every few seconds."
    )
    refused_at = Time(allow_null=True)


class ApiKeyMade(ApiKey):
    """The answer with a new API key and its secret text."""

    key = serializers.CharField(help_text="`mq_…`; the key is not shown again.")


class ApiKeyList(Resource):
    actions: ClassVar = {"POST": "key.make"}

    @extend_schema(operation_id="list_api_keys", parameters=[PageQuery], responses=lists.page_of(ApiKey))
    def get(self, request: Request) -> Response:
        """Lists API keys by name."""
        return lists.by_name(ApiKey, self.query(PageQuery), keys.page)

    @extend_schema(operation_id="make_api_key", request=NewApiKey, responses={201: ApiKeyMade})
    def post(self, request: Request) -> Response:
        """Creates an API key and shows it, once.

        If this answer is lost, or is 503 `outcome_unknown`, the key may exist, and no request can show its text: revoke
        it by its name and create another.
        """
        given = self.body(NewApiKey)
        name = given.pop("name")
        with self.recorded(name) as change:
            row, key = keys.make(name, given)
            change.after = picture(row)
        return Response({**ApiKey(row).data, "key": key}, status=201)


class ApiKeyDetail(Resource):
    actions: ClassVar = {"PUT": "key.change", "DELETE": "key.revoke"}

    @extend_schema(operation_id="get_api_key", responses=ApiKey)
    def get(self, request: Request, name_or_id: str) -> Response:
        """Shows an API key by its name or id, without its secret text."""
        return Response(ApiKey(keys.find(name_or_id)).data)

    @extend_schema(operation_id="change_api_key", request=ApiKeyChange, responses=ApiKey)
    def put(self, request: Request, name_or_id: str) -> Response:
        """Changes a key's scopes, limits and expiry; also works for an expired key.

        The change applies to every request after the answer. The key's text stays; POST /v1/api-keys creates another
        key.
        """
        given = self.body(ApiKeyChange)
        with self.recorded(name_or_id) as change:
            found = keys.find(name_or_id)
            change.target, change.before = found.name, picture(found)
            row = keys.change(name_or_id, given)
            change.after = picture(row)
        return Response(ApiKey(row).data)

    @extend_schema(operation_id="revoke_api_key", responses={204: None})
    def delete(self, request: Request, name_or_id: str) -> Response:
        """Revokes a key: every request with it after the answer is refused."""
        with self.recorded(name_or_id) as change:
            found = keys.find(name_or_id)
            change.target, change.before = found.name, picture(found)
            keys.revoke(name_or_id)
        return Response(status=204)
