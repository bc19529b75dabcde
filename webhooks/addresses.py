"""Which addresses the broker may call: public unicast addresses, and addresses in networks that the operator lists.

Without this check a registered URL could make the broker call its own database, a cloud's metadata service or any
other host that only the broker can reach.
"""

import re
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from yarl import URL

from store.process import runtime

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Networks = tuple[Network, ...]

# A URL is ASCII, so this is also its largest size in bytes: a row of the index on URLs may have 2,700 bytes.
MAX_URL_CHARACTERS = 2_048
MAX_LABEL_CHARACTERS = 63
LOOKUP_PATIENCE_SECONDS = 2.0

# `ipaddress.is_private` and `is_global` are not used: their results differ between Python releases, and they do not
# know shared address space, translation prefixes, 6to4 and multicast. Source: the IANA special-purpose registries.
_NOT_PUBLIC_IPV4 = {
    IPv4Network("0.0.0.0/8"): "an unspecified address",
    IPv4Network("10.0.0.0/8"): "a private address",
    IPv4Network("100.64.0.0/10"): "a shared address of a carrier (CGNAT)",
    IPv4Network("127.0.0.0/8"): "a loopback address",
    IPv4Network("169.254.0.0/16"): "a link-local address",
    IPv4Network("172.16.0.0/12"): "a private address",
    IPv4Network("192.0.0.0/24"): "a reserved address",
    IPv4Network("192.0.2.0/24"): "a documentation address",
    IPv4Network("192.88.99.0/24"): "a 6to4 relay address",
    IPv4Network("192.168.0.0/16"): "a private address",
    IPv4Network("198.18.0.0/15"): "a benchmarking address",
    IPv4Network("198.51.100.0/24"): "a documentation address",
    IPv4Network("203.0.113.0/24"): "a documentation address",
    IPv4Network("224.0.0.0/4"): "a multicast address",
    IPv4Network("240.0.0.0/4"): "a reserved address",
}
# Only 2000::/3 is allocated as global unicast. The listed networks give a more exact name than "a reserved address".
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NOT_PUBLIC_IPV6 = {
    IPv6Network("::/128"): "an unspecified address",
    IPv6Network("::1/128"): "a loopback address",
    IPv6Network("64:ff9b::/96"): "a NAT64 address",
    IPv6Network("64:ff9b:1::/48"): "a NAT64 address",
    IPv6Network("2001::/32"): "a Teredo address",
    IPv6Network("2001::/23"): "a reserved address",
    IPv6Network("2001:db8::/32"): "a documentation address",
    IPv6Network("2002::/16"): "a 6to4 address",
    IPv6Network("3fff::/20"): "a documentation address",
    IPv6Network("fc00::/7"): "a private address",
    IPv6Network("fe80::/10"): "a link-local address",
    IPv6Network("ff00::/8"): "a multicast address",
}
_AUTHORITY = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)


class Lookups(ThreadPoolExecutor):
    """The threads that look up hosts at registration. A slow name server occupies a thread for its whole time-out."""

    def __init__(self) -> None:
        super().__init__(max_workers=4, thread_name_prefix="webhook-registration")

    async def close(self) -> None:
        """Lets the threads end. Does not wait for look-ups that are still running."""
        self.shutdown(wait=False, cancel_futures=True)


class UrlIllegal(ValueError):
    """A URL that can't be an endpoint. The code is the API's code for a field that breaks a rule."""

    code = "message_illegal"

    def __init__(self, url: str, complaint: str) -> None:
        shown = url if len(url) <= 200 else url[:200] + "…"
        super().__init__(f"The URL {shown!r} {complaint}.")


class AddressForbidden(UrlIllegal):
    """A URL whose address the broker may not call."""

    def __init__(self, url: str, address: str, kind: str) -> None:
        super().__init__(
            url,
            f"may not be called: {address} is {kind}. Use a public address, or list its network in "
            "WEBHOOK_ALLOWED_NETWORKS",
        )


def parse_networks(text: str) -> Networks:
    """The networks of `WEBHOOK_ALLOWED_NETWORKS`, separated by commas or blanks.

    Raises ValueError about the first entry that is not a network, which stops the start of the process.
    """
    return tuple(_network(entry) for entry in re.split(r"[,\s]+", text) if entry)


def _network(entry: str) -> Network:
    try:
        network = ip_network(entry)
    except ValueError as error:
        raise ValueError(f"{entry!r} is not a network: {error}") from error
    if isinstance(network, IPv6Network) and (inside := network.network_address.ipv4_mapped):
        # A mapped address is compared by its IPv4 address, so an entry with a mapped network would never match.
        raise ValueError(f"{entry!r} is a mapped network: write {inside}/{network.prefixlen - 96}, the one inside it")
    return network


def forbidden_kind(address: Address, allowed: Networks) -> str | None:
    """The kind of a forbidden address, such as "a loopback address"; None for an address that may be called."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if any(address in network for network in allowed):
        return None
    table: Iterable[tuple[Network, str]]
    table = (_NOT_PUBLIC_IPV4 if isinstance(address, IPv4Address) else _NOT_PUBLIC_IPV6).items()
    kind = next((kind for network, kind in table if address in network), None)
    if kind is None and isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return "a reserved address"
    return kind


def literal_address(host: str) -> Address | None:
    """The address that a literal host means, in any form that glibc accepts; None for a name.

    `127.1`, `2130706433`, `0x7f.1` and `0177.0.0.1` all mean 127.0.0.1.
    """
    host = host.removesuffix(".")
    try:
        return ip_address(socket.inet_aton(host)) if ":" not in host else ip_address(host)
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=4_096)
def parse_url(url: str) -> URL:
    """The URL in the form of a call: host in ASCII, a literal address in its usual form. Raises UrlIllegal."""
    if len(url.encode(errors="replace")) > MAX_URL_CHARACTERS:
        raise UrlIllegal(url, f"is longer than {MAX_URL_CHARACTERS} bytes")
    if "\\" in url or not url.isprintable() or any(character.isspace() for character in url):
        raise UrlIllegal(url, "holds a blank, a control character or a backslash; encode it as %20, %5C, …")
    authority = _AUTHORITY.match(url)
    if authority is None:
        raise UrlIllegal(url, "does not begin with http:// or https://")
    if "@" in authority[1]:
        raise UrlIllegal(url, "holds a user name or a password; requests are signed instead, leave it out")
    if "#" in url:
        raise UrlIllegal(url, "holds a fragment, which is never sent; leave out the # and what follows")
    return _with_usual_host(url)


def _with_usual_host(url: str) -> URL:
    try:
        parsed = URL(url)
        host, port = parsed.raw_host, parsed.port
    except ValueError as error:
        raise UrlIllegal(url, f"can't be read ({error})") from error
    if not host:
        raise UrlIllegal(url, "names no host")
    if not port:
        raise UrlIllegal(url, "names port 0; leave the port out or name one from 1 to 65535")
    if literal := literal_address(host):
        return parsed.with_host(str(literal))
    if not all(0 < len(label) <= MAX_LABEL_CHARACTERS for label in host.removesuffix(".").split(".")):
        # `getaddrinfo` would raise UnicodeError for this name.
        raise UrlIllegal(
            url, f"names a host with a part that is empty or longer than {MAX_LABEL_CHARACTERS} characters"
        )
    return parsed


def look_up(host: str, port: int) -> list[str]:
    """The addresses of a host, as the operating system resolves it; raises `OSError`. Blocks: call it in a thread."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def check_url(url: str, allowed: Networks) -> None:
    """Raises UrlIllegal or AddressForbidden for a URL that can't be registered. Waits at most 2 s for DNS.

    A name is refused only if all its addresses are known and forbidden. The addresses may change later, so the
    connector checks the address again at each connection.
    """
    parsed = parse_url(url)
    host = parsed.raw_host or ""
    literal = literal_address(host)
    addresses = [literal] if literal else _known_addresses(host, parsed.port or 0)
    kinds = [(address, forbidden_kind(address, allowed)) for address in addresses]
    if kinds and all(kind for _, kind in kinds):
        address, kind = kinds[0]
        raise AddressForbidden(url, str(address), str(kind))


def _known_addresses(host: str, port: int) -> list[Address]:
    try:
        found = runtime.control(Lookups).submit(look_up, host, port).result(LOOKUP_PATIENCE_SECONDS)
    except OSError:
        return []  # The time-out of `result` is an OSError, too. The host may have an address by the first call.
    return [ip_address(address) for address in found]
