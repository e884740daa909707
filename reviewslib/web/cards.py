"""Documents by which assistants find the MCP endpoint: its card, the host's catalogue.

The card is that of the MCP extension SEP-2127 (Final), the catalogue ARD 0.91. Both
name the service by its host, so `links` gives them no address where the host has no
name. No assistant is known to need them: nothing else depends on them. This module must
not know requests or files.

Sections: the card - the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import filterfalse

from reviewslib.dataset.reviews import Dataset
from reviewslib.dataset.strict_json import Json, Object
from reviewslib.dataset.vocabulary import is_proposed
from reviewslib.links import ServiceUrls, host_name
from reviewslib.messages import CARD_TYPE
from reviewslib.release import SERVED_VERSIONS, VERSION
from reviewslib.web.figures import by_mentions
from reviewslib.web.shown_text import one_line

# ---- The card ----

CARD_SCHEMA = (
    "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
)
# Characters of a title and of a description (SEP-2127).
MAX_CARD_TEXT = 100


def server_card(dataset: Dataset, urls: ServiceUrls) -> dict[str, Json]:
    """The card of the MCP endpoint, as JSON. It agrees with `server/discover`.

    Tools are not listed: they depend on the data, and `tools/list` has them.
    """
    reversed_host = ".".join(reversed(host_name(urls.base_url).split(".")))
    return {
        "$schema": CARD_SCHEMA,
        "name": f"{reversed_host}/reviewsd",
        "version": VERSION,
        "title": title(dataset),
        "description": description(dataset),
        "websiteUrl": urls.base_url,
        "remotes": [
            {
                "type": "streamable-http",
                "url": urls.mcp,
                "supportedProtocolVersions": list(SERVED_VERSIONS),
            }
        ],
    }


def title(dataset: Dataset) -> str:
    """The title of the service, as MCP tells it, in one line that is cut."""
    return one_line(f"Reviews of {dataset.business['name']}", MAX_CARD_TEXT)


def description(dataset: Dataset) -> str:
    """What the service is for, in one line that is cut."""
    name = dataset.business["name"]
    words = f"Search customer reviews and what they say together, of {name}"
    return one_line(words, MAX_CARD_TEXT)


# ---- The catalogue ----

# ARD 0.91 wants two to five queries, or none.
MIN_QUERIES = 2
MAX_QUERIES = 5


def host_catalogue(dataset: Dataset, urls: ServiceUrls) -> dict[str, Json]:
    """The catalogue of this host, as JSON: one entry, the card."""
    entry: dict[str, Json] = {
        "identifier": f"urn:air:{host_name(urls.base_url)}:mcp:reviewsd",
        "displayName": title(dataset),
        "type": CARD_TYPE,
        "url": urls.server_card,
        "description": description(dataset),
        "version": VERSION,
    }
    queries = list(dict.fromkeys(_queries(dataset)))[:MAX_QUERIES]
    if len(queries) >= MIN_QUERIES:
        entry["representativeQueries"] = queries
    return {
        "specVersion": "1.0",
        "host": {"displayName": one_line(dataset.business["name"], MAX_CARD_TEXT)},
        "entries": [entry],
    }


def _queries(dataset: Dataset) -> Iterator[str]:
    """Questions that the tools answer, the most mentioned subjects first.

    They are made of labels of services and aspects, which the owner has chosen. Texts
    of customers, and names of people, do not stand in a document that others copy.
    """
    insights = dataset.insights
    services = _chosen(insights["entities"]["services"])
    aspects = _chosen(insights["aspects"])
    labels = [entry["label"] for entry in [*aspects[:3], *services, *aspects[3:]]]
    for label in labels:
        yield f"What do customers say about {one_line(label)}?"


def _chosen(entries: Iterable[Object]) -> list[Object]:
    """The most mentioned entries, without those that only a model has proposed."""
    return by_mentions(filterfalse(is_proposed, entries), MAX_QUERIES)
