"""The interface in the browser, as web/ builds it into server/_web: one page for every address of it, and its files.

File names carry a hash of their content, so browsers may cache files for ever and the page never. It works under the
strictest policy: nothing but this server's own scripts, styles, fonts and connections.
"""

from __future__ import annotations

import gzip
from mimetypes import guess_type
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

BUILT = Path(__file__).parent / "_web"
LICENSES = "third-party-licenses.md"
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
PAGE_HEADERS = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
PACKED = ".gz"
FOR_EVER = "public, max-age=31536000, immutable"


def built(folder: Path = BUILT) -> Path | None:
    """The folder of the built interface; None when it was left out (WEFT_WEB=skip) or never built."""
    return folder if (folder / "index.html").is_file() else None


def page(folder: Path) -> Response:
    """The page. What it shows depends on its address, which it reads itself."""
    return FileResponse(folder / "index.html", headers=PAGE_HEADERS, media_type="text/html; charset=utf-8")


class Extras(NamedTuple):
    """Parts that the interface adds to pages made here, which work without them: addresses of a script and of a
    stylesheet."""

    script: str | None = None
    fonts: str | None = None


def extras(folder: Path | None, name: str) -> Extras:
    """The built script of this name, and the fonts. Nothing without an interface."""
    return Extras(_asset(folder, f"{name}-*.js"), _asset(folder, "fonts-*.css")) if folder else Extras()


def _asset(folder: Path, pattern: str) -> str | None:
    found = sorted((folder / "assets").glob(f"{pattern}*"))
    return f"/assets/{found[0].name.removesuffix(PACKED)}" if found else None


def files(folder: Path) -> list[BaseRoute]:
    """Return the routes of scripts, styles and fonts, and of their licences. Public: they hold no data."""

    async def licenses(request: object) -> Response:
        return FileResponse(folder / LICENSES, media_type="text/plain; charset=utf-8")

    return [Mount("/assets", _Assets(directory=folder / "assets", check_dir=False)), Route(f"/{LICENSES}", licenses)]


class _Assets(StaticFiles):
    """The build leaves most of them compressed alone. The few clients that take no gzip get them unpacked."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        packed = path + PACKED
        file, found = await anyio.to_thread.run_sync(self.lookup_path, packed)
        if found is None:
            response = await super().get_response(path, scope)
        elif takes_gzip(Headers(scope=scope).get("accept-encoding", "")):
            response = await super().get_response(packed, scope)
            response.headers["Content-Encoding"] = "gzip"
        else:
            media_type, _ = guess_type(path)
            response = Response(await anyio.to_thread.run_sync(_unpacked, file), media_type=media_type)
        if response.status_code in (200, 206, 304):
            response.headers["Cache-Control"] = FOR_EVER
            response.headers["Vary"] = "Accept-Encoding"
        return response


def _unpacked(file: str) -> bytes:
    return gzip.decompress(Path(file).read_bytes())


def takes_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding header admits gzip."""
    wanted: dict[str, bool] = {}
    for part in header.lower().split(","):
        name, _, weight = part.partition(";")
        wanted[name.strip()] = weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return wanted.get("gzip", wanted.get("*", False))
