"""`path("mqbroker/", include("mqbroker_client.django.urls"))` answers checks at `/mqbroker/checks`."""

from django.urls import path

from mqbroker_client.django.views import checks

urlpatterns = [path("checks", checks, name="mqbroker-checks")]
