"""`path("mqbroker/", include("mqbroker_client.contrib.django.urls"))` answers checks at `/mqbroker/checks`."""

from django.urls import path

from mqbroker_client.contrib.django.views import checks

urlpatterns = [path("checks", checks, name="mqbroker-checks")]
