"""What browsers and Node have beyond the language: cases from the standards (URL, Encoding, HTML, Web Cryptography)."""

import json
import time
from typing import Any

import pytest

from executor.blocks.sandbox.sandbox import Sandbox
from executor.errors import SandboxError
from tests.unit.executor.blocks.sandbox.run import NOW_MS, program

# input, base -> href; None: no URL. As in urltestdata.json of the web platform tests.
_URLS = [
    ("http://example\t.\norg", None, "http://example.org/"),
    ("http://user:pass@foo:21/bar;par?b#c", None, "http://user:pass@foo:21/bar;par?b#c"),
    ("https://test:@test", None, "https://test@test/"),
    ("https://:@test", None, "https://test/"),
    ("non-special://test:@test/x", None, "non-special://test@test/x"),
    ("http:foo.com", "http://example.org/foo/bar", "http://example.org/foo/foo.com"),
    ("\t   :foo.com   \n", "http://example.org/foo/bar", "http://example.org/foo/:foo.com"),
    (" foo.com  ", "http://example.org/foo/bar", "http://example.org/foo/foo.com"),
    ("a:\t foo.com", "http://example.org/foo/bar", "a: foo.com"),
    ("http://f:21/ b ? d # e ", None, "http://f:21/%20b%20?%20d%20#%20e"),
    ("http://f:/c", None, "http://f/c"),
    ("http://f:0/c", None, "http://f:0/c"),
    ("http://f:00000000000000000000080/c", None, "http://f/c"),
    ("http://f:b/c", None, None),
    ("http://f:65536/c", None, None),
    ("", "http://example.org/foo/bar", "http://example.org/foo/bar"),
    (":a", "http://example.org/foo/bar", "http://example.org/foo/:a"),
    ("#", "http://example.org/foo/bar", "http://example.org/foo/bar#"),
    ("?", "http://example.org/foo/bar", "http://example.org/foo/bar?"),
    ("\\x", "http://example.org/foo/bar", "http://example.org/x"),
    ("//foo/bar", "http://example.org/foo/bar", "http://foo/bar"),
    ("http://foo.com/\\@", None, "http://foo.com//@"),
    ("http:\\\\x:y@z\\c", None, "http://x:y@z/c"),
    ("http://a:b@c:29/d", None, "http://a:b@c:29/d"),
    ("http::@c:29", "http://example.org/foo/bar", "http://example.org/foo/:@c:29"),
    ("http://&a:foo(b]c@d:2/", None, "http://&a:foo(b%5Dc@d:2/"),
    ("http://a@b@c/", None, "http://a%40b@c/"),
    ("file:///foo%2Fbar.txt", None, "file:///foo%2Fbar.txt"),
    ("file:c:\\foo\\bar.html", "file:///tmp/mock/path", "file:///c:/foo/bar.html"),
    ("  File:c|////foo\\bar.html", "file:///tmp/mock/path", "file:///c:////foo/bar.html"),
    ("C|/foo/bar", "file:///tmp/mock/path", "file:///C:/foo/bar"),
    ("//server/file", "file:///tmp/mock/path", "file://server/file"),
    ("file://localhost/test", None, "file:///test"),
    ("http://example.com/././foo", None, "http://example.com/foo"),
    ("http://example.com/foo/bar/../ton/../../a", None, "http://example.com/a"),
    ("http://example.com/foo/%2e%2", None, "http://example.com/foo/%2e%2"),
    ("http://example.com/foo/%2e./%2e%2e/.%2e/%2e.bar", None, "http://example.com/%2e.bar"),
    ("http://example.com/foo\t%91", None, "http://example.com/foo%91"),
    ("http://example.com/\u4f60\u597d", None, "http://example.com/%E4%BD%A0%E5%A5%BD"),
    ("http://www.google.com/foo?bar=baz# \u00bb", None, "http://www.google.com/foo?bar=baz#%20%C2%BB"),
    ("data:text/html,test#test", None, "data:text/html,test#test"),
    ("mailto:a@b.example?x=1", None, "mailto:a@b.example?x=1"),
    ("javascript:/../", None, "javascript:/"),
    ("http://EXAMPLE.com", None, "http://example.com/"),
    ("http://GO\uff4f.com", None, "http://goo.com/"),
    ("http://fa\u00df.example/", None, "http://xn--fa-hia.example/"),
    ("http://\u4f60\u597d\u4f60\u597d", None, "http://xn--6qqa088eba/"),
    ("http://b\u00fccher.example", None, "http://xn--bcher-kva.example/"),
    ("http://192.168.0.257", None, None),
    ("http://0xc0.0250.01", None, "http://192.168.0.1/"),
    ("http://4294967295", None, "http://255.255.255.255/"),
    ("http://4294967296", None, None),
    ("http://[www.google.com]/", None, None),
    ("http://[::127.0.0.1]", None, "http://[::7f00:1]/"),
    ("http://[1:2:0:0:5:0:0:0]", None, "http://[1:2:0:0:5::]/"),
    ("http://[1::2::3]", None, None),
    ("http://hello%00", None, None),
    ("http://ho%20st/", None, None),
    ("http://a<b", None, None),
    ("http://", None, None),
    ("/x", None, None),
    ("x", "mailto:y", None),
    ("#x", "mailto:y", "mailto:y#x"),
    ("blob:https://example.com:443/", None, "blob:https://example.com:443/"),
]

_CASES: list[tuple[str, Any]] = [
    (
        "const u = new URL('https://me:pw@h.example:8443/a/b?x=1#f'); return [u.origin, u.protocol, u.username,"
        " u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash]",
        ["https://h.example:8443", "https:", "me", "pw", "h.example:8443", "h.example", "8443", "/a/b", "?x=1", "#f"],
    ),
    (
        "const u = new URL('http://a/'); u.searchParams.append('q', 'x y&\\u00fc'); u.pathname = 'p q'; u.port"
        " = '81'; u.hash = 'h'; u.protocol = 'https'; u.host = 'b.example'; return [u.href, JSON.stringify({ u"
        " })]",
        ["https://b.example:81/p%20q?q=x+y%26%C3%BC#h", '{"u":"https://b.example:81/p%20q?q=x+y%26%C3%BC#h"}'],
    ),
    (
        "const u = new URL('http://a/?b=1'); u.search = '?c=2'; return [...u.searchParams]",
        [["c", "2"]],
    ),
    (
        "return [URL.canParse('x:y'), URL.canParse('y'), URL.parse('y')]",
        [True, False, None],
    ),
    (
        "return new URLSearchParams('?a=b&a=c+d%20e&=x&f').getAll('a')",
        ["b", "c d e"],
    ),
    (
        "return new URLSearchParams({ a: 1, b: 'c&d', '\\ud800': '*-._~!' }).toString()",
        "a=1&b=c%26d&%EF%BF%BD=*-._%7E%21",
    ),
    (
        "const p = new URLSearchParams('z=1&a=2&z=3'); p.sort(); p.set('z', 9); p.delete('a'); return p + ''",
        "z=9",
    ),
    (
        "const p = new URLSearchParams([['a', 'b']]); return [p.size, p.has('a', 'x'), p.get('n'), [...p.keys()]]",
        [1, False, None, ["a"]],
    ),
    (
        "return [...new TextEncoder().encode('\\u20ac\\ud83d\\ude00\\ud800')]",
        [226, 130, 172, 240, 159, 152, 128, 239, 191, 189],
    ),
    (
        "const a = new Uint8Array(4); return new TextEncoder().encodeInto('a\\u20ac\\u20ac', a)",
        {"read": 2, "written": 4},
    ),
    (
        "return new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0xff, 0xe2, 0x82]))",
        "a��",
    ),
    (
        "return new TextDecoder().decode(new Uint8Array([0xf0, 0x80, 0x80, 0x80]))",
        "����",
    ),
    (
        "try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([0xc0])) } catch (e) { return e.name }",
        "TypeError",
    ),
    (
        "const d = new TextDecoder(); return d.decode(new Uint8Array([0xe2, 0x82]), { stream: true }) +"
        " d.decode(new Uint8Array([0xac]))",
        "€",
    ),
    (
        "return new TextDecoder('latin1').decode(new Uint8Array([0x80, 0xe9]).buffer)",
        "€é",
    ),
    (
        "return new TextDecoder('utf-16').decode(new Uint8Array([0x3d, 0xd8, 0, 0xde, 0x41]))",
        "😀�",
    ),
    (
        "try { new TextDecoder('klingon') } catch (e) { return e.name }",
        "RangeError",
    ),
    (
        "return [btoa('\\xe9a'), atob(' 6 WE= ')]",
        ["6WE=", "éa"],
    ),
    (
        "try { btoa('\\u20ac') } catch (e) { return e.name }",
        "InvalidCharacterError",
    ),
    (
        "const a = { d: new Date(5), m: new Map([[1, new Set([2])]]), r: /x/gi, l: [1, , 3] }; a.self = a;"
        " const b = structuredClone(a); return [b !== a, b.self === b, b.d.getTime(), [...b.m.get(1)],"
        " String(b.r), 1 in b.l]",
        [True, True, 5, [2], "/x/gi", False],
    ),
    (
        "const b = structuredClone(new Uint16Array([1, 2]).subarray(1)); return [b.constructor.name, b.length, b[0]]",
        ["Uint16Array", 1, 2],
    ),
    (
        "const e = structuredClone(new RangeError('x')); return [e instanceof RangeError, e.message]",
        [True, "x"],
    ),
    (
        "try { structuredClone({ f() {} }) } catch (e) { return [e.name, e instanceof DOMException] }",
        ["DataCloneError", True],
    ),
    (
        "const b = new ArrayBuffer(8), c = structuredClone(b, { transfer: [b] }); return [b.byteLength, c.byteLength]",
        [0, 8],
    ),
    (
        "return dates.format('2026-11-03T15:04:05.678Z', \"EEEE d MMMM yyyy 'at' h:mm a, ss.SSS XXX\", '+02:00')",
        "Tuesday 3 November 2026 at 5:04 PM, 05.678 +02:00",
    ),
    (
        "return dates.parse('03.11.2026 17:04 +02:00', 'dd.MM.yyyy HH:mm XXX').toISOString()",
        "2026-11-03T15:04:00.000Z",
    ),
    (
        "try { dates.parse('30.02.2026', 'dd.MM.yyyy') } catch (e) { return e.message }",
        '"30.02.2026" is not a date written as dd.MM.yyyy',
    ),
    (
        "return [dates.add('2024-01-31', { months: 1 }), dates.add('2024-02-29', { years: 1, hours: -1"
        " })].map(d => d.toISOString())",
        ["2024-02-29T00:00:00.000Z", "2025-02-27T23:00:00.000Z"],
    ),
    (
        "return ['year', 'month', 'week', 'day', 'hour'].map(u =>"
        " dates.format(dates.startOf('2026-11-05T10:20:30Z', u), 'MM-dd HH:mm'))",
        ["01-01 00:00", "11-01 00:00", "11-02 00:00", "11-05 00:00", "11-05 10:00"],
    ),
    (
        "return [dates.difference('2026-01-31', '2026-03-01', 'months'), dates.difference('2026-03-01',"
        " '2026-01-31', 'days'), dates.difference(0, 36e5 * 5, 'hours')]",
        [1, -29, 5],
    ),
    (
        "return [dates.week('2026-01-01'), dates.week('2027-01-03')]",
        [{"year": 2026, "week": 1}, {"year": 2026, "week": 53}],
    ),
]

_DIGESTS = {  # of "abc", FIPS 180
    "SHA-1": "a9993e364706816aba3e25717850c26c9cd0d89d",
    "sha-256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    "SHA-384": "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
    "SHA-512": "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
    "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
}
_HEX = "const hex = b => [...new Uint8Array(b)].map(x => x.toString(16).padStart(2, '0')).join('');"


async def test_addresses_are_read_as_the_standard_says(sandbox: Sandbox) -> None:
    source = "return __v.all.map(([url, base]) => URL.parse(url, base ?? undefined)?.href ?? null)"
    found, _ = await program(sandbox, source, all=[[url, base] for url, base, _ in _URLS])
    assert [(url, base, href) for (url, base, _), href in zip(_URLS, found, strict=True)] == _URLS


@pytest.mark.parametrize(("source", "result"), _CASES)
async def test_a_global_does_what_its_standard_says(anywhere: Sandbox, source: str, result: Any) -> None:
    assert await program(anywhere, source) == (result, "")


@pytest.mark.parametrize("name", _DIGESTS)
async def test_a_digest(sandbox: Sandbox, name: str) -> None:
    source = f"{_HEX} return hex(await crypto.subtle.digest(__v.name, new TextEncoder().encode('abc')))"
    assert (await program(sandbox, source, name=name))[0] == _DIGESTS[name]


async def test_digests_of_every_length_around_a_block(sandbox: Sandbox) -> None:
    import hashlib

    source = f"""{_HEX} const out = [];
    for (let n = 0; n < 260; n += 7) for (const name of ['SHA-1', 'SHA-256', 'SHA-384', 'SHA-512'])
      out.push(hex(await crypto.subtle.digest({{ name }}, new Uint8Array(n).map((_, i) => i * 7))));
    return out"""
    expected = [
        hashlib.new(name, bytes(i * 7 & 255 for i in range(n))).hexdigest()
        for n in range(0, 260, 7)
        for name in ("sha1", "sha256", "sha384", "sha512")
    ]
    assert (await program(sandbox, source))[0] == expected


async def test_random_values_are_those_of_the_seed(sandbox: Sandbox) -> None:
    source = "return [crypto.randomUUID(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(4))]]"
    (first, second, few), _ = await program(sandbox, source)
    assert first != second
    assert (first[14], first[19] in "89ab", len(first), len(few)) == ("4", True, 36, 4)
    assert (await program(sandbox, source))[0] == [first, second, few]


async def test_a_global_that_the_request_does_not_name_is_there_too(sandbox: Sandbox) -> None:
    assert await program(sandbox, "return new globalThis['U' + 'RL']('http://A').href") == ("http://a/", "")


async def test_timers_run_in_order_and_take_no_time(anywhere: Sandbox) -> None:
    source = """
    const sleep = ms => new Promise(done => setTimeout(done, ms));
    const order = [], began = Date.now();
    setTimeout(x => order.push(x, Date.now() - began), 20_000, 'late');
    setTimeout(() => { order.push('first'); Promise.resolve().then(() => order.push('its job')); }, 0);
    setTimeout(() => order.push('second'));
    clearTimeout(setTimeout(() => order.push('never'), 5));
    let ticks = 0;
    const ticking = setInterval(() => { if (++ticks === 3) clearInterval(ticking); }, 10);
    queueMicrotask(() => order.push('job'));
    await sleep(25_000);
    return [...order, ticks, Date.now()];
    """
    began = time.process_time()
    found, _ = await program(anywhere, source)
    assert found == ["job", "first", "its job", "second", "late", 20_000, 3, NOW_MS + 25_000]
    assert time.process_time() - began < 10


async def test_a_timer_behind_the_end_of_the_time_is_a_timeout(anywhere: Sandbox) -> None:
    with pytest.raises(SandboxError, match="stopped after 30000 ms") as caught:
        await program(anywhere, "await new Promise(done => setTimeout(done, 30_001))")
    assert caught.value.code == "code_timeout"


@pytest.mark.parametrize(
    "source",
    [
        "await new Promise(() => setInterval(() => {}, 0))",
        "await new Promise(() => { const again = () => setTimeout(again, 0); again() })",
        "await new Promise(() => { const again = () => { setTimeout(again); setTimeout(again) }; again() })",
        "await new Promise(() => setTimeout(() => { for (;;) {} }))",
        "await new Promise(() => setTimeout(() => { const f = () => Promise.resolve().then(f); f() }))",
    ],
)
async def test_timers_without_end_are_stopped(anywhere: Sandbox, source: str) -> None:
    with pytest.raises(SandboxError) as caught:
        await program(anywhere, source, timeout_ms=300)
    assert caught.value.code in ("code_timeout", "code_memory")
    assert await program(anywhere, "return 1") == (1, "")


async def test_what_a_timer_throws_ends_the_program(anywhere: Sandbox) -> None:
    with pytest.raises(SandboxError, match="TypeError: late") as caught:
        await program(
            anywhere,
            "console.log('x'); setTimeout(() => { throw new TypeError('late') }, 5); await new Promise(() => {})",
        )
    assert (caught.value.code, caught.value.extra["stdout"]) == ("code_failed", "x\n")


async def test_a_result_ends_the_program_though_timers_wait(anywhere: Sandbox) -> None:
    source = "setTimeout(() => console.log('never'), 5); setInterval(() => {}, 1); return 1"
    assert await program(anywhere, source) == (1, "")
    assert await program(anywhere, "await new Promise(f => setTimeout(f, 50)); return 2") == (2, "")


async def test_the_standard_library_hides_no_text_from_json(sandbox: Sandbox) -> None:
    """A name of a global in a value chooses the other image; results are the same."""
    assert await program(sandbox, "return __v", text="URL crypto") == ({"text": "URL crypto"}, "")
    assert json.dumps((await program(sandbox, "return [__v.a, Math.random()]", a=1))[0]) == json.dumps(
        (await program(sandbox, "return [__v.a, Math.random()] // URL", a=1))[0]
    )
