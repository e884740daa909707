"""Google's profile of a location becomes members of `business`. This module is pure.

Members follow the profile while nobody else has written them: those that are null and
were never filled, and those that are still as an import wrote them, which digests in
the state tell. What the owner wrote or emptied stays.

Sections: following - the members - hours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from reviewslib.dataset.contract import Contract
from reviewslib.dataset.mentions import value_digest
from reviewslib.dataset.reviews import WEEK
from reviewslib.dataset.strict_json import Json, Object
from reviewslib.importer.google_faults import odd_answer
from reviewslib.importer.google_shapes import list_in, object_in, objects_in, text_in
from reviewslib.importer.texts import clean, clean_line

# ---- Following ----


class Followed(NamedTuple):
    """The new `business`, digests of what imports wrote, and lines for the report."""

    business: dict[str, Json]
    digests: dict[str, str]
    lines: list[str]


def follow(
    business: Mapping[str, Json],
    profile: Object,
    digests: Mapping[str, str],
    contract: Contract,
    *,
    made_up: Collection[str] = (),
) -> Followed:
    """`business` after the profile; `made_up` are members this import has invented.

    Raises GoogleFault for a profile of another shape.
    """
    followed = Followed(dict(business), dict(digests), [])
    changed = list[str]()
    for member, value in members_of(profile).items():
        old = business.get(member)
        is_free = member in made_up or _may_follow(member, old, digests)
        if not is_free or not _says_something(member, value, old):
            continue
        if _is_refused(business, member, value, contract):
            followed.lines.append(f"Google's {member} of the business is left out")
            continue
        followed.business[member] = value
        followed.digests[member] = value_digest(value)
        if value != old:
            changed.append(member)
    if changed:
        followed.lines.append(f"business, after Google's profile: {', '.join(changed)}")
    return followed


def language_offer(business: Mapping[str, Json], profile: Object) -> list[str]:
    """A line that names Google's language while the owner has given none."""
    language = clean_line(text_in(profile, "languageCode"))
    if business.get("language") or not language:
        return []
    return [f'Google\'s language of the profile is {language}: "language" of business']


def _may_follow(member: str, value: Json, digests: Mapping[str, str]) -> bool:
    if member in digests:
        return value_digest(value) == digests[member]
    return _is_unfilled(value)


def _says_something(member: str, value: Json, old: Json) -> bool:
    """Whether a value of the profile, null where it is silent, is worth following."""
    if value is None:
        # A business must have a name.
        return member != "name" and not _is_unfilled(old)
    return True


def _is_unfilled(value: Json) -> bool:
    """Whether a member says nothing; an address may be an object of nulls."""
    if isinstance(value, dict):
        return all(part is None for part in value.values())
    return value is None


def _is_refused(
    business: Mapping[str, Json], member: str, value: Json, contract: Contract
) -> bool:
    candidate = {"business": {**business, member: value}, "reviews": []}
    paths = [path for path, _ in contract.reviews_file.violations(candidate)]
    return any(path[:2] == ("business", member) for path in paths)


# ---- The members ----


def members_of(profile: Object) -> dict[str, Json]:
    """The members of `business` that a profile has, null where it is silent.

    Raises GoogleFault for another shape.
    """
    categories = object_in(profile, "categories")
    return {
        "name": _text(profile, "title"),
        "description": _text(object_in(profile, "profile"), "description"),
        "category": _text(object_in(categories, "primaryCategory"), "displayName"),
        "url": _text(profile, "websiteUri"),
        "telephone": _text(object_in(profile, "phoneNumbers"), "primaryPhone"),
        "address": _address(object_in(profile, "storefrontAddress")),
        "geo": _position(object_in(profile, "latlng")),
        "hours": hours_of(objects_in(object_in(profile, "regularHours"), "periods")),
        "service_areas": _service_areas(object_in(profile, "serviceArea")),
        "review_url": _text(object_in(profile, "metadata"), "newReviewUri"),
    }


def _address(address: Object) -> Json:
    if not address:
        return None
    lines = [clean(str(line)) for line in list_in(address, "addressLines")]
    return {
        "street": ", ".join(lines) or None,
        "locality": _text(address, "locality"),
        "region": _text(address, "administrativeArea"),
        "postal_code": _text(address, "postalCode"),
        "country": _text(address, "regionCode"),
    }


def _position(position: Object) -> Json:
    if not position:
        return None
    # An absent number is 0, as everywhere in Google's JSON.
    names = ("latitude", "longitude")
    return {name: position.get(name, 0) for name in names}


def _service_areas(area: Object) -> Json:
    places = objects_in(object_in(area, "places"), "placeInfos")
    names = [_text(place, "placeName") for place in places]
    return [name for name in names if name] or None


def _text(holder: Object, key: str) -> str | None:
    return clean(text_in(holder, key)) or None


# ---- Hours ----

DAYS_AT_GOOGLE = {day.upper(): day for day in WEEK}


def hours_of(periods: Iterable[Object]) -> Json:
    """Opening hours in the form of `hours`; days with equal hours are one entry."""
    days_by_hours = dict[tuple[str, str], list[str]]()
    for period in periods:
        day = _day(period, "openDay")
        _day(period, "closeDay")
        hours = (_clock_time(period, "openTime"), _clock_time(period, "closeTime"))
        days = days_by_hours.setdefault(hours, [])
        if day not in days:
            days.append(day)
    entries = list[Json]()
    for (opens, closes), days in days_by_hours.items():
        ordered = sorted(days, key=WEEK.index)
        entries.append({"days": ordered, "opens": opens, "closes": closes})
    return entries or None


def _day(period: Object, key: str) -> str:
    name = text_in(period, key)
    if name not in DAYS_AT_GOOGLE:
        raise odd_answer(f"unknown {key}")
    return DAYS_AT_GOOGLE[name]


def _clock_time(period: Object, key: str) -> str:
    """A time of day. An absent zero is 0, and 24:00 is the end of the day."""
    time = object_in(period, key)
    hours = time.get("hours", 0)
    minutes = time.get("minutes", 0)
    if not isinstance(hours, int) or not isinstance(minutes, int):
        raise odd_answer(key)
    return f"{hours:02}:{minutes:02}"
