"""Every path of the service, and its absolute URLs for a base URL.

This module knows no request, no dataset and no file.

Sections: paths - URLs - the links of topics.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
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
        return service_urls(base_path, with_hub=bool(self.hub))

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
        # Browsers and crawlers ask for these by themselves.
        del urls["icon"]
        del urls["sitemap"]
        named = {NAMES.get(name, name): url for name, url in urls.items()}
        # The hub has no URL where none runs.
        return {name: url for name, url in named.items() if url}


def service_urls(base_url: str, with_hub: bool = True) -> ServiceUrls:
    """The URLs of a service at `base_url`, which does not end with a slash."""
    paths = asdict(ServiceUrls())
    urls = ServiceUrls(**{name: base_url + path for name, path in paths.items()})
    if with_hub:
        return urls
    return replace(urls, hub="")


# ---- The links of topics ----


def topic_link_header(base_url: str, path: str, with_hub: bool = True) -> str:
    """The `Link` field of a topic: the URL of its hub, if one runs, and of the topic.

    WebSub section 4.
    """
    hub = f'<{base_url}{HUB_PATH}>; rel="hub", ' if with_hub else ""
    return f'{hub}<{base_url}{path}>; rel="self"'
