"""A fake of Google's Business Profile API over a real socket, for the tests of the importer.

It keeps to what is documented: requests, pages, tokens, errors and `Date`. A test changes
its attributes between runs; what it was asked stands in `requests`.
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
from typing import Any
from urllib.parse import parse_qs, urlsplit

import trustme

from lab.export_lab import PLACE, Item, Shop, api_item
from reviewslib.importer import command
from reviewslib.importer.google_client import Connection
from reviewslib.importer.google_http import Endpoints, Pacing

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


class GoogleShop(Shop):
    """A data directory, and a key to a fake of Google.

    Whatever a command prints is looked through for what must not stand there.
    """

    def __init__(self, root: Path, output: Callable[[], Any], google: "FakeGoogle"):
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


class _Server(ThreadingHTTPServer):
    """Says nothing of peers that leave, or that refuse its certificate."""

    def handle_error(self, *details: object) -> None:
        pass


class FakeGoogle:
    """Google with one account; leaving its context stops it."""

    def __init__(self, certificate: trustme.LeafCert | None = None) -> None:
        """With a certificate it speaks TLS."""
        self.now = "2025-06-01T10:00:00+00:00"
        self.accounts = [ACCOUNT]
        self.locations = [location()]
        self.reviews = dict[str, list[Item]]()  # by location
        self.largest_page = 50
        self.overlap = 0  # how many reviews a page repeats of the one before
        self.appearing = list[Item]()  # come after the first page of a list was read
        self.hidden = set[str]()  # ids that lists lack from page 2 on
        self.hidden_in = ORDERS  # of lists
        self.unlisted = set[str]()  # ids that no list has at all
        self.totals = dict[str, int]()  # by location, instead of the true ones
        # By a part of a path: what is answered instead.
        self.answers = dict[str, Callable[[], Answer]]()
        self.requests = list[str]()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.scheme = "http"
        if certificate:
            self.scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(context)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> "FakeGoogle":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def texts(self) -> set[str]:
        """What customers and the owner have written."""
        found = set[str]()
        for item in (item for items in self.reviews.values() for item in items):
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

    def has(self, items: Iterable[int | Item], place: str = PLACE) -> None:
        """Let a location have these reviews, given as items or numbers."""
        self.reviews[place] = [
            api_item(entry) if isinstance(entry, int) else entry for entry in items
        ]

    def answer(self, path: str, query: dict[str, list[str]], body: str) -> Answer:
        for part, answer in self.answers.items():
            if part in path:
                return answer()
        if path == "/token":
            if not self._is_known(body):
                return 400, {"error": "invalid_grant"}
            return 200, {
                "access_token": TOKEN,
                "expires_in": 3599,
                "refresh_token": REFRESH_TOKEN,
            }
        if path == "/v1/accounts":
            return 200, {"accounts": [{"name": name} for name in self.accounts]}
        if path.removeprefix("/v1/").removesuffix("/locations") in self.accounts:
            if "readMask" not in query:
                return error(400, "INVALID_ARGUMENT")
            return 200, {"locations": self.locations}
        return self._answer_of_reviews(path, query)

    def _is_known(self, body: str) -> bool:
        """Whether a form of the token address has a key, or a code of a login."""
        form = {name: values[0] for name, values in parse_qs(body).items()}
        if (form["client_id"], form["client_secret"]) != (CLIENT, SECRET):
            return False
        if form["grant_type"] == "refresh_token":
            return form["refresh_token"] == REFRESH_TOKEN
        return bool(form["code"] and form["code_verifier"] and form["redirect_uri"])

    def _answer_of_reviews(self, path: str, query: dict[str, list[str]]) -> Answer:
        _, _, rest = path.partition("/locations/")
        place, _, id = rest.partition("/reviews")
        items = self.reviews.get(place, [])
        if id:
            found = [item for item in items if item["reviewId"] == id.strip("/")]
            return (200, found[0]) if found else NOT_FOUND
        return 200, self._page(items, place, query)

    def _page(self, items: list[Item], place: str, query: dict[str, list[str]]) -> Item:
        start = int(query.get("pageToken", ["0"])[0])
        size = min(int(query["pageSize"][0]), self.largest_page)
        order = query["orderBy"][0]
        ordered = sorted(items, key=lambda item: str(item["updateTime"]), reverse=True)
        if order == "rating desc":
            ordered.sort(key=lambda item: STARS.index(item["starRating"]), reverse=True)
        hidden = set(self.unlisted)
        if start and order in self.hidden_in:
            hidden |= self.hidden
        part = [
            item
            for item in ordered[max(start - self.overlap, 0) : start + size]
            if item["reviewId"] not in hidden
        ]
        total = self.totals.get(place, len(items))
        page: Item = {"averageRating": 4.5, "totalReviewCount": total}
        if part:
            page["reviews"] = part
        if start + size < len(items):
            page["nextPageToken"] = str(start + size)
        if not start and self.appearing:
            items.append(self.appearing.pop())
        return page

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        google = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer("")

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                self._answer(self.rfile.read(length).decode())

            def _answer(self, body: str) -> None:
                url = urlsplit(self.path)
                google.requests.append(f"{self.command} {self.path} {body}".strip())
                status, content = google.answer(url.path, parse_qs(url.query), body)
                is_known = self.headers["Authorization"] == f"Bearer {TOKEN}"
                if url.path.startswith(("/v1/", "/v4/")) and not is_known:
                    status, content = error(401, "UNAUTHENTICATED")
                if not isinstance(content, bytes):
                    content = json.dumps(content).encode()
                self.send_response_only(status)
                moment = datetime.fromisoformat(google.now)
                self.send_header("Date", format_datetime(moment, usegmt=False))
                self.send_header("Content-Length", str(len(content)))
                if status == 302:
                    self.send_header("Location", f"{google.url}/elsewhere")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: object) -> None:
                """Print nothing among the tests."""

        return Handler


class Proxy:
    """A forward proxy (RFC 9110, section 9.3.6) that leads every host to one port."""

    def __init__(self, port: int) -> None:
        self.hosts = set[str]()
        self._server = _Server(("127.0.0.1", 0), self._handler(port))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> "Proxy":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def _handler(self, port: int) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_CONNECT(self) -> None:
                proxy.hosts.add(self.path)
                with socket.create_connection(("127.0.0.1", port)) as there:
                    self.send_response_only(200)
                    self.end_headers()
                    back = threading.Thread(
                        target=_pass_on, args=(there, self.connection)
                    )
                    back.start()
                    _pass_on(self.connection, there)
                    back.join()

            def log_message(self, format: str, *arguments: object) -> None:
                """Print nothing among the tests."""

        return Handler


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Pass bytes on until `source` ends, or one of the two is gone."""
    with suppress(OSError):
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
