"""The page at ``/``: three files that hold no data, which the script asks for (`watch`) when it has a token."""

from __future__ import annotations

from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from semibandit.report.style import CSS

# Nothing from elsewhere, nothing inline, in nobody's frame: what a label is called can never become code.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


def _file(name: str) -> str:
    return (files("semibandit.serve") / "assets" / name).read_text(encoding="utf-8")


def _page(path: str, text: str, kind: str) -> Route:
    body = text.encode()

    async def show(request: Request) -> Response:
        return Response(body, headers=_HEADERS, media_type=kind)

    return Route(path, show, methods=["GET"], name=path)


PAGES = [
    _page("/", _file("page.html"), "text/html"),
    _page("/page.css", CSS + _file("page.css"), "text/css"),
    _page("/page.js", _file("page.js"), "text/javascript"),
]
