"""Promises about which addresses and URLs the broker may call."""

import os
import re
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqbroker.embedded import commands
from tests.broker import forks
from webhooks.addresses import (
    Address,
    AddressForbidden,
    UrlIllegal,
    check_url,
    forbidden_kind,
    literal_address,
    parse_networks,
    parse_url,
)

# Written from the IANA registries as first and last address, apart from the networks in the code.
NOT_PUBLIC_IPV4 = """
0.0.0.0 0.255.255.255
10.0.0.0 10.255.255.255
100.64.0.0 100.127.255.255
127.0.0.0 127.255.255.255
169.254.0.0 169.254.255.255
172.16.0.0 172.31.255.255
192.0.0.0 192.0.0.255
192.0.2.0 192.0.2.255
192.88.99.0 192.88.99.255
192.168.0.0 192.168.255.255
198.18.0.0 198.19.255.255
198.51.100.0 198.51.100.255
203.0.113.0 203.0.113.255
224.0.0.0 255.255.255.255
"""
# Everything but 2000::/3, and out of that IETF protocols, documentation (two) and 6to4.
NOT_PUBLIC_IPV6 = """
:: 1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
2001:: 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff
2002:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff
4000:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
"""
# Longer than DNS allows: it is unknown at once, and no name server is asked.
UNKNOWN_NAME = ".".join(["a" * 60] * 5)
MAPPED = int(IPv6Address("::ffff:0.0.0.0"))


def ranges(text: str) -> list[tuple[int, int]]:
    return [(int(ip_address(first)), int(ip_address(last))) for first, last in map(str.split, text.split("\n")[1:-1])]


RANGES_IPV4, RANGES_IPV6 = ranges(NOT_PUBLIC_IPV4), ranges(NOT_PUBLIC_IPV6)


def is_public(address: Address) -> bool:
    number = int(address)
    if isinstance(address, IPv6Address) and number >> 32 == MAPPED >> 32:
        return is_public(IPv4Address(number & 0xFFFFFFFF))
    known = RANGES_IPV4 if isinstance(address, IPv4Address) else RANGES_IPV6
    return not any(first <= number <= last for first, last in known)


def near(edges: list[tuple[int, int]], bits: int) -> st.SearchStrategy[int]:
    """Numbers of all sizes, and those beside an edge, where a wrong prefix length shows."""
    beside = [edge + step for pair in edges for edge in pair for step in (-1, 0, 1)]
    return st.one_of(st.sampled_from([n for n in beside if 0 <= n < 1 << bits]), st.integers(0, (1 << bits) - 1))


addresses = st.one_of(
    near(RANGES_IPV4, 32).map(IPv4Address),
    near(RANGES_IPV6, 128).map(IPv6Address),
    near(RANGES_IPV4, 32).map(lambda number: IPv6Address(MAPPED + number)),
)


@given(addresses)
def test_an_address_may_be_called_exactly_if_the_registries_call_it_public(address: Address) -> None:
    assert (forbidden_kind(address, ()) is None) == is_public(address)


@given(addresses)
def test_what_python_knows_to_be_special_may_not_be_called(address: Address) -> None:
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if not address.is_global or address.is_multicast:
        assert forbidden_kind(address, ())


@given(addresses, st.integers(0, 32))
def test_an_allowed_network_allows_its_own_addresses_and_no_others(address: Address, prefix: int) -> None:
    allowed = parse_networks("10.0.0.0/8,fd00::/8,64:ff9b::/96")
    inner = address.ipv4_mapped if isinstance(address, IPv6Address) and address.ipv4_mapped else address
    listed = any(inner in network for network in allowed)

    assert (forbidden_kind(address, allowed) is None) == (listed or is_public(address))


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("0.0.0.0", "an unspecified address"),
        ("10.1.2.3", "a private address"),
        ("100.100.100.200", "a shared address of a carrier (CGNAT)"),
        ("127.0.0.1", "a loopback address"),
        ("169.254.169.254", "a link-local address"),
        ("203.0.113.9", "a documentation address"),
        ("224.0.0.1", "a multicast address"),
        ("255.255.255.255", "a reserved address"),
        ("::", "an unspecified address"),
        ("::1", "a loopback address"),
        ("::127.0.0.1", "a reserved address"),
        ("::ffff:127.0.0.1", "a loopback address"),
        ("::ffff:0:127.0.0.1", "a reserved address"),
        ("64:ff9b::7f00:1", "a NAT64 address"),
        ("64:ff9b:1::7f00:1", "a NAT64 address"),
        ("2001:0:7f00:1::", "a Teredo address"),
        ("2002:7f00:1::", "a 6to4 address"),
        ("fd00:ec2::254", "a private address"),
        ("fe80::1%eth0", "a link-local address"),
        ("ff02::1", "a multicast address"),
        ("fec0::1", "a reserved address"),
    ],
)
def test_a_forbidden_address_is_called_by_its_kind(address: str, kind: str) -> None:
    assert forbidden_kind(ip_address(address), ()) == kind


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8"])
def test_a_public_address_may_be_called(address: str) -> None:
    assert forbidden_kind(ip_address(address), ()) is None


def test_networks_are_separated_by_commas_or_blanks() -> None:
    assert [str(network) for network in parse_networks(" 127.0.0.0/8, ::1/128\n10.0.0.5 ")] == [
        "127.0.0.0/8",
        "::1/128",
        "10.0.0.5/32",
    ]
    assert parse_networks("") == ()


@pytest.mark.parametrize("entry", ["localhost", "10.0.0.1/8", "10.0.0.0/33", "127.1", "::ffff:10.0.0.0/104"])
def test_a_bad_network_is_named_with_what_would_be_valid(entry: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(repr(entry))} is "):
        parse_networks(f"127.0.0.0/8,{entry}")


@pytest.mark.parametrize(
    ("entry", "because"),
    [
        ("localhost", "'localhost' is not a network: 'localhost' does not appear to be an IPv4 or IPv6 network"),
        ("::ffff:10.0.0.0/104", "'::ffff:10.0.0.0/104' is a mapped network: write 10.0.0.0/8, the one inside it"),
    ],
)
def test_a_bad_network_stops_the_start_and_is_named_with_the_way_out(entry: str, because: str) -> None:
    given = {"MQBROKER_WEBHOOK_ALLOWED_NETWORKS": f"127.0.0.0/8,{entry}"}

    done = forks.run(commands.manage("check"), os.environ | given)

    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].endswith(
        f"MQBROKER_WEBHOOK_ALLOWED_NETWORKS='127.0.0.0/8,{entry}' cannot be used ({because}): "
        "give IP networks between commas, such as 10.0.0.0/8,::1/128."
    )


@pytest.mark.parametrize("host", ["127.1", "127.0.1", "2130706433", "0x7f.1", "0x7F000001", "0177.0.0.1", "127.0.0.1."])
def test_every_spelling_that_glibc_accepts_is_the_address_it_connects_to(host: str) -> None:
    assert literal_address(host) == IPv4Address("127.0.0.1")


@pytest.mark.parametrize("host", ["example.com", "localhost", "1.2.3.4.5", "127.0.0.256", "a.1"])
def test_a_name_is_no_literal_address(host: str) -> None:
    assert literal_address(host) is None


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("ftp://example.com/", "does not begin with http:// or https://"),
        ("//example.com/", "does not begin with http:// or https://"),
        ("example.com", "does not begin with http:// or https://"),
        ("http:///path", "names no host"),
        ("http://./", "names a host with a part that is empty or longer than 63 characters"),
        ("http://a..example.com/", "names a host with a part that is empty or longer than 63 characters"),
        (f"http://{'a' * 64}.com/", "names a host with a part that is empty or longer than 63 characters"),
        ("http://user:word@example.com/", "holds a user name or a password; requests are signed instead, leave it out"),
        ("http://@example.com/", "holds a user name or a password; requests are signed instead, leave it out"),
        ("http://example.com/#top", "holds a fragment, which is never sent; leave out the # and what follows"),
        ("http://example.com:0/", "names port 0; leave the port out or name one from 1 to 65535"),
        ("http://example.com/a b", "holds a blank, a control character or a backslash; encode it as %20, %5C, …"),
        (
            "http://example.com\\@127.0.0.1/",
            "holds a blank, a control character or a backslash; encode it as %20, %5C, …",
        ),
        ("http://example.com/\r\nx: y", "holds a blank, a control character or a backslash; encode it as %20, %5C, …"),
        ("http://example.com/" + "a" * 2_030, "is longer than 2048 bytes"),
        ("http://example.com/" + "é" * 1_015, "is longer than 2048 bytes"),
    ],
)
def test_a_url_that_cannot_be_called_is_refused_with_the_reason(url: str, complaint: str) -> None:
    with pytest.raises(UrlIllegal) as refused:
        check_url(url, ())

    assert str(refused.value).endswith(f"' {complaint}.")


@pytest.mark.parametrize(
    "url", ["http://example.com:99999/", "http://:80/", "http://[::1/", "http://exa mple.com/", "http://[nonsense]/"]
)
def test_a_url_that_cannot_be_read_is_refused(url: str) -> None:
    with pytest.raises(UrlIllegal):
        check_url(url, ())


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "１２７.0.0.1", "localhost", "[::1]", "[::ffff:7f00:1]"]
)
def test_loopback_is_refused_at_registration_with_the_way_out(host: str) -> None:
    with pytest.raises(AddressForbidden) as refused:
        check_url(f"http://{host}:9000/checks", ())

    assert f"The URL 'http://{host}:9000/checks' may not be called: " in str(refused.value)
    assert str(refused.value).endswith(
        "is a loopback address. Use a public address, or list its network in WEBHOOK_ALLOWED_NETWORKS."
    )


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "localhost", "[::1]", "[::ffff:7f00:1]"]
)
def test_loopback_is_registered_where_the_operator_lists_it(host: str) -> None:
    check_url(f"http://{host}:9000/checks", parse_networks("127.0.0.0/8,::1/128"))


def test_a_name_with_one_allowed_address_is_registered() -> None:
    check_url("http://localhost:9000/checks", parse_networks("127.0.0.0/8"))


def test_a_name_that_does_not_resolve_yet_is_registered() -> None:
    check_url(f"https://{UNKNOWN_NAME}/checks", ())


@pytest.mark.parametrize("url", ["http://example.com/".ljust(2_048, "a"), f"http://{'a' * 63}.example/"])
def test_a_url_of_the_longest_length_can_be_called(url: str) -> None:
    assert str(parse_url(url)) == url


def test_a_public_literal_is_registered() -> None:
    check_url("https://[2606:4700:4700::1111]/checks?shop=1", ())


@given(st.text())
def test_any_text_is_either_a_url_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"http://[{text}]/", f"http://127.0.0.1:{text}"):
        with suppress(UrlIllegal):
            parse_url(url)


def test_a_refusal_shows_only_the_beginning_of_a_long_url() -> None:
    with pytest.raises(UrlIllegal) as refused:
        check_url("http://example.com/" + "a" * 100_000, ())

    assert len(str(refused.value)) < 300
