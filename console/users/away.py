"""A redirect to another host, which `mqbroker.web.own_redirects` lets through."""

from django.http import HttpResponseRedirect


class RedirectAway(HttpResponseRedirect):
    """A redirect to a host that an operator has configured, never to a host that a request names."""
