"""Snapshots: everything that is served between two reloads, made from one state of the data files.

A snapshot has all fixed representations, ready to be sent, and the dataset, from which others are computed.
This module reads files; it knows no request and no socket. The time is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment

from reviewslib import links
from reviewslib.dataset.contract import BadData, Contract, Fault, shipped_contract
from reviewslib.dataset.reviews import INSIGHTS_FILE, REVIEWS_FILE, Dataset, load
from reviewslib.dataset.strict_json import encode
from reviewslib.files import Stamp, last_change, read_unchanging, stamp
from reviewslib.links import ServiceUrls, topic_link_header
from reviewslib.mcp_tools import Toolbox, toolbox_of
from reviewslib.messages import (
    ATOM_TYPE,
    HTML_TYPE,
    ICON_TYPE,
    JSON_TYPE,
    MARKDOWN_TYPE,
    TEXT_TYPE,
    VARY_BY_CODING,
    VARY_BY_TYPE,
    XML_TYPE,
    Headers,
)
from reviewslib.web.crawlers import robots_text, sitemap
from reviewslib.web.feeds import atom_feed, json_feed
from reviewslib.web.home_page import html_page, llms_text
from reviewslib.web.pictures import badge, icon
from reviewslib.web.policies import policies_by_path
from reviewslib.web.representations import Representation, represent
from reviewslib.web.site import Site, site_of
from reviewslib.web.templating import load_templates

# ---- Data files ----

DATA_FILES = (REVIEWS_FILE, INSIGHTS_FILE)


class Files(NamedTuple):
    """The contents of the data files, and their last changes in seconds since the epoch."""

    reviews: bytes
    reviews_changed: float
    insights: (
        bytes | None
    )  # None if the file is absent; insights are then counted from the reviews
    insights_changed: float  # if the file is absent, the last change of the directory: a removal changes it


def read_files(directory: Path) -> Files:
    """Read the data files. Raises BadData if one cannot be read or `reviews.json` is missing."""
    faults = []
    files = {}
    for name in DATA_FILES:
        try:
            files[name] = read_unchanging(directory / name)
        except FileNotFoundError:
            if name == REVIEWS_FILE:
                faults.append(
                    Fault(name, (), f"there is no such file in {directory}; see --data")
                )
        except OSError as error:
            faults.append(Fault(name, (), f"cannot be read: {error.strerror or error}"))
    if faults:
        raise BadData(faults)
    insights = (
        files[INSIGHTS_FILE]
        if INSIGHTS_FILE in files
        else (None, last_change(directory))
    )
    return Files(*files[REVIEWS_FILE], *insights)


def file_stamps(directory: Path) -> dict[str, Stamp]:
    """The stamps of the data files that exist, by name."""
    stamps = {}
    for name in DATA_FILES:
        with suppress(OSError):
            stamps[name] = stamp((directory / name).stat())
    return stamps


# ---- Program files: contract and templates ----

PACKAGE = Path(
    str(resources.files("reviewslib"))
)  # contains the contract and the templates


class ProgramFiles(NamedTuple):
    """The files of the program that shape its responses."""

    contract: Contract
    templates: Environment
    policies: Mapping[
        str, Headers
    ]  # security headers by path; those of HOME_PATH apply to all pages
    changed: (
        float  # last change of any file, modules included, in seconds since the epoch
    )


def load_program_files(package: Path = PACKAGE) -> ProgramFiles:
    """Load the contract, and the templates of `package`, whose newest file determines `changed`."""
    files = (
        file for file in package.rglob("*") if file.is_file() and file.suffix != ".pyc"
    )
    environment = load_templates(package / "web" / "templates")
    policies = policies_by_path(environment)
    return ProgramFiles(
        shipped_contract(), environment, policies, max(map(last_change, files))
    )


# ---- Snapshots ----

# keys for the JSON and the Markdown of `/`
DIRECTORY = "directory"
MARKDOWN = "markdown"
ComputedKey = tuple[
    str, str, bool
]  # path, variant such as the query string, whether gzip is accepted
Bodies = dict[
    str, tuple[bytes, str, float]
]  # by path: content, media type, last change of its data files


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
        self._entries: dict[ComputedKey, Representation] = {}

    def get(self, key: ComputedKey) -> Representation | None:
        """The representation cached under `key`."""
        return self._entries.get(key)

    def add(self, key: ComputedKey, representation: Representation) -> None:
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

    def _size_of(self, key: ComputedKey, representation: Representation) -> int:
        size = self.ENTRY_BYTES + len(key[1])
        for coding in (representation.identity, representation.gzip):
            # Slices of the data are held by the snapshot anyway.
            if coding and isinstance(coding.body, bytes):
                size += len(coding.body)
        return size


class Snapshot(NamedTuple):
    """All that is served for one state of the data. Immutable except for `cache`."""

    site: Site
    toolbox: Toolbox
    fixed: Mapping[str, Representation]  # by path; also DIRECTORY and MARKDOWN
    last_modified: int  # of computed representations
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
    """A snapshot of `files`. Content that `previous` has as well keeps its Last-Modified. Raises BadData."""
    dataset = load(program.contract, files.reviews, files.insights, urls)
    site = site_of(program.templates, dataset, urls)
    content = (dataset.reviews_json, dataset.insights_json)
    same = previous is not None and content == (
        previous.dataset.reviews_json,
        previous.dataset.insights_json,
    )
    changed = max(program.changed, files.reviews_changed, files.insights_changed)
    modified = last_modified(changed, now, same, previous)
    previous_fixed = previous.fixed if previous else {}
    bodies = fixed_bodies(program, site, files, modified)
    fixed = {}
    for path, (body, content_type, data_changed) in bodies.items():
        before = previous_fixed.get(path)
        same = before is not None and body == before.identity.body
        date = last_modified(max(program.changed, data_changed), now, same, before)
        link = (
            topic_link_header(urls.base_url, path, bool(urls.hub))
            if path in links.TOPIC_PATHS
            else ""
        )
        is_by_type = path in (links.HOME_PATH, DIRECTORY, MARKDOWN)
        vary = VARY_BY_TYPE if is_by_type else VARY_BY_CODING
        policy = program.policies.get(path, ())
        fixed[path] = represent(
            body, content_type, date, link=link, vary=vary, policy=policy
        )
    return Snapshot(
        site,
        toolbox_of(program.contract, dataset),
        fixed,
        modified,
        RepresentationCache(),
    )


def fixed_bodies(
    program: ProgramFiles,
    site: Site,
    files: Files,
    modified: int,
) -> Bodies:
    """The bodies of the fixed paths; the last change of a body without data is 0. `modified` dates Atom."""
    latest = max(files.reviews_changed, files.insights_changed)
    dataset = site.dataset
    urls = site.urls
    atom = atom_feed(dataset, urls, datetime.fromtimestamp(modified, UTC))
    contract = encode(served_contract(program.contract, dataset, urls))
    markdown = llms_text(site)
    insights_changed = latest if files.insights is None else files.insights_changed
    return {
        links.REVIEWS_PATH: (dataset.reviews_json, JSON_TYPE, latest),
        links.INSIGHTS_PATH: (
            dataset.insights_json,
            JSON_TYPE,
            insights_changed,
        ),
        links.JSON_FEED_PATH: (
            json_feed(dataset, urls),
            JSON_TYPE,
            latest,
        ),
        links.ATOM_FEED_PATH: (atom, ATOM_TYPE, latest),
        links.CONTRACT_PATH: (
            contract,
            JSON_TYPE,
            files.reviews_changed,
        ),
        links.HOME_PATH: (
            html_page(site),
            HTML_TYPE,
            latest,
        ),
        DIRECTORY: (encode(urls.directory()), JSON_TYPE, 0),
        MARKDOWN: (markdown, MARKDOWN_TYPE, latest),
        links.LLMS_PATH: (markdown, TEXT_TYPE, latest),
        links.SITEMAP_PATH: (
            sitemap(site),
            XML_TYPE,
            files.reviews_changed,
        ),
        links.ROBOTS_PATH: (robots_text(urls), TEXT_TYPE, 0),
        links.BADGE_PATH: (
            badge(site),
            ICON_TYPE,
            files.reviews_changed,
        ),
        links.ICON_PATH: (icon(site.templates), ICON_TYPE, 0),
    }


def served_contract(
    contract: Contract, dataset: Dataset, urls: ServiceUrls
) -> dict[str, Any]:
    """The contract with the base URL of this service and the contact of the business."""
    business = dataset.business
    contact = {
        key: business[key] for key in ("name", "url", "email") if business.get(key)
    }
    info, (server,) = (contract.document[key] for key in ("info", "servers"))
    own = {
        "info": info | {"contact": contact},
        "servers": [server | {"url": urls.base_url}],
    }
    return contract.document | own


def last_modified(
    changed: float, now: float, same: bool, before: Snapshot | Representation | None
) -> int:
    """The Last-Modified of content, in seconds since the epoch; `same` if the content is that of `before`.

    The date is not in the future (RFC 9110 section 8.8.2.1). It is later than that of the previous content,
    even if the file is an old copy: otherwise a client with the previous content would get a wrong 304.
    """
    date = int(min(changed, now))
    if before is None:
        return date
    return before.last_modified if same else max(date, before.last_modified + 1)
