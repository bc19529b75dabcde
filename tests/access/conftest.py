"""The broker of these tests: that of the control plane's, whose half messages no check takes away."""

from tests.control.conftest import broker, operator, password

__all__ = ["broker", "operator", "password"]
