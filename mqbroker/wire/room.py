"""Limits on connections: the maximum for a process, and for one address."""

import resource
from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

# A long poll holds its connection while it waits.
MOST_CONNECTIONS = 65536
# The file descriptors that are needed for everything else: the database, Redis, files.
OTHER_DESCRIPTORS = 128


def most_connections() -> int:
    """The maximum number of connections of a process, from the hard limit of file descriptors."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    granted = MOST_CONNECTIONS if hard == resource.RLIM_INFINITY else hard - OTHER_DESCRIPTORS
    return max(1, min(MOST_CONNECTIONS, granted))


class Room:
    """The connections of one process, counted by the address of the caller.

    One address may have a fixed number, and at most three quarters of all. Addresses of proxies are not limited,
    because all their callers come from there.
    """

    def __init__(self, most: int, most_per_address: int, proxies: Sequence[IPv4Network | IPv6Network] = ()) -> None:
        self._most = most
        self._most_per_address = max(1, min(most_per_address, most * 3 // 4))
        self._proxies = proxies
        self._taken = 0
        self._by_address: Counter[str] = Counter()

    def take(self, address: str) -> bool:
        """Takes a place for a connection from an address (empty if the caller has gone). False if no place is free."""
        if self._taken >= self._most:
            return False
        if self._by_address[address] >= self._most_per_address and not self._is_of_proxy(address):
            return False
        self._taken += 1
        self._by_address[address] += 1
        return True

    def give_back(self, address: str) -> None:
        """Returns the place of a connection that has ended."""
        self._taken -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def _is_of_proxy(self, address: str) -> bool:
        if not address:
            return False
        given = ip_address(address.partition("%")[0])
        mapped = given.ipv4_mapped if isinstance(given, IPv6Address) else None
        return any((mapped or given) in network for network in self._proxies)
