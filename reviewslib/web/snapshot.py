"""Snapshots: everything that is served between two reloads, made from the data files.

A snapshot has all fixed representations, ready to be sent, and the dataset, from which
others are computed. This module reads files; it must not know a request or a socket. The
time is an argument.

Sections: Data files - Program files - Cache - Fixed contents - Dates - Snapshots
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment

from reviewslib import links
from reviewslib.dataset.contract import BadData, Contract, Fault, shipped_contract
from reviewslib.dataset.reading import INSIGHTS_FILE, REVIEWS_FILE
from reviewslib.dataset.reviews import Dataset, load
from reviewslib.dataset.strict_json import encode
from reviewslib.files import Stamp, last_change, read_unchanging, stamp
from reviewslib.links import ServiceUrls, topic_link_header
from reviewslib.mcp_tools import Toolbox, toolbox_of
from reviewslib.messages import (
    ATOM_TYPE,
    CARD_TYPE,
    HTML_TYPE,
    ICON_TYPE,
    JSON_TYPE,
    MARKDOWN_TYPE,
    TEXT_TYPE,
    VARY_BY_TYPE,
    XML_TYPE,
    Headers,
)
from reviewslib.web.api_description import api_description
from reviewslib.web.cards import catalogue, server_card
from reviewslib.web.crawlers import robots_text, sitemap
from reviewslib.web.embed import refused_frame
from reviewslib.web.feeds import atom_feed, json_feed
from reviewslib.web.home_page import html_page, llms_text
from reviewslib.web.language import Languages, read_languages
from reviewslib.web.pictures import badge, icon
from reviewslib.web.policies import policies_by_path
from reviewslib.web.representations import Content, Representation, represent
from reviewslib.web.review_page import not_found_page
from reviewslib.web.site import Site, site_of
from reviewslib.web.templating import load_templates, templates_in

# ---- Data files ----

DATA_FILES = (REVIEWS_FILE, INSIGHTS_FILE)


class Files(NamedTuple):
    """The contents of the data files, and their last changes in seconds since the epoch."""

    reviews: bytes
    reviews_changed: float
    # None if the file is absent: insights are then counted from the reviews.
    insights: bytes | None
    # Without the file, the last change of the directory: a removal changes it.
    insights_changed: float

    @property
    def changed(self) -> float:
        """The later one of the last changes."""
        return max(self.reviews_changed, self.insights_changed)


def read_files(directory: Path) -> Files:
    """Read the data files.

    Raises BadData if one cannot be read or `reviews.json` is missing.
    """
    faults = []
    found: dict[str, tuple[bytes, float]] = {}
    for name in DATA_FILES:
        try:
            found[name] = read_unchanging(directory / name)
        except FileNotFoundError:
            if name == REVIEWS_FILE:
                reason = f"there is no such file in {directory}; see --data"
                faults.append(Fault(name, (), reason))
        except OSError as error:
            reason = f"cannot be read: {error.strerror or error}"
            faults.append(Fault(name, (), reason))
    if faults:
        raise BadData(faults)
    reviews, reviews_changed = found[REVIEWS_FILE]
    if INSIGHTS_FILE not in found:
        return Files(reviews, reviews_changed, None, last_change(directory))
    insights, insights_changed = found[INSIGHTS_FILE]
    return Files(reviews, reviews_changed, insights, insights_changed)


def file_stamps(directory: Path) -> dict[str, Stamp]:
    """The stamps of the data files that exist, by name."""
    stamps = {}
    for name in DATA_FILES:
        with suppress(OSError):
            stamps[name] = stamp((directory / name).stat())
    return stamps


# ---- Program files: contract, templates and catalogues ----

# Contains all of them.
PACKAGE = Path(str(resources.files("reviewslib")))


class ProgramFiles(NamedTuple):
    """The files of the program that shape its responses."""

    contract: Contract
    # In English.
    templates: Environment
    languages: Languages
    # Security headers by path; those of HOME_PATH apply to all pages.
    policies: Mapping[str, Headers]
    # The last change of any file, modules included, in seconds since the epoch.
    changed: float


def load_program_files(package: Path = PACKAGE) -> ProgramFiles:
    """Load the contract, and the templates and catalogues of `package`.

    The newest file of `package` dates it.
    """
    files = [file for file in package.rglob("*") if file.is_file()]
    templates = load_templates(package / "web" / "templates")
    # The interpreter writes its compiled files whenever it likes.
    changes = [last_change(file) for file in files if file.suffix != ".pyc"]
    return ProgramFiles(
        contract=shipped_contract(),
        templates=templates,
        languages=read_languages(package / "web" / "languages"),
        policies=policies_by_path(templates),
        changed=max(changes),
    )


# ---- Cache of computed representations ----


class CacheKey(NamedTuple):
    """What a computed representation depends on, within a snapshot."""

    path: str
    # What else the route depends on, such as the query string.
    variant: str
    is_gzip: bool


class RepresentationCache:
    """A cache of computed representations, emptied before it would exceed its bound.

    The computing thread alone adds; any thread may read. The bound is small: with 8
    MiB, whose memory is seldom used again, unseen searches are a twentieth slower.
    """

    # Of headers and objects, beside the bodies.
    ENTRY_BYTES = 2048

    def __init__(self, max_bytes: int = 1024 * 1024):
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: dict[CacheKey, Representation] = {}

    def get(self, key: CacheKey) -> Representation | None:
        """The representation cached under `key`."""
        return self._entries.get(key)

    def add(self, key: CacheKey, representation: Representation) -> None:
        """Cache a representation under `key`, unless it alone exceeds the bound."""
        entry_bytes = self._size_of(key, representation)
        if entry_bytes > self._max_bytes:
            return
        if self._bytes + entry_bytes > self._max_bytes:
            # A new dictionary: who reads meanwhile reads the old one.
            self._entries = {}
            self._bytes = 0
        self._entries[key] = representation
        self._bytes += entry_bytes

    def _size_of(self, key: CacheKey, representation: Representation) -> int:
        size = self.ENTRY_BYTES + len(key.variant)
        for coding in (representation.identity, representation.gzip):
            # Slices of the data are held by the snapshot anyway.
            if coding and isinstance(coding.body, bytes):
                size += len(coding.body)
        return size


# ---- Fixed contents ----

# In place of a path: the JSON and the Markdown of `/`.
DIRECTORY = "directory"
MARKDOWN = "markdown"


class FixedContent(NamedTuple):
    """A content that is made at load.

    `changed` is the last change of the data files that shape it, 0 if none does.
    """

    content: Content
    changed: float


def fixed_contents(
    program: ProgramFiles, site: Site, files: Files, modified: int
) -> dict[str, FixedContent]:
    """The fixed contents by path; `modified` dates an Atom feed without reviews."""
    return {
        **_data_contents(program, site, files, modified),
        **_contents_for_people(program, site, files),
        **_contents_for_assistants(site, files),
    }


def _data_contents(
    program: ProgramFiles, site: Site, files: Files, modified: int
) -> dict[str, FixedContent]:
    """Data, feeds and contract."""
    dataset = site.dataset
    urls = site.urls
    reviews = Content(
        dataset.reviews_json, JSON_TYPE, link=_topic_link(urls, links.REVIEWS_PATH)
    )
    json = Content(
        json_feed(dataset, urls, site.language),
        JSON_TYPE,
        link=_topic_link(urls, links.JSON_FEED_PATH),
    )
    atom = Content(
        atom_feed(
            dataset,
            urls,
            updated_when_empty=datetime.fromtimestamp(modified, UTC),
            language=site.language,
        ),
        ATOM_TYPE,
        link=_topic_link(urls, links.ATOM_FEED_PATH),
    )
    insights = Content(dataset.insights_json, JSON_TYPE)
    contract = encode(api_description(program.contract, dataset, urls))
    # Insights that are counted change with the reviews.
    insights_changed = files.insights_changed
    if files.insights is None:
        insights_changed = files.changed
    return {
        links.REVIEWS_PATH: FixedContent(reviews, files.changed),
        links.INSIGHTS_PATH: FixedContent(insights, insights_changed),
        links.JSON_FEED_PATH: FixedContent(json, files.changed),
        links.ATOM_FEED_PATH: FixedContent(atom, files.changed),
        links.CONTRACT_PATH: FixedContent(
            Content(contract, JSON_TYPE), files.reviews_changed
        ),
    }


def _contents_for_people(
    program: ProgramFiles, site: Site, files: Files
) -> dict[str, FixedContent]:
    """The home page in its three media types, and what crawlers and browsers ask for."""
    urls = site.urls
    markdown = llms_text(site)
    home = Content(
        html_page(site),
        HTML_TYPE,
        policy=program.policies[links.HOME_PATH],
        vary=VARY_BY_TYPE,
    )
    directory = Content(encode(urls.directory()), JSON_TYPE, vary=VARY_BY_TYPE)
    home_markdown = Content(markdown, MARKDOWN_TYPE, vary=VARY_BY_TYPE)
    picture = Content(badge(site), ICON_TYPE, policy=program.policies[links.BADGE_PATH])
    pages = Content(sitemap(site), XML_TYPE)
    robots = Content(robots_text(urls), TEXT_TYPE)
    return {
        links.HOME_PATH: FixedContent(home, files.changed),
        DIRECTORY: FixedContent(directory, changed=0),
        MARKDOWN: FixedContent(home_markdown, files.changed),
        links.LLMS_PATH: FixedContent(Content(markdown, TEXT_TYPE), files.changed),
        links.SITEMAP_PATH: FixedContent(pages, files.reviews_changed),
        links.ROBOTS_PATH: FixedContent(robots, changed=0),
        links.BADGE_PATH: FixedContent(picture, files.reviews_changed),
        links.ICON_PATH: FixedContent(
            Content(icon(site.templates), ICON_TYPE), changed=0
        ),
    }


def _contents_for_assistants(site: Site, files: Files) -> dict[str, FixedContent]:
    """Card and catalogue; none where the host has no name."""
    urls = site.urls
    if not urls.server_card:
        return {}
    card = Content(encode(server_card(site.dataset, urls)), CARD_TYPE)
    entries = Content(encode(catalogue(site.dataset, urls)), JSON_TYPE)
    return {
        links.SERVER_CARD_PATH: FixedContent(card, files.reviews_changed),
        links.CATALOGUE_PATH: FixedContent(entries, files.changed),
    }


def _topic_link(urls: ServiceUrls, path: str) -> str:
    return topic_link_header(urls.base_url, path, with_hub=bool(urls.hub))


# ---- Dates ----


def last_modified(changed: float, now: float, before: int | None, same: bool) -> int:
    """The Last-Modified of content that changed then, in seconds since the epoch.

    `before` is that of the previous content, if there was one; `same` if it is unchanged.
    """
    # Not in the future (RFC 9110 section 8.8.2.1).
    date = int(min(changed, now))
    if before is None:
        return date
    if same:
        return before
    # Later than that of the previous content, even if the file is an old copy: otherwise
    # a client with the previous content would get a wrong 304.
    return max(date, before + 1)


# ---- Snapshots ----


class ErrorPages(NamedTuple):
    """The error pages that depend on no request."""

    unknown_path: bytes
    unknown_review: bytes
    refused_frame: bytes


class Snapshot(NamedTuple):
    """All that is served for one state of the data. Immutable except for `cache`."""

    site: Site
    toolbox: Toolbox
    # By path; also DIRECTORY and MARKDOWN.
    fixed: Mapping[str, Representation]
    error_pages: ErrorPages
    # Of computed representations.
    last_modified: int
    cache: RepresentationCache

    @property
    def dataset(self) -> Dataset:
        """The data."""
        return self.site.dataset


def build_snapshot(
    program: ProgramFiles,
    files: Files,
    urls: ServiceUrls,
    previous: Snapshot | None,
    now: float,
) -> Snapshot:
    """A snapshot of `files`. Raises BadData.

    Content that `previous` has as well keeps its Last-Modified.
    """
    dataset = load(program.contract, files.reviews, files.insights, urls)
    language = program.languages.of(dataset.business.get("language"))
    site = site_of(templates_in(program.templates, language), dataset, urls)
    changed = max(program.changed, files.changed)
    modified = _last_modified_of(dataset, changed, previous, now)
    contents = fixed_contents(program, site, files, modified)
    error_pages = ErrorPages(
        unknown_path=not_found_page(site, is_review=False),
        unknown_review=not_found_page(site, is_review=True),
        refused_frame=refused_frame(site),
    )
    return Snapshot(
        site=site,
        toolbox=toolbox_of(program.contract, dataset),
        fixed=_represented(contents, program.changed, previous, now),
        error_pages=error_pages,
        last_modified=modified,
        cache=RepresentationCache(),
    )


def _last_modified_of(
    dataset: Dataset, changed: float, previous: Snapshot | None, now: float
) -> int:
    """The Last-Modified of whatever is computed from the data."""
    if previous is None:
        return last_modified(changed, now, before=None, same=False)
    before = previous.dataset
    same = (
        dataset.reviews_json == before.reviews_json
        and dataset.insights_json == before.insights_json
    )
    return last_modified(changed, now, previous.last_modified, same)


def _represented(
    contents: Mapping[str, FixedContent],
    program_changed: float,
    previous: Snapshot | None,
    now: float,
) -> dict[str, Representation]:
    """The representations of fixed contents, which the program shapes as well."""
    previous_fixed = previous.fixed if previous else {}
    fixed = {}
    for path, (content, data_changed) in contents.items():
        before = None
        same = False
        if path in previous_fixed:
            before = previous_fixed[path].last_modified
            same = content.body == previous_fixed[path].identity.body
        changed = max(program_changed, data_changed)
        date = last_modified(changed, now, before, same)
        fixed[path] = represent(content, date)
    return fixed
