"""Every path of the service, and its absolute URLs for a base URL.

This module knows no request, no dataset and no file.

Sections: paths - URLs - names of hosts - the links of topics.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from urllib.parse import quote, urlencode, urlsplit

# ---- Paths ----

HOME_PATH = "/"
REVIEW_LIST_PATH = "/reviews"
REVIEW_PATH = "/reviews/"  # followed by an id
REVIEWS_PATH = "/reviews.json"
INSIGHTS_PATH = "/insights.json"
SEARCH_PATH = "/api/reviews/search"
SINCE_PATH = "/api/reviews/since/"  # followed by a day
JSON_FEED_PATH = "/api/feed.json"
ATOM_FEED_PATH = "/feed.xml"
CONTRACT_PATH = "/.well-known/openapi.json"
LLMS_PATH = "/llms.txt"
SITEMAP_PATH = "/sitemap.xml"
ROBOTS_PATH = "/robots.txt"
ICON_PATH = "/favicon.ico"
BADGE_PATH = "/badge.svg"
EMBED_PATH = "/embed"
HEALTH_PATH = "/healthz"
MCP_PATH = "/mcp"
SERVER_CARD_PATH = "/mcp/server-card"
CATALOGUE_PATH = "/.well-known/ard.json"
HUB_PATH = "/api/websub/hub"

# What subscribers of the hub may subscribe to.
TOPIC_PATHS = (ATOM_FEED_PATH, JSON_FEED_PATH, REVIEWS_PATH)
# Documents whose digests tell a monitor that the data have changed.
DATA_PATHS = (
    REVIEWS_PATH,
    INSIGHTS_PATH,
    JSON_FEED_PATH,
    ATOM_FEED_PATH,
    CONTRACT_PATH,
)
# Documents that are made at load. HOME_PATH is not one: its form depends on Accept.
FIXED_PATHS = (
    *DATA_PATHS,
    LLMS_PATH,
    SITEMAP_PATH,
    ROBOTS_PATH,
    ICON_PATH,
    BADGE_PATH,
)
# Documents that are made at load where the host has a name.
CARD_PATHS = (SERVER_CARD_PATH, CATALOGUE_PATH)


# ---- URLs ----

# Fields of ServiceUrls that `/` lists by another name.
NAMES = {"home": "page"}


@dataclass(frozen=True, slots=True)
class ServiceUrls:
    """The absolute URLs of the service, in the order in which `/` lists them.

    The defaults are the paths.
    """

    reviews: str = REVIEWS_PATH
    insights: str = INSIGHTS_PATH
    search: str = SEARCH_PATH
    since: str = SINCE_PATH  # the day is appended
    json_feed: str = JSON_FEED_PATH
    atom_feed: str = ATOM_FEED_PATH
    contract: str = CONTRACT_PATH
    home: str = HOME_PATH
    review_list: str = REVIEW_LIST_PATH
    review: str = REVIEW_PATH  # the id is appended
    llms: str = LLMS_PATH
    badge: str = BADGE_PATH
    embed: str = EMBED_PATH
    mcp: str = MCP_PATH
    icon: str = ICON_PATH
    sitemap: str = SITEMAP_PATH
    hub: str = HUB_PATH  # empty where no hub runs
    # Of documents for assistants; empty where the host has no name.
    server_card: str = SERVER_CARD_PATH
    catalogue: str = CATALOGUE_PATH

    @property
    def base_url(self) -> str:
        """The base URL, without a slash at its end."""
        return self.home.removesuffix("/")

    def as_paths(self) -> ServiceUrls:
        """The same without scheme and host, for links from page to page.

        Such links work at any address at which a browser reaches the service, such as a
        forwarded port.
        """
        path = urlsplit(self.base_url).path
        # What follows two slashes would be taken for a host (RFC 3986 section 4.2).
        base_path = f"/.{path}" if path.startswith("//") else path
        return _urls_below(base_path, absent=self._absent())

    def _absent(self) -> set[str]:
        """The names of the URLs that this service does not have."""
        return {name for name, url in asdict(self).items() if not url}

    def path(self, url: str) -> str:
        """The path of one of these URLs below the base URL, such as "/feed.xml"."""
        return "/" + url.removeprefix(self.home)

    def review_page(self, id: str) -> str:
        """The URL of the page of a review.

        The id is one path segment, whatever its characters.
        """
        return self.review + quote(id, safe="")

    def selection(self, **filters: str | int) -> str:
        """The URL of the review list with `filters`, named as search parameters."""
        if not filters:
            return self.review_list
        return f"{self.review_list}?{urlencode(filters)}"

    def directory(self) -> dict[str, str]:
        """The URLs by name, as `/` returns them to programs."""
        urls = asdict(self)
        urls["since"] += "{date}"
        urls["review"] += "{id}"
        # Browsers, crawlers and assistants ask for these by themselves.
        for name in ("icon", "sitemap", "server_card", "catalogue"):
            del urls[name]
        named = {NAMES.get(name, name): url for name, url in urls.items()}
        # The hub has no URL where none runs.
        return {name: url for name, url in named.items() if url}


def service_urls(base_url: str, with_hub: bool = True) -> ServiceUrls:
    """The URLs of a service at `base_url`, which does not end with a slash."""
    absent = set()
    if not with_hub:
        absent.add("hub")
    if not host_name(base_url):
        absent.update(("server_card", "catalogue"))
    return _urls_below(base_url, absent)


def _urls_below(base_url: str, absent: Collection[str]) -> ServiceUrls:
    """The URLs at `base_url`; those of the names in `absent` are empty."""
    paths = asdict(ServiceUrls())
    urls = {name: base_url + path for name, path in paths.items()}
    return ServiceUrls(**(urls | dict.fromkeys(absent, "")))


# ---- Names of hosts ----

# Labels of a domain (RFC 1123 section 2.1), two at least, and in the last one a letter:
# a host whose last label is a number is an address (URL Standard, "host parsing").
DOMAIN = re.compile(r"(?:[a-z0-9-]+\.)+(?=[a-z0-9-]*[a-z])[a-z0-9-]+")
# A server card names the service in at most 200 characters (SEP-2127), and has more to
# say than the host.
MAX_DOMAIN = 190


def host_name(base_url: str) -> str:
    """The name of the host of a URL, in lower case.

    Empty for an address literal, for a name without a domain, such as localhost, and for
    one that documents for assistants cannot have.
    """
    host = urlsplit(base_url).hostname or ""
    if len(host) > MAX_DOMAIN or not DOMAIN.fullmatch(host):
        return ""
    return host


# ---- The links of topics ----


def topic_link_header(base_url: str, path: str, with_hub: bool = True) -> str:
    """The `Link` field of a topic: the URL of its hub, if one runs, and of the topic.

    WebSub section 4.
    """
    hub = f'<{base_url}{HUB_PATH}>; rel="hub", ' if with_hub else ""
    return f'{hub}<{base_url}{path}>; rel="self"'
