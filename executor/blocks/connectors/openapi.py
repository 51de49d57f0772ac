"""A connector document from an OpenAPI 3 description: the operations it offers, and a document of the chosen ones.

Nothing is fetched: references into other files are not followed. Whatever the description is, the result passes the
check of connector documents, and all walks are bounded: a schema that refers to itself ends as one that allows
anything, and all walks together have one bound for each request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson
from msgspec import Struct

from compiler.schema import schema_error
from executor.blocks.connectors.document import BYTES_MAX as CONNECTOR_BYTES_MAX
from executor.blocks.connectors.document import FORMAT, RESERVED
from executor.blocks.connectors.validate import checked
from executor.errors import BadRequest, LimitExceeded

BYTES_MAX: Final = 8 * 1024 * 1024
OPERATIONS_MAX: Final = 2_000
CHOSEN_MAX: Final = 50
DEPTH_MAX: Final = 6
PARTS_MAX: Final = 300
REFS_MAX: Final = 20
REF_CHARS_MAX: Final = 2_000
MEDIA_MAX: Final = 50
FIELDS_MAX: Final = 60
STEPS_MAX: Final = 600_000  # a quarter of a second
METHODS: Final = ("get", "post", "put", "patch", "delete", "head")

_VARIABLE: Final = re.compile(r"\{([^{}/]{1,200})\}")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_PATH: Final = re.compile(r"/[^\s?#]{0,400}|")
_URL: Final = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")
_OURS: Final = frozenset({"accept", "content-type", "authorization"})
_KEPT: Final = frozenset(
    [
        "type", "enum", "const", "format", "title", "description", "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems",
    ]
)  # fmt: skip


class Offered(Struct, frozen=True):
    """One operation of a description. `problem`: why it cannot be used."""

    id: str
    method: str
    path: str
    title: str
    tag: str | None = None
    problem: str | None = None


class _Found(NamedTuple):
    id: str
    method: str
    path: str
    operation: Mapping[str, Any]
    shared: Mapping[str, Any]  # the part of its path that is for all methods

    @property
    def title(self) -> str:
        return _text(self.operation.get("summary"), 120) or f"{self.method} {self.path}"[:120]


class _Source:
    """A description, and how much may still be done with it. All reading of a request counts on one of these."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        self.description = description
        self.known: dict[tuple[int, ...], tuple[dict[str, Any], int]] = {}  # schemas that were read, see `_plain`
        self._steps = STEPS_MAX
        self._bytes = self._for_outputs = CONNECTOR_BYTES_MAX // 2

    def spend(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise _too_large("the description takes too long to read")

    def encode(self, part: Any) -> bytes:
        data = orjson.dumps(part, option=orjson.OPT_SORT_KEYS)
        self.spend(len(data) // 64)
        return data

    def write(self, data: bytes) -> None:
        """Count the bytes of the document. Raises LimitExceeded if it becomes larger than allowed."""
        self._bytes -= len(data)
        if self._bytes < 0:
            raise _too_large("the fields of these operations are too large for a connector document")

    def has_room(self, data: bytes) -> bool:
        """Count an output if there is room for it: half of the document is for what requests need."""
        self._for_outputs -= len(data)
        return self._for_outputs >= 0

    def resolved(self, value: Any) -> Any:
        """Return the target of a reference in the description, or None if it leads out of it, or in a circle."""
        for _ in range(REFS_MAX):
            self.spend(1)
            if not isinstance(value, Mapping) or not isinstance(ref := value.get("$ref"), str):
                return value
            if not ref.startswith("#/") or len(ref) > REF_CHARS_MAX:
                return None
            target: Any = self.description
            steps = ref[2:].split("/")[:REFS_MAX]
            self.spend(len(steps))
            for step in steps:
                name = step.replace("~1", "/").replace("~0", "~")
                target = target.get(name) if isinstance(target, Mapping) else None
            value = target
        return None


def parse(data: bytes) -> dict[str, Any]:
    """Raises BadRequest(openapi_invalid)."""
    if len(data) > BYTES_MAX:
        raise _invalid("", f"the description has more than {BYTES_MAX} bytes", "remove the operations you do not need")
    try:
        description = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        hint = "a description in YAML has to be converted to JSON first"
        raise _invalid("", f"the description is not JSON: {error}", hint) from None
    return known(description)


def known(description: Any) -> dict[str, Any]:
    """Return the description if it is valid. Raises BadRequest(openapi_invalid)."""
    version = description.get("openapi") if isinstance(description, dict) else None
    if not isinstance(version, str) or not version.startswith("3."):
        old = isinstance(description, dict) and "swagger" in description
        hint = "convert it to OpenAPI 3 first" if old else 'its member "openapi" must be "3.0.x" or "3.1.x"'
        raise _invalid("/openapi", "this is not an OpenAPI 3 description", hint)
    if not isinstance(description.get("paths"), dict):
        raise _invalid("/paths", "the description has no paths", "there is nothing to choose from")
    found: dict[str, Any] = description
    return found


def operations(description: Mapping[str, Any]) -> list[Offered]:
    source = _Source(description)
    return [_offered(source, found) for found in _all(source)]


def connector(
    description: Mapping[str, Any],
    chosen: Sequence[str],
    *,
    service: str | None = None,
    base_url: str | None = None,
) -> dict[str, Any]:
    """Return a connector document with the chosen operations, by their ids. Raises BadRequest, LimitExceeded."""
    if not 1 <= len(chosen) <= CHOSEN_MAX:
        raise _invalid("/operations", f"choose 1 to {CHOSEN_MAX} operations", "list them without choosing any")
    source = _Source(description)
    every = {found.id: found for found in _all(source)}
    shapes: dict[str, bytes] = {}
    made: dict[str, Any] = {}
    auths: list[dict[str, Any]] = []
    for id in dict.fromkeys(chosen):
        found = every.get(id)
        if found is None:
            raise _invalid("/operations", f"there is no operation {id[:100]!r}", "list the operations for their ids")
        problem = _offered(source, found).problem
        if problem is not None:
            raise _invalid("/operations", f"operation {id!r} cannot be used: {problem}", "choose others")
        made[id] = _operation(source, found, shapes)
        auths += [auth] if (auth := _auth(source, found)) is not None else []
    info = _mapping(description.get("info"))
    title = _text(info.get("title"), 80) or "Service"
    name = service or _name(title, 40) or "service"
    document = {
        "format": FORMAT,
        "service": name,
        "title": title,
        "base_url": _base_url(description, every[chosen[0]], base_url),
        "auth": auths[0] if auths else {"kind": "none"},
        "operations": made,
    }
    if about := _text(_mapping(description.get("externalDocs")).get("url"), 500):
        document["docs"] = about
    checked(document)
    return document


def _all(source: _Source) -> Iterator[_Found]:
    ids: set[str] = set()

    def taken(id: str) -> bool:
        source.spend(1)
        return id in ids

    for path, item in _mapping(source.description.get("paths")).items():
        shared = _mapping(source.resolved(item))
        for method in METHODS:
            operation = shared.get(method)
            if not isinstance(operation, Mapping):
                continue
            wanted = _name(operation.get("operationId"), 70) or _name(f"{method} {path}", 70) or method
            id = _unique(wanted, taken)
            ids.add(id)
            yield _Found(id, method.upper(), str(path), operation, shared)
            if len(ids) >= OPERATIONS_MAX:
                return


def _offered(source: _Source, found: _Found) -> Offered:
    tags = found.operation.get("tags")
    tag = _text(tags[0], 80) if isinstance(tags, list) and tags else None
    problem = None
    if not _PATH.fullmatch(found.path) or "{{" in found.path:
        problem = "its path has characters that an address cannot have"
    elif _content(source, found)[0] == "":
        problem = "it sends files, or a format other than JSON, forms and text"
    return Offered(found.id, found.method, found.path, found.title, tag, problem)


def _operation(source: _Source, found: _Found, shapes: dict[str, bytes]) -> dict[str, Any]:
    """`shapes`: the fields of the operations before it, by name; a field that differs gets another name."""
    made = _Fields(source, shapes)
    query: dict[str, Any] = {}
    headers: dict[str, Any] = {}
    in_path: dict[str, str] = {}
    for parameter in _parameters(source, found):
        name, where = str(parameter["name"]), parameter.get("in")
        field = _field(source, parameter.get("schema"), parameter.get("description"))
        needed = parameter.get("required") is True
        if where == "path":
            in_path[name] = made.add(name, {"type": "string", **field}, True)
        elif where == "query" and len(query) < FIELDS_MAX:
            query[name] = "{{" + made.add(name, field, needed) + "}}"
        elif where == "header" and name.lower() not in _OURS and _HEADER.fullmatch(name):
            headers[name] = "{{" + made.add(name, field, needed) + "}}"

    def variable(match: re.Match[str]) -> str:
        name = match[1]
        if name not in in_path:
            in_path[name] = made.add(name, {"type": "string"}, True)
        return "{{" + in_path[name] + "}}"

    path = _VARIABLE.sub(variable, found.path)
    operation: dict[str, Any] = {
        "title": found.title,
        "method": found.method,
        "path": path,
    }
    if found.method in ("PUT", "DELETE"):  # RFC 9110: a second one changes nothing more
        operation["idempotent"] = True
    if about := _text(found.operation.get("description"), 2000):
        operation["description"] = about
    media, schema, needed = _content(source, found)
    if media is not None:
        operation["body"] = _body(source, schema, needed, made)
        if media != "application/json":
            headers["Content-Type"] = media
    for part, value in (("query", query), ("headers", headers), ("fields", made.fields), ("required", made.required)):
        if value:
            operation[part] = value
    if (output := _output(source, found)) is not None:
        operation["output"] = output
    return operation


class _Fields:
    """The fields of one operation. Each name means the same in all operations of a connector."""

    def __init__(self, source: _Source, shapes: dict[str, bytes]) -> None:
        self.fields: dict[str, Any] = {}
        self.required: list[str] = []
        self._source = source
        self._shapes = shapes

    def add(self, wanted: str, field: dict[str, Any], needed: bool) -> str:
        name = _name(wanted, 50) or "field"
        if name in RESERVED:
            name = f"{name}_value"
        shape = {key: value for key, value in field.items() if key not in ("title", "description")}
        data = self._source.encode(shape)
        self._source.write(data)

        def taken(other: str) -> bool:
            self._source.spend(1)
            return other in self.fields or self._shapes.get(other, data) != data

        name = _unique(name, taken)
        self._shapes[name] = data
        self.fields[name] = {"title": _text(wanted, 80) or name, **field}
        if needed:
            self.required.append(name)
        return name


def _parameters(source: _Source, found: _Found) -> list[Mapping[str, Any]]:
    """Return the parameters of the path and of the operation, which replace them; at most FIELDS_MAX."""
    named: dict[tuple[str, Any], Mapping[str, Any]] = {}
    for listed in (found.shared.get("parameters"), found.operation.get("parameters")):
        for one in listed[:FIELDS_MAX] if isinstance(listed, list) else ():
            parameter = _mapping(source.resolved(one))
            if isinstance(parameter.get("name"), str) and parameter["name"] and isinstance(parameter.get("in"), str):
                named[parameter["name"][:200], parameter["in"]] = {**parameter, "name": parameter["name"][:200]}
    return list(named.values())[:FIELDS_MAX]


def _content(source: _Source, found: _Found) -> tuple[str | None, Any, bool]:
    """Return the media type of the body, "" if it cannot be sent, with its schema, and if the body is required."""
    body = _mapping(source.resolved(found.operation.get("requestBody")))
    content = _mapping(body.get("content"))
    if not content or found.method in ("GET", "HEAD"):
        return None, None, False
    needed = body.get("required") is True
    for media, its in islice(content.items(), MEDIA_MAX):
        plain = str(media).partition(";")[0].strip().lower()
        if plain == "application/json" or (plain.endswith("+json") and _HEADER.fullmatch(plain.replace("/", "-"))):
            return plain, _mapping(its).get("schema"), needed
    for media in ("application/x-www-form-urlencoded", "text/plain"):
        if media in content:
            return media, _mapping(content[media]).get("schema"), needed
    return (None if not needed and found.method == "DELETE" else ""), None, needed


def _body(source: _Source, schema: Any, needed: bool, made: _Fields) -> Any:
    """Make one field for each property of an object, else one for the whole."""
    merged = _merged(source, schema, [PARTS_MAX])
    every = _mapping(merged.get("properties"))
    properties = {name: its for name, its in every.items() if _mapping(its).get("readOnly") is not True}
    wanted = merged.get("required")
    listed = frozenset(name for name in wanted if isinstance(name, str)) if isinstance(wanted, list) else frozenset()
    plain = 0 < len(properties) <= FIELDS_MAX - len(made.fields) and not any(
        name.startswith("$") or not name or len(name) > 200 for name in properties
    )
    if not plain or "oneOf" in merged or "anyOf" in merged:
        field = _field(source, schema, None)
        return "{{" + made.add("body", {"title": "Body", **field}, needed) + "}}"
    body: dict[str, Any] = {}
    for name, its in properties.items():
        field = _field(source, its, None)
        body[name] = "{{" + made.add(name, field, needed and name in listed) + "}}"
    return body


def _merged(source: _Source, schema: Any, left: list[int], inside: tuple[int, ...] = ()) -> dict[str, Any]:
    """Return the schema with the properties of `allOf` as its own. `left`: how many more parts there may be."""
    resolved = _mapping(source.resolved(schema))
    left[0] -= 1
    if left[0] < 0 or id(resolved) in inside:
        return {}
    source.spend(len(resolved) + len(_mapping(resolved.get("properties"))))
    found = dict(resolved)
    parts = found.pop("allOf", None)
    if not isinstance(parts, list):
        return found
    properties, required = dict(_mapping(found.get("properties"))), found.get("required")
    needed = list(required) if isinstance(required, list) else []
    for part in parts[:REFS_MAX]:
        inner = _merged(source, part, left, (*inside, id(resolved)))
        properties = {**_mapping(inner.get("properties")), **properties}
        needed += inner["required"] if isinstance(inner.get("required"), list) else []
        found = {**inner, **found}
        source.spend(len(properties) + len(needed) + len(found))
    return {**found, "properties": properties, "required": needed}


def _field(source: _Source, schema: Any, about: Any) -> dict[str, Any]:
    field = dict(_plain(source, schema, [PARTS_MAX]))
    said = _text(about, 300) or _text(field.get("description"), 300)
    default = _mapping(source.resolved(schema)).get("default")
    if default is not None and not isinstance(default, dict | list):
        said = f"{said or ''} Default: {str(default)[:80]}".strip()
    field.pop("title", None)
    if said is not None:
        field["description"] = said
    if schema_error(source.encode(field)) is not None:
        return {"description": said} if said is not None else {}
    return field


def _output(source: _Source, found: _Found) -> dict[str, Any] | None:
    responses = _mapping(found.operation.get("responses"))
    for status in ("200", "201", "202", "203", "2XX", "default"):
        content = _mapping(_mapping(source.resolved(responses.get(status))).get("content"))
        for media, its in islice(content.items(), MEDIA_MAX):
            if str(media).partition(";")[0].strip().lower().endswith(("/json", "+json")):
                output = _plain(source, _mapping(its).get("schema"), [PARTS_MAX])
                data = source.encode(output)
                if not output or schema_error(data) is not None:
                    return None
                return output if source.has_room(data) else None
    return None


def _plain(source: _Source, schema: Any, left: list[int], depth: int = 0) -> dict[str, Any]:
    """Return the schema without references and OpenAPI keywords. `left`: how many more parts there may be; then, and
    below DEPTH_MAX, anything is allowed. A schema that others refer to is read once for each depth."""
    if depth > DEPTH_MAX or left[0] <= 0:
        return {}
    resolved = source.resolved(schema)
    before = left[0]
    for key in ((id(resolved), depth), (id(resolved), depth, before)):
        if key in source.known and source.known[key][1] <= before:
            plain, used = source.known[key]
            left[0] -= used
            return plain
    plain = _read(source, resolved, left, depth)
    whole = left[0] > 0  # else it depends on how much was left
    source.known[(id(resolved), depth) if whole else (id(resolved), depth, before)] = plain, before - left[0]
    return plain


def _read(source: _Source, schema: Any, left: list[int], depth: int) -> dict[str, Any]:
    found = _merged(source, schema, left)
    plain = {key: value for key, value in found.items() if key in _KEPT}
    for bound in ("exclusiveMinimum", "exclusiveMaximum"):
        if isinstance(plain.get(bound), bool):  # as OpenAPI 3.0 has it
            del plain[bound]
    for key in ("title", "description"):
        if key in plain and (text := _text(plain.pop(key), 300)) is not None:
            plain[key] = text
    if isinstance(plain.get("type"), str) and found.get("nullable") is True:
        plain["type"] = [plain["type"], "null"]
        if isinstance(plain.get("enum"), list):
            source.spend(len(plain["enum"]))
            plain["enum"] = [*plain["enum"], *([] if None in plain["enum"] else [None])]
    if isinstance(properties := found.get("properties"), Mapping) and properties:
        named = {str(name): its for name, its in islice(properties.items(), FIELDS_MAX)}
        plain["properties"] = {name: _plain(source, its, left, depth + 1) for name, its in named.items() if left[0] > 0}
        if isinstance(required := found.get("required"), list):
            source.spend(len(required))
            needed = [name for name in required if isinstance(name, str) and name in named]
            if needed:
                plain["required"] = list(dict.fromkeys(needed))
    if isinstance(found.get("items"), Mapping):
        plain["items"] = _plain(source, found["items"], left, depth + 1)
    for key in ("oneOf", "anyOf"):
        if isinstance(options := found.get(key), list) and options:
            # One of several and any of several differ only when they overlap, which is not known any more.
            plain["anyOf"] = [_plain(source, option, left, depth + 1) for option in options[:REFS_MAX]]
    return plain


def _auth(source: _Source, found: _Found) -> dict[str, Any] | None:
    asked = found.operation.get("security", source.description.get("security"))
    schemes = _mapping(_mapping(source.description.get("components")).get("securitySchemes"))
    for requirement in asked[:REFS_MAX] if isinstance(asked, list) else ():
        for name in islice(_mapping(requirement), REFS_MAX):
            scheme = _mapping(source.resolved(schemes.get(name)))
            if (auth := _auth_of(scheme)) is not None:
                about = _text(scheme.get("description"), 500)
                return {**auth, **({"description": about} if about else {})}
    return None


def _auth_of(scheme: Mapping[str, Any]) -> dict[str, Any] | None:
    kind, name = scheme.get("type"), scheme.get("name")
    if kind == "http" and str(scheme.get("scheme")).lower() == "basic":
        return {"kind": "basic", "title": "User and password"}
    if kind in ("oauth2", "openIdConnect") or (kind == "http" and str(scheme.get("scheme")).lower() == "bearer"):
        return {"kind": "bearer", "title": "Access token"}
    where = scheme.get("in")
    if kind == "apiKey" and isinstance(name, str) and _HEADER.fullmatch(name) and where in ("header", "query"):
        return {"kind": where, "name": name, "title": "API key"}
    return None


def _base_url(description: Mapping[str, Any], found: _Found, wanted: str | None) -> str:
    url = wanted
    for listed in (found.operation.get("servers"), found.shared.get("servers"), description.get("servers")):
        if url is None and isinstance(listed, list) and listed:
            server = _mapping(listed[0])
            variables = _mapping(server.get("variables"))

            def value(match: re.Match[str], variables: Mapping[str, Any] = variables) -> str:
                return str(_mapping(variables.get(match[1])).get("default", match[0]))

            url = _VARIABLE.sub(value, str(server.get("url", "")))
    url = (url or "").rstrip("/")
    if not _URL.fullmatch(url) or len(url) > 500 or "{{" in url:
        raise _invalid("/servers", "the description has no address of the service", "give the base URL")
    return url


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any, most: int) -> str | None:
    text = " ".join(value[: 10 * most].split()) if isinstance(value, str) else ""
    return (text if len(text) <= most else text[: most - 1] + "…") or None


def _name(value: Any, most: int) -> str:
    """Convert `listPets`, `List pets` or `/pets/{id}` to a name: list_pets, pets_id. "" if nothing is left."""
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", value[:500]) if isinstance(value, str) else ""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return re.sub(r"^[^a-z]+", "", name)[:most].rstrip("_")


def _unique(name: str, taken: Callable[[str], bool]) -> str:
    if not taken(name):
        return name
    n = 2
    while taken(f"{name}_{n}"):
        n += 1
    return f"{name}_{n}"


def _invalid(pointer: str, message: str, hint: str) -> BadRequest:
    return BadRequest(message, code="openapi_invalid", pointer=pointer, hint=hint)


def _too_large(message: str) -> LimitExceeded:
    return LimitExceeded(message, code="openapi_too_large", hint="choose fewer operations, with smaller schemas")
