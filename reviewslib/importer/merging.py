"""Merging: records of exports become part of the stored reviews, and a report says how.

This module is the table of contents of an import: choose locations, take, publish,
erase, remove, report. It is pure: it knows no format, no file and no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from reviewslib.dataset.contract import Contract
from reviewslib.dataset.reviews import serving_order
from reviewslib.dataset.strict_json import Json
from reviewslib.importer.exports import Export
from reviewslib.importer.ledger import Ledger
from reviewslib.importer.locations import Locations, choose_locations
from reviewslib.importer.options import Options, remembered
from reviewslib.importer.questions import NeedsDecision, listed
from reviewslib.importer.report import make_report
from reviewslib.importer.state import State
from reviewslib.importer.stored import Stored


class Merged(NamedTuple):
    """The result of an import."""

    document: dict[str, Json]  # of reviews.json
    state: State
    suppressed: Sequence[str]  # lines of suppressed.txt
    is_overwritten: bool  # whether changes by hand are lost
    report: list[str]


def merge(
    stored: Stored,
    exports: Sequence[Export],
    options: Options,
    contract: Contract,
    *,
    may_remove: bool = True,
) -> Merged:
    """The stored reviews, perhaps none, with the exports merged into them.

    Nothing is removed unless `may_remove`. Raises NeedsDecision.
    """
    locations = choose_locations(stored, exports, options)
    name = _name_of_business(stored, locations, options)
    ledger = Ledger(stored, locations, options, may_remove=may_remove)
    ledger.take(exports)
    ledger.publish()
    suppressed = ledger.erase()
    ledger.remove()
    ledger.seal()
    overwritten = _overwritten(ledger)
    report = make_report(ledger, exports, overwritten)
    return Merged(
        document=_document(ledger, name, contract),
        state=_state(ledger, exports, suppressed, report.said),
        suppressed=suppressed,
        is_overwritten=bool(overwritten),
        report=report.lines,
    )


def _overwritten(ledger: Ledger) -> list[str]:
    """The ids of edited reviews of which a copy is kept, since exports changed them."""
    if is_erasure(ledger.options):
        # A copy would keep what is erased.
        return []
    edited = ledger.edited - ledger.erased.keys()
    return [id for id in ledger.changed() if id in edited]


def _name_of_business(stored: Stored, locations: Locations, options: Options) -> str:
    """The name for a new reviews.json, empty if there is one. Raises NeedsDecision."""
    if stored.document:
        return ""
    if options.name:
        return options.name
    titles = {locations.titles[location] for location in locations.chosen} - {""}
    if len(titles) == 1:
        return min(titles)
    lines = [
        "What is imported does not name the business:",
        *listed(sorted(titles)),
        "Give its name once.",
    ]
    raise NeedsDecision(lines, "--name 'YOUR BUSINESS'")


def _document(ledger: Ledger, name: str, contract: Contract) -> dict[str, Json]:
    """The new content of reviews.json; `name` counts only if there was none."""
    business = contract.reviews_file.blank("business") | {"name": name}
    reviews = sorted(ledger.reviews.values(), key=serving_order, reverse=True)
    return {"business": business} | ledger.stored.document | {"reviews": reviews}


def is_erasure(options: Options) -> bool:
    """Whether a command removes words for good."""
    return bool(options.forget or options.forget_author or options.redact)


def _newest_time(state: State, exports: Sequence[Export]) -> str:
    """The newest T of all exports so far, empty without any."""
    times = [state.newest_export]
    for export in exports:
        times += [record.time for record in export.records]
        times += export.covers.values()
    return max(times)


def _state(
    ledger: Ledger,
    exports: Sequence[Export],
    suppressed: Sequence[str],
    said: list[str],
) -> State:
    locations = ledger.locations
    decided = sorted(locations.decided)
    headers = dict(ledger.stored.state.headers)
    for export in exports:
        if export.header:
            headers[export.header] = export.settings
    return replace(
        ledger.stored.state,
        settings=remembered(ledger.options),
        chosen=sorted(locations.chosen),
        locations={location: locations.titles[location] for location in decided},
        headers=headers,
        covered=ledger.covered,
        suppressed=len(suppressed),
        newest_export=_newest_time(ledger.stored.state, exports),
        said=said,
        reviews=ledger.entries,
    )
