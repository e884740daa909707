"""Every path of the service, and its absolute URLs for a base URL.

This module knows no request, no dataset and no file.

Sections: paths - URLs - URLs of files - names of hosts - the links of topics.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from urllib.parse import quote, unquote, urlencode, urlsplit

# ---- Paths ----

HOME_PATH = "/"
REVIEW_LIST_PATH = "/reviews"
REVIEW_PATH = "/reviews/"  # followed by an id
REVIEWS_PATH = "/reviews.json"
INSIGHTS_PATH = "/insights.json"
SEARCH_PATH = "/api/reviews/search"
SEARCH_FEED_PATH = "/api/reviews/search.xml"
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
HOST_CATALOGUE_PATH = "/.well-known/ard.json"
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
CARD_PATHS = (SERVER_CARD_PATH, HOST_CATALOGUE_PATH)


# ---- URLs ----

# By field of ServiceUrls: another name by which `/` lists it.
LISTED_NAMES = {"home": "page"}


@dataclass(frozen=True, slots=True)
class ServiceUrls:
    """The absolute URLs of the service, in the order in which `/` lists them.

    The defaults are the paths.
    """

    reviews: str = REVIEWS_PATH
    insights: str = INSIGHTS_PATH
    search: str = SEARCH_PATH
    search_feed: str = SEARCH_FEED_PATH
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
    host_catalogue: str = HOST_CATALOGUE_PATH

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
        return _urls_below(type(self), base_path, absent=self._absent())

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

    def feed_of(self, filters: Mapping[str, str]) -> str:
        """The URL of the feed of a search; the order is that of `filters`."""
        if not filters:
            return self.search_feed
        return f"{self.search_feed}?{urlencode(filters)}"

    def directory(self) -> dict[str, str]:
        """The URLs by name, as `/` returns them to programs."""
        urls = asdict(self)
        if self.since:
            urls["since"] += "{date}"
        urls["review"] += "{id}"
        # Browsers, crawlers and assistants ask for these by themselves.
        for name in ("icon", "sitemap", "server_card", "host_catalogue"):
            del urls[name]
        named = {LISTED_NAMES.get(name, name): url for name, url in urls.items()}
        # The hub has no URL where none runs.
        return {name: url for name, url in named.items() if url}


def service_urls(base_url: str, with_hub: bool = True) -> ServiceUrls:
    """The URLs of a service at `base_url`, which does not end with a slash."""
    absent = set()
    if not with_hub:
        absent.add("hub")
    if not host_name(base_url):
        absent.update(("server_card", "host_catalogue"))
    return _urls_below(ServiceUrls, base_url, absent)


def _urls_below(
    kind: type[ServiceUrls], base_url: str, absent: Collection[str]
) -> ServiceUrls:
    """The URLs at `base_url`; those of the names in `absent` are empty."""
    urls = {}
    for name, path in asdict(kind()).items():
        urls[name] = "" if name in absent else base_url + path
    return kind(**urls)


# ---- URLs of files: the same site without a server ----

FILES_REVIEW_LIST_PATH = "/reviews/"
FILES_SELECTION_PATH = "/selection/"  # followed by a folder for each filter
FILES_EMBED_PATH = "/embed/"
# File servers tell a picture's type by the end of its name.
FILES_ICON_PATH = "/favicon.svg"
# By the path of a file: the path of the service that has its content.
SERVICE_PATHS = {
    FILES_REVIEW_LIST_PATH: REVIEW_LIST_PATH,
    FILES_EMBED_PATH: EMBED_PATH,
    FILES_ICON_PATH: ICON_PATH,
}
# What only a program can answer.
NOT_IN_FILES = (
    "search",
    "search_feed",
    "since",
    "mcp",
    "hub",
    "server_card",
    "host_catalogue",
)


@dataclass(frozen=True, slots=True)
class FileUrls(ServiceUrls):
    """The URLs of a site of files: a page is a folder, whose URL ends with a slash.

    What only a program can answer has no URL.
    """

    review_list: str = FILES_REVIEW_LIST_PATH
    embed: str = FILES_EMBED_PATH
    icon: str = FILES_ICON_PATH

    def review_page(self, id: str) -> str:
        """The URL of the page of a review."""
        return f"{self.review}{folders_of(id)}/"

    def selection(self, **filters: str | int) -> str:
        """The URL of the review list with `filters`, a folder for each."""
        if not filters:
            return self.review_list
        folders = [f"{name}={folders_of(str(text))}" for name, text in filters.items()]
        return f"{self.base_url}{FILES_SELECTION_PATH}{'/'.join(folders)}/"


def file_urls(base_url: str) -> ServiceUrls:
    """The URLs of a site of files at `base_url`, which does not end with a slash."""
    return _urls_below(FileUrls, base_url, NOT_IN_FILES)


# Other characters are written as "~" and their bytes. A name of these alone is no "..",
# no hidden file, no "index.html", and the same in a URL and in a file system.
NOT_IN_NAMES = re.compile("[^A-Za-z0-9_-]")
# File systems allow 255 bytes; the name of a filter stands in front.
LONGEST_NAME = 200


def folders_of(text: str) -> str:
    """A text of any characters as one folder or, if long, as several nested ones."""
    name = NOT_IN_NAMES.sub(lambda match: _escaped(match[0]), text)
    parts = [name[at : at + LONGEST_NAME] for at in range(0, len(name), LONGEST_NAME)]
    return "/".join(parts)


def _escaped(character: str) -> str:
    return "".join(f"~{byte:02X}" for byte in character.encode())


def text_of(folders: str) -> str:
    """The text that `folders_of` has written as folders."""
    return unquote(folders.replace("/", "").replace("~", "%"))


def target_of(path: str) -> str:
    """The path and query with which to ask for the content of a file's path.

    `path` is below the base URL, such as "/selection/rating=5/" or "/feed.xml".
    """
    if path in SERVICE_PATHS:
        return SERVICE_PATHS[path]
    if path.startswith(REVIEW_PATH):
        return REVIEW_PATH + quote(text_of(path.removeprefix(REVIEW_PATH)), safe="")
    if path.startswith(FILES_SELECTION_PATH):
        filters = _filters_of(path.removeprefix(FILES_SELECTION_PATH))
        return f"{REVIEW_LIST_PATH}?{urlencode(filters)}"
    return path


def _filters_of(folders: str) -> list[tuple[str, str]]:
    # A folder without "=" continues the value before it.
    filters = re.findall("([a-z_]+)=([^=]*)(?:/|$)", folders)
    return [(name, text_of(value)) for name, value in filters]


# ---- Names of hosts ----

# Labels of a domain (RFC 1123 section 2.1), two at least, and in the last one a letter:
# a host whose last label is a number is an address (URL Standard, "host parsing").
DOMAIN = re.compile(r"(?:[a-z0-9-]+\.)+(?=[a-z0-9-]*[a-z])[a-z0-9-]+")
# A server card names the service in at most 200 characters (SEP-2127), and has more to
# say than the host.
MAX_DOMAIN = 190


def host_name(base_url: str) -> str:
    """The name of the host of a URL, in lower case.

    Empty for an address literal, for a name without a domain, such as localhost, and
    for one that documents for assistants cannot have.
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
