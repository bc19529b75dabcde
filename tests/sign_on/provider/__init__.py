"""A real identity provider for the tests of the sign-on: django-oauth-toolkit, served on a loopback address."""
