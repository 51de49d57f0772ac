"""Params of a request that is made before a run: with the secrets that they name, and without values that only a run
has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from compiler.bind import is_env_name
from compiler.references import find
from executor.errors import BadRequest, BlockError
from executor.service.parts import Parts

# Errors of the request itself: no server was called.
OF_CALLER: Final = frozenset(
    {
        "address_refused",
        "connection_needs_sign_in",
        "connection_unknown",
        "secret_host_refused",
        "secret_invalid",
        "secret_misplaced",
        "url_invalid",
    }
)


def names_in(texts: Iterable[str], known: Collection[str]) -> Collection[str]:
    return {each.text for text in texts for each in find(text) if each.env and is_env_name(each.text, known)}


def filled(text: str, pointer: str, values: Mapping[str, str], code: str) -> str:
    """Raises BadRequest(code) for a reference that has no value, or only in a run."""
    parts, at = [], 0
    for each in find(text):
        if not each.env:
            message = f"<{each.text[:80]}> has a value in a run only, so the server cannot be asked here"
            raise BadRequest(message, code=code, pointer=pointer)
        if not is_env_name(each.text, values):
            continue
        if each.text not in values:
            hint = f"set the secret {each.text[:80]} in Settings, or the environment variable of the server"
            message = f"there is no secret or environment variable {each.text[:80]}"
            raise BadRequest(message, code=code, pointer=pointer, hint=hint)
        parts += [text[at : each.start], values[each.text]]
        at = each.end
    return "".join((*parts, text[at:]))


@contextmanager
def shown_errors(parts: Parts, code: str) -> Iterator[None]:
    """Raise errors of blocks without secrets in them. Raises BadRequest for those of the request: `code` for params,
    or one of OF_CALLER."""
    try:
        yield
    except BlockError as error:
        redact: Any = parts.redactor.redact
        shown, hint = redact(error.message), redact(error.hint)
        if error.code == "params_invalid":
            raise BadRequest(shown, code=code, hint=hint) from error
        if error.code in OF_CALLER:
            raise BadRequest(shown, code=error.code, hint=hint) from error
        raise BlockError(shown, code=error.code, retryable=error.retryable, hint=hint) from error
