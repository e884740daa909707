"""The business as schema.org data, for search engines.

Ratings and reviews are left out: Google's guidelines for review snippets ignore them on
a business's own site and forbid those collected from other websites.
"""

from __future__ import annotations

from reviewslib.dataset.reviews import WEEK
from reviewslib.dataset.strict_json import Json, Object
from reviewslib.links import ServiceUrls
from reviewslib.web.shown_text import one_line, paragraphs, web_url

# The same limits as on the page, which shows what the data say.
MAX_HOURS = 14
MAX_AREAS = 12

# What every business is whose owner names no narrower type.
ANY_BUSINESS = "LocalBusiness"


def structured_data(business: Object, urls: ServiceUrls) -> dict[str, Json]:
    """The business as one object of JSON-LD."""
    context = {"@context": "https://schema.org", "@id": urls.home + "#business"}
    areas = (business.get("service_areas") or ())[:MAX_AREAS]
    hours = (business.get("hours") or ())[:MAX_HOURS]
    return context | _thing(
        business.get("schema_type") or ANY_BUSINESS,
        name=one_line(business["name"]),
        description=paragraphs(business.get("description")),
        url=web_url(business.get("url")) or urls.home,
        image=web_url(business.get("image_url")),
        telephone=one_line(business.get("telephone")),
        email=one_line(business.get("email")),
        priceRange=one_line(business.get("price_range")),
        address=_postal_address(business.get("address") or {}),
        geo=_thing("GeoCoordinates", **(business.get("geo") or {})),
        areaServed=[one_line(area) for area in areas],
        openingHoursSpecification=[_opening(entry) for entry in hours],
    )


def _postal_address(address: Object) -> dict[str, Json]:
    return _thing(
        "PostalAddress",
        streetAddress=one_line(address.get("street")),
        addressLocality=one_line(address.get("locality")),
        addressRegion=one_line(address.get("region")),
        postalCode=one_line(address.get("postal_code")),
        addressCountry=one_line(address.get("country")),
    )


def _opening(entry: Object) -> dict[str, Json]:
    # schema.org knows the English names alone, and in the order of the week.
    days = [day for day in WEEK if day in entry["days"]]
    return _thing(
        "OpeningHoursSpecification",
        dayOfWeek=days,
        opens=entry["opens"],
        closes=entry["closes"],
    )


def _thing(schema_type: str, /, **properties: Json) -> dict[str, Json]:
    """The properties that have a value, with their type; empty if none has."""
    present = {}
    for name, value in properties.items():
        if value not in (None, "", [], {}):
            present[name] = value
    if not present:
        return {}
    return {"@type": schema_type} | present
