"""A client of Google's API: lists by the page, single objects, with an access token.

It knows no location and no review; `google_http.py` sends its requests.

Sections: the connection - the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from reviewslib.dataset.strict_json import Object
from reviewslib.importer.google_faults import fault_of, odd_answer
from reviewslib.importer.google_http import (
    Endpoints,
    GoogleResponse,
    Pacing,
    exchange,
    exchange_patiently,
)
from reviewslib.importer.google_key import GoogleKey, access_of
from reviewslib.importer.google_shapes import object_of, page_token_in

# ---- The connection ----

# Half a million reviews, more than a data file may have.
MAX_PAGES = 10_000


@dataclass(frozen=True)
class Connection:
    """Where Google is, and how the run waits, ends and tells how far it is."""

    endpoints: Endpoints = Endpoints()
    pacing: Pacing = field(default_factory=Pacing)
    progress: Callable[[str], None] = lambda line: None
    max_pages: int = MAX_PAGES  # of a list


# ---- The client ----


class GoogleClient:
    """Asks for lists, page by page, and for single objects, with an access token."""

    def __init__(self, key: GoogleKey, connection: Connection):
        """Asks for the access token. Raises GoogleFault."""
        self.endpoints = connection.endpoints
        self.progress = connection.progress
        self._pacing = connection.pacing
        self._max_pages = connection.max_pages
        access = access_of(key, self.endpoints, self._pacing)
        self._fields = {"Authorization": f"Bearer {access.token}"}
        self.date = access.date  # of the last answer

    def pages(self, url: str, query: Mapping[str, str]) -> Iterator[Object]:
        """The pages of a list. Raises GoogleFault; NotFound for a status of 404."""
        fields = dict(query)
        tokens = set[str]()
        for _ in range(self._max_pages):
            page = self._page(f"{url}?{urlencode(fields)}")
            yield page
            token = page_token_in(page)
            if not token:
                return
            if token in tokens:
                break
            tokens.add(token)
            fields["pageToken"] = token
        raise odd_answer("its pages have no end")

    def _page(self, url: str) -> Object:
        response = exchange_patiently(url, self._fields, self._pacing)
        self.date = response.date
        if response.status != 200:
            raise fault_of(response.status, response.error)
        return object_of(response.content, "a page")

    def ask_once(self, url: str) -> GoogleResponse:
        """The answer to a question another run can ask again. Raises GoogleFault."""
        response = exchange(url, self._fields)
        self.date = response.date
        return response
