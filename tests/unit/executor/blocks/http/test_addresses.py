import ipaddress

import pytest

from executor.blocks.http.addresses import Allowed, is_public, unwrapped


@pytest.mark.parametrize(
    "text", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450:4001::200e", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_places_on_the_internet_are_public(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
        "192.0.0.8", "192.0.2.1", "198.18.0.1", "192.88.99.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
        "::", "::1", "fe80::1", "fc00::1", "fd00::1", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1", "100::1",
        "5f00::1",
        "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1", "2002:7f00:1::", "2002:808:808::1", "2001:0:1::", "2001:20::1",
    ],
)  # fmt: skip
def test_everything_else_is_not(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


def test_what_is_wrapped_in_an_address_counts() -> None:
    assert str(unwrapped(ipaddress.ip_address("::ffff:10.0.0.1"))) == "10.0.0.1"
    assert str(unwrapped(ipaddress.ip_address("64:ff9b::a00:1"))) == "10.0.0.1"
    assert str(unwrapped(ipaddress.ip_address("fe80::1"))) == "fe80::1"


@pytest.mark.parametrize(
    ("entries", "host", "address", "port", "allowed"),
    [
        ([], "x", "127.0.0.1", 80, False),
        ([""], "x", "127.0.0.1", 80, False),
        (["*"], "x", "127.0.0.1", 80, True),
        (["127.0.0.1:8765"], "127.0.0.1", "127.0.0.1", 8765, True),
        (["127.0.0.1:8765"], "localhost", "127.0.0.1", 8765, True),
        (["127.0.0.1:8765"], "x", "::ffff:127.0.0.1", 8765, True),
        (["127.0.0.1:8765"], "127.0.0.1", "127.0.0.1", 8766, False),
        (["127.0.0.1:8765"], "127.0.0.1", "127.0.0.2", 8765, False),
        (["localhost:5000"], "LocalHost.", "127.0.0.1", 5000, True),
        (["localhost:5000"], "evil.test", "127.0.0.1", 5000, False),
        (["build.local"], "build.local", "10.1.2.3", 443, True),
        (["10.0.0.0/8"], "x", "10.9.9.9", 1, True),
        (["10.0.0.0/8"], "x", "11.0.0.1", 1, True),
        (["10.0.0.0/8"], "x", "192.168.0.1", 1, False),
        (["[::1]:80"], "::1", "::1", 80, True),
        (["[::1]:80"], "::1", "::1", 81, False),
        (["::1"], "x", "::1", 81, True),
        (["fd00::/8"], "x", "fd12::1", 81, True),
    ],
)
def test_the_operators_exceptions(entries: list[str], host: str, address: str, port: int, allowed: bool) -> None:
    assert Allowed(entries).permits(host, ipaddress.ip_address(address), port) is allowed


@pytest.mark.parametrize("entry", ["10.0.0.0/99", "host:port", "host:0", "host:70000", "a/b"])
def test_an_entry_that_is_none_is_an_error(entry: str) -> None:
    with pytest.raises(ValueError):
        Allowed([entry])
