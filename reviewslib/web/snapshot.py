"""A snapshot: everything that is served between two reloads, made of the data files in one go.

Renders, hashes, compresses and dates the fixed representations, and keeps the dataset for computed ones. This
module reads files; it knows no request and no socket. The time is an argument.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
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
from reviewslib.web import embed, pages, representations
from reviewslib.web.feeds import atom_feed, json_feed
from reviewslib.web.representations import Headers, Representation, represent

# ---- Data files: their bytes and the time of their last change ----

DATA_FILES = (REVIEWS_FILE, INSIGHTS_FILE)


class Files(NamedTuple):
    """The data files, each in one consistent state; times of changes are in seconds since the epoch."""

    reviews: bytes
    reviews_changed: float
    insights: bytes | None  # None without such a file: the directory then dates its removal
    insights_changed: float


def read_files(directory: Path) -> Files:
    """Read the data files. Raises BadData if one cannot be read or `reviews.json` is missing."""
    faults, files = [], {}
    for name in DATA_FILES:
        try:
            files[name] = read_unchanging(directory / name)
        except FileNotFoundError:
            if name == REVIEWS_FILE:
                faults.append(Fault(name, (), f"there is no such file in {directory}; --data names it"))
        except OSError as error:
            faults.append(Fault(name, (), f"cannot be read: {error.strerror or error}"))
    if faults:
        raise BadData(faults)
    insights = files[INSIGHTS_FILE] if INSIGHTS_FILE in files else (None, last_change(directory))
    return Files(*files[REVIEWS_FILE], *insights)


def file_stamps(directory: Path) -> dict[str, Stamp]:
    """The stamps of the data files that exist, by name."""
    stamps = {}
    for name in DATA_FILES:
        with suppress(OSError):
            stamps[name] = stamp((directory / name).stat())
    return stamps


# ---- Program files: contract and templates ----

PACKAGE = Path(str(resources.files("reviewslib")))  # contains the contract and the templates


class ProgramFiles(NamedTuple):
    """The files that come with the program and shape its answers."""

    contract: Contract
    templates: Environment
    policies: Mapping[str, Headers]  # security headers by path; those of HOME_PATH hold for every page
    changed: float  # last change of any file, modules included; in seconds since the epoch


def load_program_files(package: Path = PACKAGE) -> ProgramFiles:
    """Load the contract, and the templates of `package`, whose files date both."""
    files = (file for file in package.rglob("*") if file.is_file() and file.suffix != ".pyc")
    environment = pages.load_templates(package / "web" / "templates")
    policies = {
        links.HOME_PATH: pages.page_headers(environment),
        links.EMBED_PATH: embed.frame_headers(environment),
        links.BADGE_PATH: embed.BADGE_HEADERS,
    }
    return ProgramFiles(shipped_contract(), environment, policies, max(map(last_change, files)))


# ---- Snapshot: representations made at load, and a cache of computed ones ----

DIRECTORY, MARKDOWN = "directory", "markdown"  # keys beside paths: the JSON and the Markdown of `/`
ComputedKey = tuple[str, str, bool]  # path, query string, whether gzip
Bodies = dict[str, tuple[bytes, str, float]]  # by path: content, media type, change of its data files


class RepresentationCache:
    """A cache of computed representations, emptied when it exceeds its bound. Any thread."""

    def __init__(self, most_bytes: int = 8 * 1024 * 1024):
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: dict[ComputedKey, Representation] = {}
        self._lock = threading.Lock()  # for writers

    def get(self, key: ComputedKey) -> Representation | None:
        """The representation cached under `key`."""
        return self._kept.get(key)

    def get_or_make(self, key: ComputedKey, make: Callable[[], Representation]) -> Representation:
        """The representation cached under `key`, else the result of `make`, cached if it fits."""
        if kept := self.get(key):
            return kept
        made = make()
        bodies = [coding.body for coding in (made.identity, made.gzip) if coding]
        own_bytes = sum(len(body) for body in bodies if isinstance(body, bytes))
        cost_bytes = own_bytes + len(key[1]) + 2048  # headers, objects
        with self._lock:
            if self._bytes + cost_bytes > self._most_bytes:
                self._kept, self._bytes = {}, 0
            if cost_bytes <= self._most_bytes:
                self._kept[key] = made
                self._bytes += cost_bytes
        return made


class Snapshot(NamedTuple):
    """All answers for one state of the data. Immutable except for `cache`."""

    dataset: Dataset
    toolbox: Toolbox
    fixed: Mapping[str, Representation]  # by path; also DIRECTORY and MARKDOWN
    last_modified: int  # of computed representations
    cache: RepresentationCache


def build_snapshot(
    program: ProgramFiles, files: Files, urls: ServiceUrls, previous: Snapshot | None, now: float
) -> Snapshot:
    """The snapshot of `files`. Content that `previous` served keeps its Last-Modified. Raises BadData."""
    dataset = load(program.contract, files.reviews, files.insights, urls)
    content = (dataset.reviews_json, dataset.insights_json)
    same = previous is not None and content == (previous.dataset.reviews_json, previous.dataset.insights_json)
    changed = max(program.changed, files.reviews_changed, files.insights_changed)
    modified = last_modified(changed, now, same, previous)
    earlier = previous.fixed if previous else {}
    bodies, fixed = fixed_bodies(program, dataset, urls, files, modified), {}
    for path, (body, content_type, data_changed) in bodies.items():
        before = earlier.get(path)
        same = before is not None and body == before.identity.body
        date = last_modified(max(program.changed, data_changed), now, same, before)
        link = topic_link_header(urls.base_url, path, bool(urls.hub)) if path in links.TOPIC_PATHS else ""
        is_by_type = path in (links.HOME_PATH, DIRECTORY, MARKDOWN)
        vary = representations.VARY_BY_TYPE if is_by_type else representations.VARY_BY_CODING
        policy = program.policies.get(path, ())
        fixed[path] = represent(body, content_type, date, link=link, vary=vary, policy=policy)
    return Snapshot(dataset, toolbox_of(program.contract, dataset), fixed, modified, RepresentationCache())


def fixed_bodies(
    program: ProgramFiles, dataset: Dataset, urls: ServiceUrls, files: Files, modified: int
) -> Bodies:
    """The body of each fixed path, changed at 0 if no data file shapes it; `modified` dates the dataset."""
    both, templates = max(files.reviews_changed, files.insights_changed), program.templates
    atom = atom_feed(dataset, urls, datetime.fromtimestamp(modified, UTC))
    contract = encode(served_contract(program.contract, dataset, urls))
    told = pages.llms_text(templates, dataset, urls)
    of_insights = both if files.insights is None else files.insights_changed  # counted, or read
    return {
        links.REVIEWS_PATH: (dataset.reviews_json, representations.JSON_TYPE, both),
        links.INSIGHTS_PATH: (dataset.insights_json, representations.JSON_TYPE, of_insights),
        links.JSON_FEED_PATH: (json_feed(dataset, urls), representations.JSON_TYPE, both),
        links.ATOM_FEED_PATH: (atom, representations.ATOM_TYPE, both),
        links.CONTRACT_PATH: (contract, representations.JSON_TYPE, files.reviews_changed),
        links.HOME_PATH: (pages.html_page(templates, dataset, urls), representations.HTML_TYPE, both),
        DIRECTORY: (encode(urls.directory()), representations.JSON_TYPE, 0),
        MARKDOWN: (told, representations.MARKDOWN_TYPE, both),
        links.LLMS_PATH: (told, representations.TEXT_TYPE, both),
        links.SITEMAP_PATH: (pages.sitemap(dataset, urls), representations.XML_TYPE, files.reviews_changed),
        links.ROBOTS_PATH: (pages.robots_text(urls), representations.TEXT_TYPE, 0),
        links.BADGE_PATH: (embed.badge(templates, dataset), representations.ICON_TYPE, files.reviews_changed),
        links.ICON_PATH: (pages.favicon(templates), representations.ICON_TYPE, 0),
    }


def served_contract(contract: Contract, dataset: Dataset, urls: ServiceUrls) -> dict[str, Any]:
    """The contract with the base URL of this service and the contact of the business."""
    business = dataset.business
    contact = {key: business[key] for key in ("name", "url", "email") if business.get(key)}
    info, (server,) = (contract.document[key] for key in ("info", "servers"))
    own = {"info": info | {"contact": contact}, "servers": [server | {"url": urls.base_url}]}
    return contract.document | own


def last_modified(changed: float, now: float, same: bool, before: Snapshot | Representation | None) -> int:
    """Since when content has been current, in seconds since the epoch; `same` if it equals that of `before`.

    The date is not in the future (RFC 9110 section 8.8.2.1). It is later than that of the previous content,
    even if the file is an old copy: otherwise a client that holds the previous content would get a wrong 304.
    """
    date = int(min(changed, now))
    if before is None:
        return date
    return before.last_modified if same else max(date, before.last_modified + 1)
