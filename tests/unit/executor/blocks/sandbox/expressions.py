"""Random expressions with random values: what people write, and what lies close to the edges of it."""

from __future__ import annotations

import random
from typing import Any

from executor.kernel.values.payload import Bound

_TEXTS = ["", "a", "b", "B", "pass", "fail", "10", " 5 ", "-0", "NaN", "true", "null", "0", "é", "ÿ", "\uffff", "😀"]
_TEXTS += ["a😀", "\u2028", "\x00", "\x7f", "x" * 300, "é" * 40, "toString", "length", "<b>", "'"]
_NUMBERS = [0, 1, -1, 2, 3, 5, 10, 42, 500, 2**31, 2**53 - 1, 2**53, -(2**53), -0.0, 0.0, 1.0, 0.1, 0.2, 0.5, -1.5, 2.5]
_NUMBERS += [1e-7, 9e15, 123456.789, 5e-324, 4294967295, 4294967296.0, 0.30000000000000004, 1e-6, 123e-20]
_NAMES = ["a", "b", "n", "length", "0", "1", "items", "__proto__", "constructor", "toString", "valueOf", "x.y", "", "é"]
_WILD: list[Any] = [
    2**53 + 1,
    -(2**53) - 1,
    2**63,
    2**64,
    10**20,
    10**21,
    1e16,
    1e21,
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
]
_WILD += ["\ud83d", "\ud83d\ude00", "\ude00", {"\ud800": 1}, {"\ud83d\ude00": 1}, {"2": 1, "1": [{}]}]
_MEMBERS = ["a", "b", "n", "length", "items", "__proto__", "constructor", "toString", "typeof", "true", "$x", "_y"]
_BOUND = ["a", "b", "draft.n", "draft.text", "é", "x", "same"]
_ODD = [
    "nope", "this", "NaN", "Infinity", "1n", "0x10", "010", "1e3", "1.", ".5", "1_000", "`t`", "[1]", "({})",
    "/a/.test('a')", "+'5'", "~1", "void 0", "--1", "1 ** 2", "1, 2", "1 & 3", "1 << 2", "1 >>> 0", "a => 1", "__v",
    "__t", "__v?.a", "x = 1", "new Date()", "'\\n'", "\"\\é\"", "\"\\ud83d\\ude00\"", "\"\\ud83d\"", "'\\''",
    "\"\\x41\"", "undefined", "null", "async", "let", "Math.max(1, 2)", "'a'.includes('b')", "'abc'.length",
    "'abc'[1]", "\"é\"[0]", "arguments", "in", "1 in __v", "<!-- x", "eval", "999999999999999", "9999999999999999",
    "0.000001", "123456789.123456", "1.50", "00", "1.2.3", "\u00a01", "\ufeff1", "\u000b1",
]  # fmt: skip
_BINARY = ["===", "!==", "==", "!=", "<", ">", "<=", ">=", "&&", "||", "??", "+", "-", "*", "/", "%"]
_RARE = ["**", "&", "|", "^", "<<", ">>", ",", " in ", " instanceof ", "=", "=>", "==="]
_SPACE = ["", "", " ", " ", " ", "  ", "\n", "\t", "\r\n"]
_NOISE = "()[]{}.,:;?!=<>+-*/%&|^~'\"`\\ \n\t\r01589eEnxabv_$é😀\u2028\u00a0#@"


def random_call(dice: random.Random) -> Bound:
    names = dice.sample(_BOUND, dice.choice([3, len(_BOUND), len(_BOUND)]))
    values = {name: _value(dice, 3) for name in names} | {"draft.n": _number(dice), "draft.text": dice.choice(_TEXTS)}
    if dice.random() < 0.1:
        values[names[-1]] = dice.choice(_WILD)
    if "same" in values and dice.random() < 0.5:
        values["same"] = values[names[0]]  # one object in Python, two in JavaScript
    texts = {name: dice.choice(_TEXTS) for name in dice.sample(_BOUND, 5)}
    source = _expression(dice, dice.choice([1, 2, 2, 3, 4]))
    while dice.random() < 0.2:
        source = _mutated(dice, source)
    return Bound(source, values, texts)


def _value(dice: random.Random, depth: int) -> Any:
    kind = dice.randrange(10 if depth else 8)
    match kind:
        case 0:
            return None
        case 1:
            return dice.random() < 0.5
        case 2 | 3 | 4:
            return _number(dice)
        case 5 | 6 | 7:
            return dice.choice(_TEXTS)
        case 8:
            return [_value(dice, depth - 1) for _ in range(dice.randrange(4))]
        case _:
            return {dice.choice(_NAMES): _value(dice, depth - 1) for _ in range(dice.randrange(5))}


def _number(dice: random.Random) -> int | float:
    common: int | float = dice.choice([dice.choice(_NUMBERS), dice.randrange(10), dice.uniform(-3, 3)])
    return common


def _expression(dice: random.Random, depth: int) -> str:
    if depth == 0:
        return _operand(dice)
    space = dice.choice(_SPACE)
    match dice.randrange(15):
        case 0:
            return f"!{space}{_expression(dice, depth - 1)}"
        case 1:
            return f"{dice.choice(['-', 'typeof '])}{space}{_expression(dice, depth - 1)}"
        case 2 | 3:
            return f"({space}{_expression(dice, depth - 1)}{space})"
        case 4:
            yes, no = _expression(dice, depth - 1), _expression(dice, depth - 1)
            return f"{_expression(dice, depth - 1)}{space}?{space}{yes}{space}:{space}{no}"
        case 5:
            return _path(dice, f"({_expression(dice, depth - 1)})")
        case 6:  # of one type, which chance alone seldom brings together
            left, right = (f'__t["{dice.choice(_BOUND)}"]', '__v["draft.text"]')
            return f"{left} {dice.choice(['<', '>', '<=', '>=', '===', '+'])} {right}{dice.choice(['', '.length'])}"
        case 7:
            return f'__v["same"] {dice.choice(["===", "!==", "==", "!="])} __v["{dice.choice(_BOUND)}"]'
        case 8:
            other = dice.choice(["1", "3", "-7", "0.1", "__v.b", "900719925474099", "-__v['draft.n']"])
            return f'__v["draft.n"] {dice.choice(["+", "-", "*", "/", "%", "<", "==="])} {other}'
        case _:
            sign = dice.choice(_RARE if dice.random() < 0.02 else _BINARY)
            return f"{_expression(dice, depth - 1)}{space}{sign}{dice.choice(_SPACE)}{_expression(dice, depth - 1)}"


def _operand(dice: random.Random) -> str:
    match dice.randrange(20):
        case 0:
            return dice.choice(_ODD)
        case 1 | 2:
            return dice.choice(["true", "false", "null", "undefined"])
        case 3 | 4 | 5:
            return dice.choice(["0", "1", "2", "5", "10", "500", "0.5", "1.5", "3.25", "9007199254740993", "1.10"])
        case 6 | 7 | 8:
            quote = dice.choice("'\"")
            return quote + dice.choice(_TEXTS).replace(quote, "") + quote
        case 9 | 10:
            return _path(dice, f'__t["{dice.choice(_BOUND)}"]')
        case 11:
            return _path(dice, f"__v.{dice.choice(['a', 'b', 'x', 'same', 'missing', 'toString'])}")
        case _:
            name = dice.choice(_BOUND)
            return _path(dice, f'__v["{name}"]' if name != "é" or dice.random() < 0.5 else '__v["\\u00e9"]')


def _path(dice: random.Random, of: str) -> str:
    while dice.random() < 0.35:
        match dice.randrange(4):
            case 0:
                of += f"[{dice.choice(['0', '1', '-1', '1.5', '__v.a', '  0', 'true', '99', '4294967295'])}]"
            case 1:
                of += f"['{dice.choice(_MEMBERS)}']"
            case _:
                of += f".{dice.choice(_MEMBERS)}"
    return of


def _mutated(dice: random.Random, source: str) -> str:
    at = dice.randrange(len(source) + 1)
    match dice.randrange(3):
        case 0:
            return source[:at] + source[at + 1 :]
        case 1:
            return source[:at] + dice.choice(_NOISE) + source[at:]
        case _:
            return source[:at] + dice.choice(_NOISE) + source[at + 1 :]
