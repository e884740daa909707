"""Every page of a site of files, by following links from the fixed documents on.

The application is asked in this process; what nothing links to is no part of the site.
This module must not know files, sockets or the command line.

Sections: what is asked - links - the walk - the whole, in memory.
"""

from __future__ import annotations

import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from html import unescape
from urllib.parse import unquote

from reviewslib.links import ROBOTS_PATH, ServiceUrls, target_of
from reviewslib.messages import HTML_TYPE, Request, Response, joined

Respond = Callable[[Request], Response]

# ---- What is asked ----

# A page for people, where there is a choice. The host is never used: links have the
# base URL.
HEADERS = {"host": "localhost", "accept": "text/html"}
INDEX = "index.html"
# What file servers answer for an unknown path, by their own convention.
NOT_FOUND = "404.html"
# Without it, GitHub Pages leaves out folders that begin with a dot or underscore.
NO_JEKYLL = ".nojekyll"


class CannotExport(Exception):
    """The site cannot be files; the text says why, in a sentence."""


def ask(respond: Respond, path: str) -> Response:
    """The response to a GET of a path of the service, with its query.

    Raises CannotExport for a response that says that the service failed.
    """
    encoded, _, query = path.partition("?")
    request = Request("GET", unquote(encoded), query, HEADERS.get)
    response = respond(request)
    if response.status >= 500:
        raise CannotExport(f"{path}: the service answers with status {response.status}")
    return response


def is_page(response: Response) -> bool:
    """Whether a response is HTML."""
    return ("Content-Type", HTML_TYPE) in response.headers


# ---- Links ----

# Our templates write attributes in double quotes, and escape those of texts, so that a
# text of a customer cannot look like an attribute. A parser of HTML takes ten times as
# long.
LINK = re.compile(r'\s(?:href|src)="([^"]*)"')


def links_of(page: str, base_path: str) -> Iterator[str]:
    """The paths, below the base URL, that a page links to, without fragments."""
    for link in LINK.findall(page):
        path = unescape(link).partition("#")[0]
        if path.startswith(f"{base_path}/"):
            yield path.removeprefix(base_path)


def file_of(path: str) -> str:
    """The name of the file with the content of a path below the base URL."""
    name = path.removeprefix("/")
    return name + INDEX if path.endswith("/") else name


# ---- The walk ----


def first_paths(urls: ServiceUrls) -> list[str]:
    """Where the walk begins: what callers know without a link."""
    documents = [urls.reviews, urls.insights, urls.json_feed, urls.atom_feed]
    documents += [urls.contract, urls.llms, urls.sitemap, urls.badge, urls.icon]
    pages = [urls.home, urls.embed]
    return [*map(urls.path, [*pages, *documents]), ROBOTS_PATH]


def site_files(respond: Respond, urls: ServiceUrls) -> Iterator[tuple[str, bytes]]:
    """The names and contents of all files, each once. Raises CannotExport.

    `urls` are those of the application that responds.
    """
    base_path = urls.as_paths().base_url
    yield NO_JEKYLL, b""
    # No path of the service ends so.
    yield NOT_FOUND, joined(ask(respond, "/nothing.here").body)
    waiting = deque(first_paths(urls))
    seen = set(waiting)
    while waiting:
        path = waiting.popleft()
        response = ask(respond, target_of(path))
        body = joined(response.body)
        yield file_of(path), body
        if is_page(response):
            found = dict.fromkeys(links_of(body.decode(), base_path))
            new = [link for link in found if link not in seen]
            seen.update(new)
            waiting.extend(new)


# ---- The whole, in memory ----


class SiteFiles:
    """Files by name, held compressed: pages repeat their style sheet."""

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}
        self.size_bytes = 0

    def add(self, name: str, content: bytes) -> None:
        """Add a file."""
        self._packed[name] = zlib.compress(content, 1)
        self.size_bytes += len(content)

    def names(self) -> set[str]:
        """The names of all files."""
        return set(self._packed)

    def content(self, name: str) -> bytes:
        """The content of a file."""
        return zlib.decompress(self._packed[name])


# GitHub Pages publishes at most 1 GB; a pull of the old site and the new one needs some
# more.
MAX_SITE_BYTES = 900 * 10**6


def collected(
    files: Iterator[tuple[str, bytes]], limit: int = MAX_SITE_BYTES
) -> SiteFiles:
    """All files. Raises CannotExport if they have more than `limit` bytes."""
    site = SiteFiles()
    for name, content in files:
        site.add(name, content)
        if site.size_bytes > limit:
            raise CannotExport(
                f"the site has more than {limit / 10**6:,.0f} MB, which free hosts do not "
                "publish; nothing was written. Serve it with a server instead"
            )
    return site
