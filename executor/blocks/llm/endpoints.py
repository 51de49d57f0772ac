"""The names of models: `<endpoint>:<model>`. Two endpoints are built in, the operator adds others with a URL.

`WEFT_MODEL_LOCAL=http://127.0.0.1:11434/v1` makes `local:llama3`: that server uses the wire format of OpenAI, as most
do. `anthropic+http://…` is one with the format of Anthropic. The key of an endpoint is the environment value
`<NAME>_API_KEY`, and is sent nowhere else.

`WEFT_PRICE_LOCAL=0.15/0.075/0.60` is the price of its models, in US dollars for a million tokens: of input, of input
read from a cache, of output. `llama3=0/0/0 0.15/0.60` has another price for one model, and no discount for caches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from executor.blocks.llm.base import Cost, Model, Usage
from executor.errors import BadRequest, BlockError
from executor.kernel.values.money import nanos_of, usd_of

Dialect = Literal["openai", "anthropic"]
NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_PRICE_MAX = 1_000_000
_KNOWN = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}


class Price(Struct, frozen=True):
    """Prices in US dollars for a million tokens."""

    input: Decimal
    cached_input: Decimal
    output: Decimal

    def total(self, usage: Usage) -> Decimal:
        """Return the cost of these tokens, in dollars. Tokens written to a cache cost as much as other input."""
        cached = min(usage.cached_tokens, usage.input_tokens)
        new = usage.input_tokens - cached
        return (new * self.input + cached * self.cached_input + usage.output_tokens * self.output) / 1_000_000


class Endpoint(Struct, frozen=True):
    """A server of models. `key_required`: it refuses requests without one. `prices`: of the operator, by the name of
    the model; "" is the price of all others. `model`: what answers in this process, and then there is no URL."""

    name: str
    dialect: Dialect
    url: str
    key_required: bool = False
    prices: Mapping[str, Price] = {}
    model: Model | None = None

    def cost_of(self, usage: Usage, model: str) -> Cost | None:
        """Return the cost by the operator's price of a model."""
        price = self.prices.get(model) or self.prices.get("")
        return None if price is None else Cost(usd_of(nanos_of(price.total(usage))), f"WEFT_PRICE_{self.name.upper()}")

    @property
    def key_name(self) -> str:
        """The environment value with its key."""
        return f"{self.name.upper()}_API_KEY"

    @property
    def place(self) -> str:
        """`host:port`, as in WEFT_ALLOW_PRIVATE."""
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        return f"[{host}]:{_port(self.url)}" if ":" in host else f"{host}:{_port(self.url)}"


class Endpoints:
    """The known endpoints. `named`: URLs of the operator, or models in this process, by name in upper case; `prices`
    the same way. Raises ValueError for an invalid name, URL or price."""

    def __init__(self, named: Mapping[str, str | Model] | None = None, prices: Mapping[str, str] | None = None) -> None:
        self._by_name = {name: Endpoint(name, _dialect(name), url, True) for name, url in _KNOWN.items()}
        self.named = tuple(_endpoint(name, given) for name, given in (named or {}).items())
        self._by_name |= {endpoint.name: endpoint for endpoint in self.named}
        for name, text in (prices or {}).items():
            known = self._by_name.get(name.lower())
            if known is None:
                raise ValueError(f"there is no endpoint {name}: set WEFT_MODEL_{name} to its URL, or name it in models")
            self._by_name[known.name] = replace(known, prices=prices_of(text))

    def names(self) -> list[str]:
        """List all endpoints, sorted."""
        return sorted(self._by_name)

    def all(self) -> list[Endpoint]:
        """Return the endpoints of the operator and the built-in ones."""
        return list(self._by_name.values())

    def find(self, model: str) -> tuple[Endpoint, str]:
        """Return the endpoint and the name of the model there. Raises BlockError(model_unknown)."""
        name, colon, rest = model.strip().partition(":")
        endpoint = self._by_name.get(name.lower())
        if not colon or not rest.strip() or endpoint is None:
            raise BlockError(
                f"the model {model[:100]!r} has no known endpoint",
                code="model_unknown",
                retryable=False,
                hint=f"write <endpoint>:<model>; the endpoints are {', '.join(self.names())}, and the operator adds "
                "others with WEFT_MODEL_<NAME>, a program with weft.open(models=...)",
            )
        return endpoint, rest.strip()


def endpoints_of(models: Mapping[str, str | Model] | None, prices: Mapping[str, str] | None = None) -> Endpoints:
    """Return the endpoints of a program, with names in any case. Raises BadRequest."""
    named = {name.upper(): given for name, given in (models or {}).items()}
    try:
        Endpoints(named)
    except ValueError as error:
        raise BadRequest(f"models: {error}", code="models_invalid") from None
    try:
        return Endpoints(named, {name.upper(): text for name, text in (prices or {}).items()})
    except ValueError as error:
        raise BadRequest(f"prices: {error}", code="prices_invalid") from None


def prices_of(text: str) -> dict[str, Price]:
    """Return prices by model. Raises ValueError."""
    found: dict[str, Price] = {}
    for part in text.split():
        model, _, numbers = part.rpartition("=")
        try:
            amounts = [Decimal(number) for number in numbers.split("/")]
        except InvalidOperation:
            amounts = []
        if len(amounts) not in (2, 3) or not all(n.is_finite() and 0 <= n <= _PRICE_MAX for n in amounts):
            raise ValueError(
                f"{part!r} must be two or three prices from 0 to {_PRICE_MAX}, input/cached input/output, such as "
                "0.15/0.075/0.60 or llama3=0/0"
            )
        found[model] = Price(amounts[0], amounts[1] if len(amounts) == 3 else amounts[0], amounts[-1])
    if not found:
        raise ValueError("there is no price in it")
    return found


def _endpoint(name: str, text: str | Model) -> Endpoint:
    if NAME.fullmatch(name) is None:
        raise ValueError(f"the name {name!r} must have capital letters, digits and _ only")
    if not isinstance(text, str):
        return Endpoint(name.lower(), "openai", "", model=text)
    scheme, _, _ = text.partition("://")
    dialect, plus, scheme = scheme.rpartition("+")
    url = text.removeprefix(f"{dialect}+") if plus else text
    if plus and dialect not in ("openai", "anthropic"):
        raise ValueError(f"the wire format {dialect!r} is not known: use openai+ or anthropic+ in front of the URL")
    try:
        parts = urlsplit(url)
        usable = scheme in ("http", "https") and bool(parts.hostname) and _port(url) > 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("it must start with http:// or https:// and have a host")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("it cannot have a user, a password, a query or a fragment")
    spoken: Dialect = "anthropic" if dialect == "anthropic" or (not plus and name == "ANTHROPIC") else "openai"
    return Endpoint(name.lower(), spoken, url.rstrip("/"))


def _dialect(name: str) -> Dialect:
    return "anthropic" if name == "anthropic" else "openai"


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
