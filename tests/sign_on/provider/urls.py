"""The paths of the provider: OpenID Connect, the sign-in of its users, and what tests change there."""

import json

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt


@csrf_exempt
def roles(request: HttpRequest, name: str) -> HttpResponse:
    """Gives a user these roles and no others."""
    user = User.objects.get(username=name)
    user.groups.set([Group.objects.get_or_create(name=role)[0] for role in json.loads(request.body)])
    return HttpResponse(str(user.pk))


@csrf_exempt
def end_sessions(request: HttpRequest) -> HttpResponse:
    """Ends all sessions at the provider."""
    Session.objects.all().delete()
    return HttpResponse()


urlpatterns = [
    # A browser asks for it.
    path("favicon.ico", lambda _: HttpResponse(status=204)),
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
    path("admin/", admin.site.urls),
    path("roles/<str:name>/", roles),
    path("end-sessions/", end_sessions),
]
