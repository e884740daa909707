"""A fake of Google's Business Profile API over a real socket, for the tests of the importer.

It keeps to what is documented: requests, pages, tokens, errors and `Date`. A test changes
its attributes between runs; what it was asked stands in `requests`.
"""

import json
import threading
from collections.abc import Callable, Iterable
from datetime import datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lab.export_lab import PLACE, Item, Shop, api_item
from reviewslib.importer import command
from reviewslib.importer.google import Connection
from reviewslib.importer.google_http import Endpoints, Pacing

ACCOUNT = "accounts/9"
OTHER_PLACE = "22"
TOKEN = "ya29.access-token"
REFRESH_TOKEN = "1//refresh-token"
SECRET = "client-secret"
Answer = tuple[int, Any]


def error(code: int, status: str, message: str = "No.", **details: Any) -> Answer:
    return code, {
        "error": {"code": code, "message": message, "status": status, **details}
    }


NOT_FOUND = error(404, "NOT_FOUND", "Requested entity was not found.")


def location(number: str = PLACE, title: str = "Bó's Bakarí", **more: Any) -> Item:
    return {"name": f"locations/{number}", "title": title, **more}


class GoogleShop(Shop):
    """A data directory, and a key to a fake of Google."""

    def __init__(self, root: Path, output: Callable[[], Any], google: "FakeGoogle"):
        super().__init__(root, output)
        self.google = google
        self.key = self.file("google.json", google.key)
        self.slept = list[float]()

    def run(self, *arguments: object) -> int:
        pacing = Pacing(sleep=self.slept.append, random=lambda: 1.0)
        connection = Connection(endpoints=self.google.endpoints, pacing=pacing)
        words = [*map(str, arguments), "--data", str(self.data)]
        return command.main(words, connection=connection)

    def ask(self, *arguments: object) -> str:
        """The report of an import from Google that succeeds."""
        return self.told("--google", self.key, *arguments)

    def failed(self, *arguments: object) -> tuple[int, str]:
        """The exit status and the errors of an import that changes no file."""
        self.output()
        before = self.files()
        status = self.run("--google", self.key, *arguments)
        assert self.files() == before
        printed = self.output()
        for secret in (TOKEN, REFRESH_TOKEN, SECRET, self.google.url):
            assert secret not in printed.out + printed.err
        return status, str(printed.err)


class FakeGoogle:
    """Google with one account; leaving its context stops it."""

    def __init__(self) -> None:
        self.now = "2025-06-01T10:00:00+00:00"
        self.locations = [location()]
        self.reviews = dict[str, list[Item]]()  # by location
        self.appearing = list[Item]()  # come after the first page of a list was read
        self.hidden = set[str]()  # ids that no list has from page 2 on
        self.unlisted = set[str]()  # ids that no list has at all
        self.total: int | None = None  # instead of the true one
        # By a part of a path: what is answered instead.
        self.answers = dict[str, Callable[[], Answer]]()
        self.requests = list[str]()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> "FakeGoogle":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

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
            "client_id": "client-id",
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

    def answer(self, path: str, query: dict[str, list[str]]) -> Answer:
        for part, answer in self.answers.items():
            if part in path:
                return answer()
        if path == "/token":
            return 200, {
                "access_token": TOKEN,
                "expires_in": 3599,
                "refresh_token": REFRESH_TOKEN,
            }
        if path == "/v1/accounts":
            return 200, {"accounts": [{"name": ACCOUNT, "accountName": "Bó"}]}
        if path == f"/v1/{ACCOUNT}/locations":
            if "readMask" not in query:
                return error(400, "INVALID_ARGUMENT")
            return 200, {"locations": self.locations}
        return self._answer_of_reviews(path, query)

    def _answer_of_reviews(self, path: str, query: dict[str, list[str]]) -> Answer:
        _, _, rest = path.partition("/locations/")
        place, _, id = rest.partition("/reviews")
        items = self.reviews.get(place, [])
        if id:
            found = [item for item in items if item["reviewId"] == id.strip("/")]
            return (200, found[0]) if found else NOT_FOUND
        return 200, self._page(items, query)

    def _page(self, items: list[Item], query: dict[str, list[str]]) -> Item:
        start = int(query.get("pageToken", ["0"])[0])
        size = int(query["pageSize"][0])
        ordered = sorted(items, key=lambda item: str(item["updateTime"]), reverse=True)
        hidden = self.unlisted | self.hidden if start else self.unlisted
        part = [
            item
            for item in ordered[start : start + size]
            if item["reviewId"] not in hidden
        ]
        page: Item = {"averageRating": 4.5, "totalReviewCount": len(items)}
        if self.total is not None:
            page["totalReviewCount"] = self.total
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
                status, content = google.answer(url.path, parse_qs(url.query))
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
