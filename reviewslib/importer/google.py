"""Google's Business Profile API: the reviews and the profile of an owner's locations.

The answers become the same records as pages of files. This module decides what to ask,
and asks by `google_client.py`; it writes nothing and knows no rule of merging.

Sections: a run - accounts and locations - one location's reviews.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from reviewslib.dataset.contract import Contract
from reviewslib.dataset.strict_json import Object
from reviewslib.importer.exports import Export
from reviewslib.importer.google_client import Connection, GoogleClient
from reviewslib.importer.google_faults import (
    NotFound,
    no_locations,
    no_reviews_of,
    none_verified,
    odd_answer,
    to_be_settled,
)
from reviewslib.importer.google_key import read_key
from reviewslib.importer.google_listing import Listing, add_listing, lacked_ids
from reviewslib.importer.google_shapes import (
    name_in,
    object_in,
    object_of,
    objects_in,
    text_in,
)
from reviewslib.importer.options import Options
from reviewslib.importer.profile import language_offer
from reviewslib.importer.questions import NeedsDecision, listed
from reviewslib.importer.stored import Stored
from reviewslib.importer.texts import clean_line

# ---- A run ----


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
    client = GoogleClient(read_key(key_file, connection.endpoints), connection)
    places = _places(client)
    chosen = _choose(places, options, stored)
    present = _present(places, chosen)
    listings = [_listing_of(place, client, stored) for place in present]
    exports = list[Export]()
    for place, listing in zip(present, listings, strict=True):
        exports.append(_export_of(place, listing, options, contract))
    exports[0].urgent_notes += _lost(places, chosen, stored)
    profile = None
    if len(chosen) == 1:
        profile = present[0].profile
        exports[0].notes += language_offer(stored.business, profile)
    return Answers(
        exports=exports,
        locations=chosen,
        profile=profile,
        is_cut=any(listing.is_cut for listing in listings),
    )


def _export_of(
    place: Place, listing: Listing, options: Options, contract: Contract
) -> Export:
    """Raises BadData for a time of the future, and NeedsDecision for many faults."""
    export = Export("Google", options, contract)
    export.titles[place.location] = place.title
    add_listing(export, listing)
    return export.finish()


# ---- Accounts and locations ----

READ_MASK = (
    "name,title,storefrontAddress,phoneNumbers,websiteUri,regularHours,categories,"
    "latlng,serviceArea,languageCode,profile,metadata"
)


def _places(client: GoogleClient) -> dict[str, Place]:
    """All locations of all accounts, by number. Raises GoogleFault."""
    accounts = list[str]()
    url = f"{client.endpoints.accounts}/accounts"
    for page in client.pages(url, {"pageSize": "20"}):
        accounts += map(name_in, objects_in(page, "accounts"))
    found = dict[str, Place]()
    for account in accounts:
        for place in _places_of(account, client):
            # A location may be in a group, too: it is the same one.
            found.setdefault(place.location, place)
    return found


def _places_of(account: str, client: GoogleClient) -> Iterator[Place]:
    """The locations of an account. Raises GoogleFault."""
    url = f"{client.endpoints.locations}/{account}/locations"
    for page in client.pages(url, {"readMask": READ_MASK, "pageSize": "100"}):
        for item in objects_in(page, "locations"):
            yield _place_of(item, account)


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


def _listing_of(place: Place, client: GoogleClient, stored: Stored) -> Listing:
    """What Google says of the reviews of a location. Raises GoogleFault."""
    if not client.date:
        raise odd_answer("no Date")
    listing = Listing(place.location, time=client.date)
    for order in ORDERS:
        _read_list(listing, place, client, order)
        if listing.is_whole:
            break
    listing.lacking = lacked_ids(stored, place.location, listing.items)
    _ask_for_lacked(listing, place, client)
    return listing


def _read_list(
    listing: Listing, place: Place, client: GoogleClient, order: str
) -> None:
    """Raises GoogleFault."""
    url = f"{client.endpoints.reviews}/{place.name}/reviews"
    try:
        for page in client.pages(url, {"pageSize": "50", "orderBy": order}):
            listing.take_page(page)
            client.progress(f"{place.title}: {len(listing.items)} reviews")
    except NotFound:
        raise no_reviews_of(place.location) from None


# Google is busy, and every further question would keep it so.
MAX_BUSY_ANSWERS = 10


def _ask_for_lacked(listing: Listing, place: Place, client: GoogleClient) -> None:
    """Ask for the reviews that a list lacks, one by one. Raises GoogleFault.

    An answer that says neither that one is there nor that it is gone means nothing.
    """
    busy = 0
    for id in listing.questions:
        # An id of a saved page may have any character.
        name = f"{place.name}/reviews/{quote(id, safe='')}"
        response = client.ask_once(f"{client.endpoints.reviews}/{name}")
        if response.status == 200:
            listing.take_answer(id, object_of(response.content, "a review"))
        elif response.is_not_found:
            listing.take_denial(id)
        elif response.is_busy:
            busy += 1
        if busy == MAX_BUSY_ANSWERS:
            return
