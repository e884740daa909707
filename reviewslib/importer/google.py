"""Google's Business Profile API: the reviews and the profile of an owner's locations.

The answers become the same records as pages of files. This module asks by
`google_http.py` and decides what an answer means; it writes nothing and knows no rule of
merging. Its sections: what is asked in a run, accounts and locations, one listing, reviews
that a listing lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from reviewslib.dataset.contract import Contract
from reviewslib.dataset.strict_json import Json, Object
from reviewslib.importer.exports import Export
from reviewslib.importer.google_http import (
    Endpoints,
    GoogleFault,
    Pacing,
    Response,
    exchange,
    exchange_patiently,
    fault_of,
    odd_answer,
    to_be_settled,
)
from reviewslib.importer.google_key import Key, access_token, read_key
from reviewslib.importer.options import Options
from reviewslib.importer.profile import language_offer
from reviewslib.importer.questions import NeedsDecision, listed
from reviewslib.importer.state import Entry
from reviewslib.importer.stored import Stored
from reviewslib.importer.takeout import RESOURCE_NAME, Origin, add_reviews
from reviewslib.importer.texts import clean_line

# ---- What is asked in a run ----


@dataclass(frozen=True)
class Connection:
    """Where Google is, and how the run waits and tells how far it is."""

    endpoints: Endpoints = Endpoints()
    pacing: Pacing = field(default_factory=Pacing)
    progress: Callable[[str], None] = lambda line: None


class Answers(NamedTuple):
    """What Google said: reviews as exports, and the locations that were chosen."""

    exports: list[Export]
    locations: list[str]  # all that are chosen, those that Google no longer has, too
    profile: Object | None  # of the location, if one alone is chosen


def ask_google(
    key_file: Path,
    options: Options,
    stored: Stored,
    contract: Contract,
    connection: Connection,
) -> Answers:
    """Ask for all reviews of the chosen locations.

    `stored` tells which reviews a listing lacks. Raises GoogleFault and NeedsDecision.
    """
    key = read_key(key_file, connection.endpoints)
    client = Client(key, connection)
    places = client.places()
    chosen = _choose(places, options, stored)
    present = [places[location] for location in chosen if location in places]
    if not present:
        raise to_be_settled(
            "The account has none of the chosen locations any more: "
            f"{', '.join(chosen)}; choose again with --location."
        )
    exports = list[Export]()
    for place in present:
        export = Export("Google", options, contract)
        export.titles[place.location] = place.title
        _add_listing(export, client, place, stored)
        exports.append(export.finish())
    for location in chosen:
        if location not in places:
            exports[0].urgent_notes.append(
                f"the account no longer has location {location}; its reviews stay"
            )
    profile = None
    if len(chosen) == 1:
        profile = present[0].profile
        business = stored.document.get("business", {})
        exports[0].notes += language_offer(business, profile)
    return Answers(exports=exports, locations=chosen, profile=profile)


# ---- Accounts and locations ----

READ_MASK = (
    "name,title,storefrontAddress,phoneNumbers,websiteUri,regularHours,categories,"
    "latlng,serviceArea,languageCode,profile,metadata"
)


class Place(NamedTuple):
    """A location of an account."""

    location: str  # its number
    name: str  # of its reviews: accounts/…/locations/…
    title: str
    profile: Object


def _choose(places: dict[str, Place], options: Options, stored: Stored) -> list[str]:
    """The numbers of the locations to import. Raises NeedsDecision, GoogleFault."""
    chosen = options.location or stored.state.chosen
    if chosen:
        return sorted(chosen)
    if not places:
        raise to_be_settled(
            "The account manages no location, or none that is verified; log in with the "
            "account that owns or manages the profile."
        )
    if len(places) == 1:
        return [*places]
    names = [f"{place.location} {place.title!r}" for place in places.values()]
    lines = [
        "Which locations are to be imported? Each may be a business of its own:",
        *listed(sorted(names)),
        "Give the numbers of those to publish with --location. The choice is kept.",
    ]
    raise NeedsDecision(lines, "--location YOUR")


class Client:
    """Asks for lists, page by page, and for single objects, with an access token."""

    def __init__(self, key: Key, connection: Connection):
        """Asks for the access token. Raises GoogleFault."""
        self.endpoints = connection.endpoints
        self.pacing = connection.pacing
        self.progress = connection.progress
        answer = access_token(key, self.endpoints, self.pacing)
        self._fields = {"Authorization": f"Bearer {answer.content['access_token']}"}
        self.date = answer.date  # of the last answer

    def places(self) -> dict[str, Place]:
        """All locations of all accounts, by number. Raises GoogleFault."""
        found = dict[str, Place]()
        accounts = self.pages(f"{self.endpoints.accounts}/accounts", {"pageSize": "20"})
        names = list[str]()
        for page in accounts:
            names += [_name_of(item) for item in _list_in(page, "accounts")]
        for account in names:
            url = f"{self.endpoints.locations}/{account}/locations"
            query = {"readMask": READ_MASK, "pageSize": "100"}
            for page in self.pages(url, query):
                for item in _list_in(page, "locations"):
                    place = _place_of(item, account)
                    # A location may be in a group, too: it is the same one.
                    found.setdefault(place.location, place)
        return found

    def pages(self, url: str, query: dict[str, str]) -> Iterator[Object]:
        """The pages of a list. Raises GoogleFault; NotFound for a status of 404."""
        tokens = set[str]()
        token = ""
        while True:
            more = {"pageToken": token} if token else {}
            response = exchange_patiently(
                f"{url}?{urlencode(query | more)}", self._fields, self.pacing
            )
            page = _content_of(response)
            yield page
            self.date = response.date
            token = _next_token(page)
            if not token:
                return
            if token in tokens or len(tokens) >= MAX_PAGES:
                raise odd_answer("its pages have no end")
            tokens.add(token)

    def ask_once(self, url: str) -> Response:
        """The answer to a question that another run can ask again. Raises GoogleFault."""
        return exchange(url, self._fields)


# Half a million reviews.
MAX_PAGES = 10_000


class NotFound(GoogleFault):
    """What was asked for does not exist."""


def _content_of(response: Response) -> Object:
    """The object in an answer. Raises GoogleFault and NotFound."""
    if response.status == 404:
        raise NotFound("Google answers 404 to a list of this account; run it later.")
    if response.status != 200:
        raise fault_of(response)
    if not isinstance(response.content, dict):
        raise odd_answer("no object")
    return response.content


def _next_token(page: Object) -> str:
    token = page.get("nextPageToken") or ""
    if not isinstance(token, str):
        raise odd_answer("nextPageToken")
    return token


def _list_in(page: Object, key: str) -> list[Object]:
    """The objects of a list, none without it. Raises GoogleFault."""
    items = page.get(key)
    if items is None:
        return []
    if not isinstance(items, list):
        raise odd_answer(f"{key} is no list")
    for item in items:
        if not isinstance(item, dict):
            raise odd_answer(f"{key} has what is no object")
    return items


def _name_of(item: Object) -> str:
    """Raises GoogleFault."""
    name = item.get("name")
    if not isinstance(name, str) or not NAME_CHARACTERS.issuperset(name):
        raise odd_answer("name")
    return name


# Names become a part of addresses; nothing in them may lead elsewhere.
NAME_CHARACTERS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/~="
)


def _place_of(item: Object, account: str) -> Place:
    name = _name_of(item)
    prefix, _, number = name.rpartition("/")
    if prefix != "locations" or not number:
        raise odd_answer("name of a location")
    title = item.get("title")
    return Place(
        location=number,
        name=f"{account}/{name}",
        title=clean_line(title) if isinstance(title, str) else "",
        profile=item,
    )


# ---- One listing ----


@dataclass
class Listing:
    """What one or two readings of a location's list have brought."""

    time: str  # T
    items: dict[str, Object] = field(default_factory=dict)  # by id
    total: int | None = None  # the largest that a page gave

    def take(self, page: Object, location: str) -> None:
        """Raises GoogleFault."""
        for item in _list_in(page, "reviews"):
            id = review_id(item, location)
            self.items[id] = {**item, "reviewId": id}
        total = page.get("totalReviewCount")
        if isinstance(total, int):
            self.total = max(total, self.total or 0)

    @property
    def is_whole(self) -> bool:
        """Whether it has as many different reviews as the location."""
        # A location without reviews has a page without members.
        return len(self.items) >= (self.total or 0) and (
            self.total is not None or not self.items
        )


def review_id(item: Object, location: str) -> str:
    """The id of a review of this location. Raises GoogleFault."""
    name = RESOURCE_NAME.fullmatch(_name_of(item))
    if name is None or name[1] != location:
        raise odd_answer("name of a review")
    return name[2]


# The newest change first: what changes while paging comes twice rather than not at all.
# A second reading in another order has what an inconsistent page has lost.
ORDERS = ("updateTime desc", "rating desc")


def _add_listing(export: Export, client: Client, place: Place, stored: Stored) -> None:
    """Add the reviews of a location to an export, and what the listing says of others."""
    time = client.date
    if not time:
        raise odd_answer("no Date")
    listing = Listing(time)
    for order in ORDERS:
        _read_list(listing, client, place, order)
        if listing.is_whole:
            break
    lacking = lacked_ids(stored, place.location, listing.items.keys())
    asked = lacking[:MAX_QUESTIONS]
    there, gone = _ask_for(client, place, asked)
    listing.items |= there
    add_reviews(export, [*listing.items.values()], Origin("Google", time))
    export.gone = dict.fromkeys(gone, time)
    open_questions = len(lacking) - len(there) - len(gone)
    if listing.is_whole and not open_questions:
        export.covers[place.location] = time
        return
    export.urgent_notes.append(
        f"the list of location {place.location} has {len(listing.items)} of "
        f"{listing.total or 0} reviews; what it lacks stays as it was "
        f"({open_questions} of the stored reviews are to be asked for again)"
    )


def _read_list(listing: Listing, client: Client, place: Place, order: str) -> None:
    url = f"{client.endpoints.reviews}/{place.name}/reviews"
    try:
        for page in client.pages(url, {"pageSize": "50", "orderBy": order}):
            listing.take(page, place.location)
            client.progress(f"{place.title}: {len(listing.items)} reviews")
    except NotFound:
        raise to_be_settled(
            f"Google no longer has location {place.location}, or it is not verified; "
            "choose again with --location."
        ) from None


# ---- Reviews that a listing lacks ----

# A run must end soon; the next one asks for the rest.
MAX_QUESTIONS = 200


def lacked_ids(stored: Stored, location: str, listed_ids: Iterable[str]) -> list[str]:
    """The API's ids of the stored reviews of a location that a listing lacks.

    Those of which nothing was heard for longest come first.
    """
    entries = stored.entries()
    waiting = list[tuple[str, str]]()
    for id in stored.reviews:
        native_id = entries.get(id, Entry()).native.get(f"api {location}", "")
        if native_id and native_id not in listed_ids:
            heard = max(entries[id].seen, entries[id].gone)
            waiting.append((heard, native_id))
    return [native_id for _, native_id in sorted(waiting)]


def _ask_for(
    client: Client, place: Place, ids: Iterable[str]
) -> tuple[dict[str, Object], list[str]]:
    """The reviews that exist, by id, and the ids of those that Google says are gone."""
    there = dict[str, Object]()
    gone = list[str]()
    for id in ids:
        name = f"{place.name}/reviews/{id}"
        response = client.ask_once(f"{client.endpoints.reviews}/{name}")
        if response.status == 404:
            gone.append(id)
        elif response.status == 200:
            item: Json = response.content
            if not isinstance(item, dict) or review_id(item, place.location) != id:
                raise odd_answer("another review than asked for")
            there[id] = item | {"reviewId": id}
    return there, gone
