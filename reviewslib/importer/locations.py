"""Locations at Google: each may be a business of its own, so the owner chooses.

This module is pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import NamedTuple

from reviewslib.importer import recognition
from reviewslib.importer.exports import Export, Record
from reviewslib.importer.options import Options
from reviewslib.importer.questions import NeedsDecision, listed
from reviewslib.importer.state import Entry, State
from reviewslib.importer.stored import Stored


class Locations(NamedTuple):
    """Which locations at Google are imported."""

    chosen: set[str]
    decided: set[str]  # those that the owner has decided about
    titles: Mapping[str, str]  # by location, empty if unknown


def choose_locations(
    stored: Stored, exports: Sequence[Export], options: Options
) -> Locations:
    """The locations to import. Raises NeedsDecision if only the owner can tell."""
    records = list[Record]()
    for export in exports:
        records += export.records
    exported = Counter(record.location for record in records if record.location)
    titles = _titles(stored.state, exports)
    _check_that_they_exist(stored, exports, options.location)
    chosen = {*options.location} or _current_locations(stored, records, exported)
    decided = {*stored.state.locations, *chosen}
    if options.location:
        decided |= exported.keys()
    if exported.keys() - decided and not options.drop:
        raise _question(exported, decided, titles)
    return Locations(chosen, decided, titles)


def _check_that_they_exist(
    stored: Stored, exports: Sequence[Export], given: Sequence[str]
) -> None:
    """Raises NeedsDecision for a location that neither an export nor a review is of.

    A wrong number would be remembered, and all reviews would be of other locations.
    """
    entries = stored.entries().values()
    if any(entry.source == "google" and not entry.location for entry in entries):
        # After a loss of the state, they may be of any location.
        return
    known = _known_locations(stored, exports)
    unknown = [place for place in given if place not in known]
    if not unknown:
        return
    lines = [f"No export and no stored review is of location {unknown[0]}."]
    if known:
        titles = stored.state.locations
        places = [f"{place} {titles.get(place, '')!r}" for place in sorted(known)]
        lines += ["The known locations are:", *listed(places)]
    lines.append("Give the numbers of those to publish. Nothing was remembered.")
    raise NeedsDecision(lines, "--location YOUR")


def _known_locations(stored: Stored, exports: Iterable[Export]) -> set[str]:
    """The locations of the stored reviews, of the exports, and of earlier choices."""
    known = {*stored.state.locations, *stored.state.chosen}
    known |= {entry.location for entry in stored.entries().values()}
    for export in exports:
        known |= {record.location for record in export.records}
        # What a table covers are its sources.
        if not export.header:
            known |= export.covers.keys() | export.titles.keys()
    return known - {""}


def _titles(state: State, exports: Sequence[Export]) -> dict[str, str]:
    """The titles of locations, those of the exports before those that are known."""
    titles = defaultdict(str, state.locations)
    for export in exports:
        for location, title in export.titles.items():
            if title:
                titles[location] = title
    return titles


def _current_locations(
    stored: Stored, records: Iterable[Record], exported: Mapping[str, int]
) -> set[str]:
    """The locations that were chosen, or that the stored reviews are of."""
    if stored.state.chosen:
        return set(stored.state.chosen)
    if not exported:
        return set()
    entries = stored.entries()
    if any(map(is_googles_own, entries.values())):
        return _locations_of(deepcopy(entries), records)
    if len(exported) == 1:
        return set(exported)
    return set()


def _locations_of(entries: dict[str, Entry], records: Iterable[Record]) -> set[str]:
    """The locations of the records of stored reviews, if a lost state had them.

    The register adds entries, so `entries` is a copy.
    """
    stored_ids = set(entries)
    register = recognition.Register(entries)
    locations = set[str]()
    for record in records:
        if not record.location:
            continue
        for _, id in register.identify([record]):
            if id in stored_ids:
                locations.add(record.location)
    return locations


def is_googles_own(entry: Entry) -> bool:
    """Whether an export by Google, not only a table, has had the review."""
    return entry.source == "google" and not entry.row


def _question(
    exported: Mapping[str, int], decided: set[str], titles: Mapping[str, str]
) -> NeedsDecision:
    known = sorted(exported.keys() | decided)
    counts = [
        f"{place} {titles[place]!r}: {exported[place]} reviews here" for place in known
    ]
    lines = [
        "Which locations are to be imported? Each may be a business of its own:",
        *listed(counts),
        "Give the numbers of those to publish with --location. The choice is kept.",
    ]
    return NeedsDecision(lines, "--location YOUR")
