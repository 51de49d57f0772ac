from __future__ import annotations

import re
from datetime import date

import pytest

from executor.blocks.llm.base import Cost, Usage
from executor.blocks.llm.endpoints import Endpoint, Endpoints, endpoints_of
from executor.blocks.llm.prices import cost_of, table
from executor.errors import BadRequest

URL = "http://127.0.0.1:9/v1"


def endpoint(name: str, price: str | None = None) -> Endpoint:
    found, _ = Endpoints({"LOCAL": URL}, {} if price is None else {name.upper(): price}).find(f"{name}:m")
    return found


def test_the_table_has_a_version_and_a_day_that_is_not_ahead() -> None:
    found = re.fullmatch(r"genai-prices \d+\.\d+\.\d+ \((\d{4}-\d\d-\d\d)\)", table())
    assert found is not None and date(2026, 1, 1) <= date.fromisoformat(found[1]) <= date.today()


def test_cached_tokens_cost_less_than_others_and_are_counted_once() -> None:
    openai = endpoint("openai")
    plain, cached, none = (cost_of(Usage(1_000_000, 0, n), openai, "gpt-5-mini") for n in (0, 500_000, 1_000_000))
    assert plain is not None and cached is not None and none is not None
    assert plain.usd > cached.usd > none.usd > 0
    assert cached.usd == pytest.approx((plain.usd + none.usd) / 2)


def test_tokens_of_reasoning_are_counted_once() -> None:
    openai = endpoint("openai")
    assert cost_of(Usage(10, 1000, reasoning_tokens=900), openai, "gpt-5") == cost_of(Usage(10, 1000), openai, "gpt-5")


def test_tokens_written_to_a_cache_cost_more() -> None:
    anthropic = endpoint("anthropic")
    plain = cost_of(Usage(1_000_000), anthropic, "claude-sonnet-4-5")
    written = cost_of(Usage(1_000_000, cache_write_tokens=1_000_000), anthropic, "claude-sonnet-4-5")
    assert plain is not None and written is not None and written.usd == pytest.approx(1.25 * plain.usd)


def test_an_unknown_model_has_no_price() -> None:
    assert cost_of(Usage(10, 10), endpoint("openai"), "gpt-unknown") is None
    assert cost_of(Usage(10, 10), endpoint("local"), "gpt-5-mini") is None, "of another server"
    assert cost_of(Usage(10, 10, 11), endpoint("openai"), "gpt-5-mini") is None, "more cached than there are"


def test_the_name_in_the_request_is_tried_as_well() -> None:
    found = cost_of(Usage(10, 10), endpoint("openai"), "gpt-unknown", "gpt-5-mini")
    assert found == cost_of(Usage(10, 10), endpoint("openai"), "gpt-5-mini") is not None


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ({"other": "1/2"}, "prices: there is no endpoint OTHER: set WEFT_MODEL_OTHER to its URL, or name it in models"),
        ({"local": "cheap"}, "prices: 'cheap' must be two or three prices"),
    ],
)
def test_prices_of_a_program_are_checked(prices: dict[str, str], message: str) -> None:
    with pytest.raises(BadRequest, match=re.escape(message)):
        endpoints_of({"local": URL}, prices)


def test_own_prices_come_before_the_table() -> None:
    usage = Usage(1_000_000, 100_000, 400_000)
    assert cost_of(usage, endpoint("openai", "1/0.25/10"), "gpt-5-mini") == Cost(1.7, "WEFT_PRICE_OPENAI")
    assert cost_of(usage, endpoint("local", "1/10"), "m") == Cost(2.0, "WEFT_PRICE_LOCAL")


def test_own_prices_by_model() -> None:
    local = endpoint("local", "llama3=0/0 1/2")
    assert cost_of(Usage(5, 5), local, "llama3") == Cost(0.0, "WEFT_PRICE_LOCAL"), "it costs nothing, which is known"
    assert cost_of(Usage(5, 5), local, "other") == Cost(0.000015, "WEFT_PRICE_LOCAL")
    assert cost_of(Usage(5, 5), endpoint("local", "llama3=0/0"), "other") is None


@pytest.mark.parametrize("text", ["", "1", "1/2/3/4", "a/b", "-1/2", "nan/1", "1e9/1", "x=", "1/2 x=y/z"])
def test_prices_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ValueError, match="price"):
        Endpoints({"LOCAL": URL}, {"LOCAL": text})


def test_a_price_needs_its_endpoint() -> None:
    with pytest.raises(ValueError, match="WEFT_MODEL_FAR"):
        Endpoints({"LOCAL": URL}, {"FAR": "1/2"})
