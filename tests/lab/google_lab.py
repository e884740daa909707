"""A fake of Google's Business Profile API over a real socket, for the tests of the importer.

It keeps to what is documented: requests, pages, tokens, errors and `Date`. A test changes
its attributes between runs; what it was asked stands in `requests`.

Sections: words of the fake - Google - a shop - a proxy on the way.
"""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import trustme

from lab.export_lab import PLACE, Item, Shop, api_item
from reviewslib.importer import command
from reviewslib.importer.google_client import Connection
from reviewslib.importer.google_http import Endpoints, Pacing

# ---- Words of the fake ----

ACCOUNT = "accounts/9"
OTHER_PLACE = "22"
# The first word of every author's name.
AUTHOR = "Ósk"
TOKEN = "ya29.access-token"
REFRESH_TOKEN = "1//refresh-token"
CLIENT = "client-id"
SECRET = "client-secret"
ORDERS = ("updateTime desc", "rating desc")
STARS = ("ONE", "TWO", "THREE", "FOUR", "FIVE")
Answer = tuple[int, Any]


def error(code: int, status: str, message: str = "No.", **details: Any) -> Answer:
    return code, {
        "error": {"code": code, "message": message, "status": status, **details}
    }


NOT_FOUND = error(404, "NOT_FOUND", "Requested entity was not found.")


def location(number: str = PLACE, title: str = "Bó's Bakarí", **more: Any) -> Item:
    return {"name": f"locations/{number}", "title": title, **more}


# ---- Google ----


class _Server(ThreadingHTTPServer):
    """Says nothing of peers that leave, or that refuse its certificate."""

    service: Any  # what its handlers serve

    def handle_error(self, *details: object) -> None:
        pass


class _Service:
    """A server on a port of this machine; leaving its context stops it."""

    scheme = "http"

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = _Server(("127.0.0.1", 0), handler)
        self._server.service = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def speak_tls(self, certificate: trustme.LeafCert) -> None:
        self.scheme = "https"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing among the tests."""


class _AsGoogle(_Handler):
    def do_GET(self) -> None:
        self._answer("")

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self._answer(self.rfile.read(length).decode())

    def _answer(self, body: str) -> None:
        google: FakeGoogle = self.server.service
        google.requests.append(f"{self.command} {self.path} {body}".strip())
        token = self.headers["Authorization"] or ""
        status, content = google.answer(self.path, token, body)
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        self.send_response_only(status)
        moment = datetime.fromisoformat(google.now)
        self.send_header("Date", format_datetime(moment, usegmt=True))
        self.send_header("Content-Length", str(len(content)))
        if status == 302:
            self.send_header("Location", f"{google.url}/elsewhere")
        self.end_headers()
        self.wfile.write(content)


class FakeGoogle(_Service):
    """Google with one owner, who has a key."""

    def __init__(self, certificate: trustme.LeafCert | None = None) -> None:
        """With a certificate it speaks TLS."""
        super().__init__(_AsGoogle)
        if certificate:
            self.speak_tls(certificate)
        self.now = "2025-06-01T10:00:00+00:00"
        self.accounts = [ACCOUNT]
        self.locations = [location()]
        self.reviews = dict[str, list[Item]]()  # by location
        self.requests = list[str]()
        # By a part of a path: what is answered instead.
        self.answers = dict[str, Callable[[], Answer]]()
        # What goes wrong with lists
        self.largest_page = 50
        self.overlap = 0  # how many reviews a page repeats of the one before
        self.appearing = list[Item]()  # come after the first page of a list was read
        self.hidden = set[str]()  # ids that lists lack from page 2 on
        self.hidden_in = ORDERS  # of lists
        self.unlisted = set[str]()  # ids that no list has at all
        self.totals = dict[str, int]()  # by location, instead of the true ones

    # What a test gives and takes

    def has(self, items: Iterable[int | Item], place: str = PLACE) -> None:
        """Let a location have these reviews, given as items or numbers."""
        self.reviews[place] = [
            api_item(entry) if isinstance(entry, int) else entry for entry in items
        ]

    def texts(self) -> set[str]:
        """What customers and the owner have written."""
        found = set[str]()
        for items in self.reviews.values():
            for item in items:
                found.add(item.get("comment") or "")
                found.add((item.get("reviewReply") or {}).get("comment") or "")
        return found - {""}

    @property
    def endpoints(self) -> Endpoints:
        return Endpoints(
            consent=f"{self.url}/consent",
            token=f"{self.url}/token",
            accounts=f"{self.url}/v1",
            locations=f"{self.url}/v1",
            reviews=f"{self.url}/v4",
        )

    @property
    def key(self) -> str:
        """An "authorized user" file."""
        members = {
            "type": "authorized_user",
            "client_id": CLIENT,
            "client_secret": SECRET,
            "refresh_token": REFRESH_TOKEN,
            "token_uri": self.endpoints.token,
        }
        return json.dumps(members)

    # What it answers

    def answer(self, target: str, token: str, body: str) -> Answer:
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        is_of_api = url.path.startswith(("/v1/", "/v4/"))
        if is_of_api and token != f"Bearer {TOKEN}":
            return error(401, "UNAUTHENTICATED")
        for part, answer in self.answers.items():
            if part in url.path:
                return answer()
        if url.path == "/token":
            return self._answer_to_form(body)
        if url.path == "/v1/accounts":
            return 200, {"accounts": [{"name": name} for name in self.accounts]}
        if url.path.removeprefix("/v1/").removesuffix("/locations") in self.accounts:
            if "readMask" not in query:
                return error(400, "INVALID_ARGUMENT")
            return 200, {"locations": self.locations}
        return self._answer_of_reviews(url.path, query)

    def _answer_to_form(self, body: str) -> Answer:
        """A token for a key, or a key for the code of a login."""
        form = {name: values[0] for name, values in parse_qs(body).items()}
        is_known = (form["client_id"], form["client_secret"]) == (CLIENT, SECRET)
        if form["grant_type"] == "refresh_token":
            is_known &= form["refresh_token"] == REFRESH_TOKEN
        else:
            is_known &= {"code", "code_verifier", "redirect_uri"} <= form.keys()
        if not is_known:
            return 400, {"error": "invalid_grant"}
        return 200, {
            "access_token": TOKEN,
            "expires_in": 3599,
            "refresh_token": REFRESH_TOKEN,
        }

    def _answer_of_reviews(self, path: str, query: dict[str, str]) -> Answer:
        _, _, rest = path.partition("/locations/")
        place, _, id = rest.partition("/reviews")
        items = self.reviews.get(place, [])
        if not id:
            return 200, self._page(items, place, query)
        for item in items:
            if item["reviewId"] == id.strip("/"):
                return 200, item
        return NOT_FOUND

    def _page(self, items: list[Item], place: str, query: dict[str, str]) -> Item:
        start = int(query.get("pageToken", 0))
        end = start + min(int(query["pageSize"]), self.largest_page)
        total = self.totals.get(place, len(items))
        page: Item = {"averageRating": 4.5, "totalReviewCount": total}
        part = self._part(items, start, end, query["orderBy"])
        if part:
            page["reviews"] = part
        if end < len(items):
            page["nextPageToken"] = str(end)
        if not start and self.appearing:
            items.append(self.appearing.pop())
        return page

    def _part(self, items: list[Item], start: int, end: int, order: str) -> list[Item]:
        """The reviews of a page, without those that it lacks."""
        ordered = sorted(items, key=lambda item: str(item["updateTime"]), reverse=True)
        if order == "rating desc":
            ordered.sort(key=lambda item: STARS.index(item["starRating"]), reverse=True)
        hidden = set(self.unlisted)
        if start and order in self.hidden_in:
            hidden |= self.hidden
        first = max(start - self.overlap, 0)
        return [item for item in ordered[first:end] if item["reviewId"] not in hidden]


# ---- A shop ----


class GoogleShop(Shop):
    """A data directory, and a key to a fake of Google.

    Whatever a command prints is looked through for what must not stand there.
    """

    def __init__(self, root: Path, output: Callable[[], Any], google: FakeGoogle):
        """`output` as for Shop; with --verbose, all that can be said is said."""
        super().__init__(root, self._read_output)
        self._output = output
        self.google = google
        self.endpoints = google.endpoints
        self.key = self.file("google.json", google.key)
        self.max_pages = 100
        self.slept = list[float]()

    def run(self, *arguments: object) -> int:
        connection = Connection(
            endpoints=self.endpoints,
            pacing=Pacing(sleep=self.slept.append, random=lambda: 1.0),
            max_pages=self.max_pages,
        )
        words = [*map(str, arguments), "--verbose", "--data", str(self.data)]
        return command.main(words, connection=connection)

    def _read_output(self) -> Any:
        printed = self._output()
        secrets = (TOKEN, REFRESH_TOKEN, SECRET, CLIENT, self.google.url, "googleapis")
        for words in (*secrets, *self.google.texts()):
            assert words not in printed.out + printed.err
        assert AUTHOR not in printed.err
        return printed

    def ask(self, *arguments: object) -> str:
        """The report of an import from Google that succeeds."""
        return self.told("--google", self.key, *arguments)

    def failed(self, *arguments: object) -> tuple[int, str]:
        """The exit status and the errors of an import that changes no file."""
        self.output()
        before = self.files()
        status = self.run("--google", self.key, *arguments)
        assert self.files() == before
        return status, str(self.output().err)


# ---- A proxy on the way ----


class _AsProxy(_Handler):
    def do_CONNECT(self) -> None:
        proxy: Proxy = self.server.service
        proxy.hosts.add(self.path)
        with socket.create_connection(("127.0.0.1", proxy.target)) as there:
            self.send_response_only(200)
            self.end_headers()
            back = threading.Thread(target=_pass_on, args=(there, self.connection))
            back.start()
            _pass_on(self.connection, there)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Pass bytes on until `source` ends, or one of the two is gone."""
    with suppress(OSError):
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)


class Proxy(_Service):
    """A forward proxy (RFC 9110, section 9.3.6) that leads every host to one port."""

    def __init__(self, target: int) -> None:
        super().__init__(_AsProxy)
        self.target = target
        self.hosts = set[str]()
