"""Every path of the control plane and the console; the data plane's paths are in `mqbroker.api.routes`."""

from django.contrib import admin
from django.urls import path

urlpatterns = [
    path("console/", admin.site.urls),
]
