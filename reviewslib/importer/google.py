"""Google's Business Profile API: the reviews and the profile of an owner's locations.

The answers become the same records as pages of files. This module asks, by
`google_http.py`, and knows no rule of merging; it writes nothing. Its sections: what is
asked in a run, accounts and locations, one location's reviews, reviews that a list lacks,
requests with an access token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

from reviewslib.dataset.contract import Contract
from reviewslib.dataset.strict_json import Object
from reviewslib.importer.exports import Export
from reviewslib.importer.google_faults import (
    ODD_ANSWER,
    NotFound,
    fault_of,
    no_locations,
    no_reviews_of,
    none_verified,
    odd_answer,
    to_be_settled,
)
from reviewslib.importer.google_http import (
    Endpoints,
    Pacing,
    Response,
    exchange,
    exchange_patiently,
)
from reviewslib.importer.google_key import Key, access_of, read_key
from reviewslib.importer.google_listing import Listing, lacked_ids
from reviewslib.importer.google_shapes import (
    name_in,
    object_in,
    object_of,
    objects_in,
    page_token_in,
    text_in,
)
from reviewslib.importer.options import Options
from reviewslib.importer.profile import language_offer
from reviewslib.importer.questions import NeedsDecision, listed
from reviewslib.importer.stored import Stored
from reviewslib.importer.takeout import Origin, add_reviews
from reviewslib.importer.texts import clean_line

# ---- What is asked in a run ----

# Half a million reviews, more than a data file may have.
MAX_PAGES = 10_000


@dataclass(frozen=True)
class Connection:
    """Where Google is, and how the run waits, ends and tells how far it is."""

    endpoints: Endpoints = Endpoints()
    pacing: Pacing = field(default_factory=Pacing)
    progress: Callable[[str], None] = lambda line: None
    max_pages: int = MAX_PAGES  # of a list


class Answers(NamedTuple):
    """What Google said: reviews as exports, and the locations that were chosen."""

    exports: list[Export]
    locations: list[str]  # all that are chosen, those that Google no longer has, too
    profile: Object | None  # of the location, if one alone is chosen
    is_cut: bool  # whether more reviews were lacking than a run asks for


def ask_google(
    key_file: Path,
    options: Options,
    stored: Stored,
    contract: Contract,
    connection: Connection,
) -> Answers:
    """Ask for all reviews of the chosen locations.

    `stored` tells which reviews a list lacks. Raises GoogleFault and NeedsDecision.
    """
    client = Client(read_key(key_file, connection.endpoints), connection)
    places = client.places()
    chosen = _choose(places, options, stored)
    present = _present(places, chosen)
    exports = list[Export]()
    is_cut = False
    for place in present:
        export = Export("Google", options, contract)
        export.titles[place.location] = place.title
        is_cut |= _add_location(export, client, place, stored)
        exports.append(export.finish())
    exports[0].urgent_notes += _lost(places, chosen, stored)
    profile = None
    if len(chosen) == 1:
        profile = present[0].profile
        business = stored.document.get("business", {})
        exports[0].notes += language_offer(business, profile)
    return Answers(exports, locations=chosen, profile=profile, is_cut=is_cut)


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

    @property
    def is_unverified(self) -> bool:
        """Whether Google says that nobody has control over the profile.

        An absent member says nothing: Google's JSON leaves out what is not set.
        """
        return object_in(self.profile, "metadata").get("hasVoiceOfMerchant") is False

    def __str__(self) -> str:
        return f"{self.location} {self.title!r}"


def _place_of(item: Object, account: str) -> Place:
    name = name_in(item)
    prefix, _, number = name.rpartition("/")
    if prefix != "locations" or not number:
        raise odd_answer("name of a location")
    return Place(
        location=number,
        name=f"{account}/{name}",
        title=clean_line(text_in(item, "title")),
        profile=item,
    )


def _choose(places: Mapping[str, Place], options: Options, stored: Stored) -> list[str]:
    """The numbers of the locations to import. Raises NeedsDecision, GoogleFault."""
    chosen = options.location or stored.state.chosen
    if chosen:
        return sorted(chosen)
    if not places:
        raise no_locations()
    if all(place.is_unverified for place in places.values()):
        raise none_verified()
    if len(places) == 1:
        return [*places]
    lines = [
        "Which locations are to be imported? Each may be a business of its own:",
        *listed(sorted(map(str, places.values()))),
        "Give the numbers of those to publish with --location. The choice is kept.",
    ]
    raise NeedsDecision(lines, "--location YOUR")


def _present(places: Mapping[str, Place], chosen: Sequence[str]) -> list[Place]:
    """The chosen locations that the account has. Raises GoogleFault if it has none."""
    present = [places[location] for location in chosen if location in places]
    if present:
        return present
    if not places:
        raise no_locations()
    known = ", ".join(sorted(map(str, places.values())))
    raise to_be_settled(
        f"The account has none of the chosen locations ({', '.join(chosen)}). It has "
        f"{known}; choose again with --location."
    )


def _lost(
    places: Mapping[str, Place], chosen: Sequence[str], stored: Stored
) -> list[str]:
    """A line for each chosen location that the account no longer has."""
    titles = stored.state.locations
    return [
        f"the account no longer has location {location} {titles.get(location, '')!r}; "
        "its reviews stay"
        for location in chosen
        if location not in places
    ]


# ---- One location's reviews ----

# The newest change first: what changes while paging comes twice rather than not at all.
# A second reading in another order has what an inconsistent page has lost.
ORDERS = ("updateTime desc", "rating desc")


def _add_location(export: Export, client: Client, place: Place, stored: Stored) -> bool:
    """Add the reviews of a location, and what its list says of others.

    Returns whether it lacks more reviews than a run asks for.
    """
    listing = _read_listing(client, place)
    lacking = lacked_ids(stored, place.location, listing.items)
    there, gone = _ask_for(client, place, lacking)
    for id, item in there.items():
        if listing.add(item) != id:
            raise odd_answer("another review than asked for")
    add_reviews(export, [*listing.items.values()], Origin("Google", listing.time))
    export.gone = dict.fromkeys(gone, listing.time)
    if export.failed:
        export.advice[f"This is how Google answers; {ODD_ANSWER}"] = None
    still_open = len(lacking) - len(there) - len(gone)
    if listing.is_whole and not still_open:
        export.covers[place.location] = listing.time
    else:
        export.urgent_notes.append(
            f"the list of location {place.location} has {len(listing.items)} of "
            f"{listing.total or 0} reviews; what it lacks stays as it was "
            f"({still_open} of the stored reviews are to be asked for again)"
        )
    return len(lacking) > MAX_QUESTIONS


def _read_listing(client: Client, place: Place) -> Listing:
    """The list of a location, read in a second order if it is short.

    Raises GoogleFault.
    """
    if not client.date:
        raise odd_answer("no Date")
    listing = Listing(place.location, time=client.date)
    url = f"{client.endpoints.reviews}/{place.name}/reviews"
    for order in ORDERS:
        try:
            for page in client.pages(url, {"pageSize": "50", "orderBy": order}):
                listing.take(page)
                client.progress(f"{place.title}: {len(listing.items)} reviews")
        except NotFound:
            raise no_reviews_of(place.location) from None
        if listing.is_whole:
            break
    return listing


# ---- Reviews that a list lacks ----

# Google allows 300 requests a minute, and a run must end soon. The next one asks for the
# rest.
MAX_QUESTIONS = 200
# Google is busy, and every further question would keep it so.
MAX_BUSY_ANSWERS = 10


def _ask_for(
    client: Client, place: Place, ids: Sequence[str]
) -> tuple[dict[str, Object], list[str]]:
    """The reviews that exist, by id, and the ids of those that Google says are gone.

    Those without such an answer are in neither. Raises GoogleFault.
    """
    there = dict[str, Object]()
    gone = list[str]()
    busy = 0
    for id in ids[:MAX_QUESTIONS]:
        # An id of a saved page may have any character.
        name = f"{place.name}/reviews/{quote(id, safe='')}"
        response = client.ask_once(f"{client.endpoints.reviews}/{name}")
        if response.status == 200:
            there[id] = object_of(response.content, "a review")
        elif response.is_not_found:
            gone.append(id)
        elif response.is_busy:
            busy += 1
        if busy == MAX_BUSY_ANSWERS:
            break
    return there, gone


# ---- Requests with an access token ----


class Client:
    """Asks for lists, page by page, and for single objects, with an access token."""

    def __init__(self, key: Key, connection: Connection):
        """Asks for the access token. Raises GoogleFault."""
        self.endpoints = connection.endpoints
        self.progress = connection.progress
        self._pacing = connection.pacing
        self._max_pages = connection.max_pages
        access = access_of(key, self.endpoints, self._pacing)
        self._fields = {"Authorization": f"Bearer {access.token}"}
        self.date = access.date  # of the last answer

    def places(self) -> dict[str, Place]:
        """All locations of all accounts, by number. Raises GoogleFault."""
        accounts = list[str]()
        url = f"{self.endpoints.accounts}/accounts"
        for page in self.pages(url, {"pageSize": "20"}):
            accounts += map(name_in, objects_in(page, "accounts"))
        found = dict[str, Place]()
        for account in accounts:
            for item in self._locations_of(account):
                place = _place_of(item, account)
                # A location may be in a group, too: it is the same one.
                found.setdefault(place.location, place)
        return found

    def _locations_of(self, account: str) -> Iterator[Object]:
        url = f"{self.endpoints.locations}/{account}/locations"
        for page in self.pages(url, {"readMask": READ_MASK, "pageSize": "100"}):
            yield from objects_in(page, "locations")

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

    def ask_once(self, url: str) -> Response:
        """The answer to a question that another run can ask again. Raises GoogleFault."""
        response = exchange(url, self._fields)
        self.date = response.date
        return response
