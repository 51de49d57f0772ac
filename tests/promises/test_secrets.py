"""Secrets: what looks for them must cost little, whatever a stranger sends, and must not tell them."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from executor.kernel.values.redact import Redactor

PASSWORD = "x9#kQ!2@pZ$7&mL"
PASSPHRASE = "correct-horse-battery-staple"
LOSSY = "пароль-надёжный-и-длинный-ещё-длиннее-x9"
OPENED = " ".join(["x9", "kQ", "2", "pZ", "7", "mL", *PASSPHRASE.split("-")])  # all that the quick look asks for

UNITS = {
    "backslash": "\\",
    "percent": "%5c",
    "percent twice": "%255c",
    "percent of percent": "%25",
    "json": "\\u005c",
    "json of json": "\\\\u005c",
    "braces": "\\u{5c}",
    "hexadecimal": "\\x5c",
    "html": "&#92;",
    "html of html": "&amp;",
    "zeros": "&#0000",
    "name": "&bsol;",
    "quoted-printable": "=5C",
    "soft break": "=\r\n",
    "break": "\n",
    "escaped break": "\\n",
    "indented": "\n \t",
    "zero": "\x00",
    "escaped zero": "\\u0000",
    "lost": "?",
    "replaced": "\ufffd",
    "plus": "+",
    "base64": "Y29ycmVjdC1ob3JzZQ",
    "beginning": "correct-horse-battery-stapl",
    "mixture": "\\%5c\\\\u005c&#92;=5C\n?",
}


def cpu_s(work: Callable[[], object]) -> float:
    """The CPU time of one call, the least of several."""

    def once() -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    return min(once() for _ in range(5))


def at_most(ratio: float, work: Callable[[], object], other: Callable[[], object]) -> bool:
    """Whether `work` takes at most so many times the CPU time of `other`: in one of several rounds, as other programs
    on the machine take away its caches."""
    return any(cpu_s(work) / cpu_s(other) < ratio for _ in range(5))


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_twice_the_text_costs_twice_the_time(unit: str) -> None:
    redactor = Redactor([PASSWORD, PASSPHRASE, LOSSY])

    def of(count: int) -> Callable[[], object]:
        text = f"{OPENED} {unit * (count // len(unit))} {OPENED}"
        return lambda: redactor.redact(text)

    of(1_000)()  # compiles what it looks for
    assert at_most(2.5, of(200_000), of(100_000))
    assert redactor.redact(f"{unit * 50} {PASSPHRASE} {unit * 50}").count("[redacted]") == 1


def test_a_text_with_all_words_of_a_secret_costs_as_much_as_one_without() -> None:
    """Else the time of an answer tells a stranger which words are in it."""
    redactor = Redactor([PASSPHRASE])
    noise = "\\" * 100_000
    hit = f"staple battery horse correct {noise}"
    miss = f"staple battery horse orchard {noise}"
    redactor.redact(hit)
    assert at_most(1.5, lambda: redactor.redact(hit), lambda: redactor.redact(miss))
    assert at_most(1.5, lambda: redactor.redact(miss), lambda: redactor.redact(hit))
