"""For tests of programs: a broker inside the process, and fixtures for pytest.

`pytest_plugins = ["mqbroker_client.contrib.testing.fixtures"]` in `conftest.py` provides the fixture `mqbroker`.
"""

from mqbroker_client.contrib.testing.memory import MemoryBroker

__all__ = ["MemoryBroker"]
