"""A URLconf of a project without the view that answers checks."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
