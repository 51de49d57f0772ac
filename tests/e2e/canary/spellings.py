"""How a service, a library or a person writes a secret, and every form of it that nothing may hold."""

from __future__ import annotations

import base64
import html
import json
import quopri
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus


def _utf16(text: str) -> Iterator[int]:
    data = text.encode("utf-16-be")
    return (int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda s: s,
    "upper": str.upper,
    "lower": str.lower,
    "url": lambda s: quote(s, safe=""),
    "url-twice": lambda s: quote(quote_plus(s), safe=""),
    "url-every": lambda s: "".join(f"%{byte:02X}" for byte in s.encode()),
    "json": lambda s: json.dumps(s).replace("/", "\\/"),
    "json-every": lambda s: "".join(f"\\u{unit:04x}" for unit in _utf16(s)),
    "json-in-json": lambda s: json.dumps(json.dumps({"k": s})),
    "html": html.escape,
    "html-every": lambda s: "".join(f"&#{ord(c)};" for c in s),
    "base64": lambda s: base64.b64encode(f"user:{s}".encode()).decode(),
    "base64-url": lambda s: base64.urlsafe_b64encode(f"u:{s}:x".encode()).decode().rstrip("="),
    "base64-lines": lambda s: base64.encodebytes(b"." * 48 + s.encode()).decode(),
    "hex": lambda s: s.encode().hex(),
    "quoted-printable": lambda s: quopri.encodestring(b"-" * 66 + s.encode()).decode(),
    "utf-16": lambda s: s.encode("utf-16-le").decode("latin-1"),
    "bytes": lambda s: repr(s.encode()),
}


def forms_of(secret: str) -> dict[str, bytes]:
    """What no file and no answer may hold, in lower case, by name. Of base64 the letters that the secret settles
    alone, of what breaks lines each line long enough to mean something."""
    forms: dict[str, bytes] = {}
    for name, spell in SPELLINGS.items():
        if not name.startswith("base64"):
            spelled = spell(secret).strip("'\"").removeprefix("b'")
            lines = [line for line in spelled.replace("=\n", "\n").strip("-").split("\n") if len(line) >= 12]
            forms |= {f"{name} {n}": line.lower().encode() for n, line in enumerate(lines)}
    forms["utf-16 bytes"] = secret.lower().encode("utf-16-le")
    raw = secret.encode()
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * before + raw)[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6]
            forms[f"{encode.__name__} {before}"] = whole.lower()
            forms[f"{encode.__name__} {before}, its middle"] = whole[4:16].lower()  # also where a line ends behind it
    # What stands inside JSON inside a row.
    return forms | {
        f"{name}, in json": json.dumps(form.decode("latin-1"))[1:-1].encode() for name, form in forms.items()
    }
