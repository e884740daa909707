"""A snapshot: everything that is served between two reloads, made at once of the data files.

Fixed representations are rendered, hashed, packed and dated here; the rest is kept ready to be asked. This
module reads files; it knows no request and no socket, and the time arrives as an argument.
"""

from __future__ import annotations

import os
import stat
import sysconfig
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment

import links
import page
import representations
from contract import BadData, Contract, Fault, read_contract
from feeds import atom_feed, json_feed
from links import Links, topic_link_header
from mcp_tools import Toolbox, toolbox_of
from representations import Headers, Representation, represent
from reviews import INSIGHTS_FILE, REVIEWS_FILE, Dataset, load
from strict_json import decode, encode

# ---- Files: bytes from the disk, each with the time of its last change ----

DATA_FILES = (REVIEWS_FILE, INSIGHTS_FILE)
LARGEST_FILE_BYTES = 64 * 1024 * 1024  # some 70,000 reviews
READ_ATTEMPTS = 5
SETTLE_SECONDS = 0.05  # between two attempts at a file that somebody is writing


class Files(NamedTuple):
    """The data files, each as it was at one moment; changes are in seconds since the epoch."""

    reviews: bytes
    reviews_changed: float
    insights: bytes | None  # None without such a file; then the directory's change stands for its removal
    insights_changed: float


def read_files(directory: Path) -> Files:
    """The data files. Raises BadData when one cannot be read, or there are no reviews."""
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


def read_unchanging(path: Path) -> tuple[bytes, float]:
    """The bytes of a regular file and its last change, read again while somebody writes. Raises OSError."""
    for _ in range(READ_ATTEMPTS):
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise OSError(None, "it is not a regular file")
        if found.st_size > LARGEST_FILE_BYTES:
            raise OSError(None, f"it is larger than {LARGEST_FILE_BYTES // 1024**2} MiB")
        # A FIFO that has just been put there would wait for a writer.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if stamp(os.fstat(file.fileno())) == stamp(found):
                content = file.read()
                if stamp(os.fstat(file.fileno())) == stamp(path.stat()) == stamp(found):
                    return content, last_change(path)
        time.sleep(SETTLE_SECONDS)
    raise OSError(None, "it changes while it is read")


def last_change(path: Path) -> float:
    """When `path` began to hold what it holds, in seconds since the epoch. Raises OSError.

    A copy keeps an old modification time, but not a change time (inode(7)); a link may have been switched.
    """
    links_to_it = [each for each in (path, *path.absolute().parents) if each.is_symlink()]
    found = [path.stat(), *(each.lstat() for each in links_to_it)]
    return max(moment for status in found for moment in (status.st_mtime, status.st_ctime))


Stamp = tuple[int, int, int, int]


def stamp(status: os.stat_result) -> Stamp:
    """What differs when a file was written or replaced, or may be read by others."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def file_stamps(directory: Path) -> dict[str, Stamp]:
    """The stamps of the data files that are there, by name."""
    stamps = {}
    for name in DATA_FILES:
        with suppress(OSError):
            stamps[name] = stamp((directory / name).stat())
    return stamps


# ---- Program: what comes with it and shapes its answers ----


def shipped(name: str) -> Path:
    """A file of the program: beside this module in a checkout, in share/reviewsd where pip put it."""
    beside = Path(__file__).parent / name
    return beside if beside.exists() else Path(sysconfig.get_path("data")) / "share" / "reviewsd" / name


class Program(NamedTuple):
    """What comes with the program."""

    contract: Contract
    templates: Environment
    page_headers: Headers  # of each page for people
    changed: float  # any of its files, modules included; in seconds since the epoch


def load_program() -> Program:
    """The contract and the templates of this program."""
    contract, templates = shipped("data/openapi.json"), shipped("templates")
    files = (contract, *templates.iterdir(), *Path(__file__).parent.glob("*.py"))
    changed = max(map(last_change, files))
    environment = page.load_templates(templates)
    headers = page.page_headers(environment)
    return Program(read_contract(decode(contract.read_bytes())), environment, headers, changed)


# ---- Snapshot: representations made at load, and those that requests have made since ----

DIRECTORY = ""  # stands for a path: what `/` answers programs
ComputedKey = tuple[str, str, bool]  # path, query string, with gzip or without
Bodies = dict[str, tuple[bytes, str, float]]  # by path: content, media type, change of its data files


class Computed:
    """Representations that requests have made; all are forgotten when they take too much room. Any thread."""

    def __init__(self, most_bytes: int = 8 * 1024 * 1024):
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: dict[ComputedKey, Representation] = {}
        self._lock = threading.Lock()  # for writers

    def get(self, key: ComputedKey) -> Representation | None:
        """The representation kept under `key`."""
        return self._kept.get(key)

    def keep(self, key: ComputedKey, representation: Representation) -> None:
        """Keep `representation`, unless it alone is too large."""
        bodies = [coding.body for coding in (representation.identity, representation.gzip) if coding]
        own_bytes = sum(len(body) for body in bodies if isinstance(body, bytes))
        cost_bytes = own_bytes + len(key[1]) + 2048  # headers, objects
        with self._lock:
            if self._bytes + cost_bytes > self._most_bytes:
                self._kept, self._bytes = {}, 0
            if cost_bytes <= self._most_bytes:
                self._kept[key] = representation
                self._bytes += cost_bytes


class Snapshot(NamedTuple):
    """All answers of one state of the data. Immutable but for `computed`."""

    dataset: Dataset
    toolbox: Toolbox
    fixed: Mapping[str, Representation]  # by path
    directory: Representation  # what `/` answers programs
    last_modified: int  # of what is computed from the dataset as a whole
    computed: Computed


def build_snapshot(
    program: Program, files: Files, urls: Links, previous: Snapshot | None, now: float
) -> Snapshot:
    """The snapshot of `files`; content that `previous` served keeps its Last-Modified. Raises BadData."""
    dataset = load(program.contract, files.reviews, files.insights, urls)
    content = (dataset.reviews_json, dataset.insights_json)
    same = previous is not None and content == (previous.dataset.reviews_json, previous.dataset.insights_json)
    changed = max(program.changed, files.reviews_changed, files.insights_changed)
    modified = last_modified(changed, now, same, previous)
    earlier = {**previous.fixed, DIRECTORY: previous.directory} if previous else {}
    bodies, fixed = fixed_bodies(program, dataset, urls, files, modified), {}
    for path, (body, content_type, data_changed) in bodies.items():
        before = earlier.get(path)
        same = before is not None and body == before.identity.body
        date = last_modified(max(program.changed, data_changed), now, same, before)
        link = topic_link_header(urls.base_url, path, bool(urls.hub)) if path in links.TOPIC_PATHS else ""
        is_by_type = path in (links.HOME_PATH, DIRECTORY)
        vary = representations.BY_TYPE_TOO if is_by_type else representations.BY_CODING
        policy = program.page_headers if path == links.HOME_PATH else ()
        fixed[path] = represent(body, content_type, date, link=link, vary=vary, policy=policy)
    directory, toolbox = fixed.pop(DIRECTORY), toolbox_of(program.contract, dataset)
    return Snapshot(dataset, toolbox, fixed, directory, modified, Computed())


def fixed_bodies(program: Program, dataset: Dataset, urls: Links, files: Files, modified: int) -> Bodies:
    """What each fixed path answers, changed at 0 if no data file shapes it; `modified` is the dataset's."""
    both, templates = max(files.reviews_changed, files.insights_changed), program.templates
    atom = atom_feed(dataset, urls, datetime.fromtimestamp(modified, UTC))
    contract = encode(served_contract(program.contract, dataset, urls))
    of_insights = both if files.insights is None else files.insights_changed  # counted, or read
    return {
        links.REVIEWS_PATH: (dataset.reviews_json, representations.JSON_TYPE, both),
        links.INSIGHTS_PATH: (dataset.insights_json, representations.JSON_TYPE, of_insights),
        links.JSON_FEED_PATH: (json_feed(dataset, urls), representations.JSON_TYPE, both),
        links.ATOM_FEED_PATH: (atom, representations.ATOM_TYPE, both),
        links.CONTRACT_PATH: (contract, representations.JSON_TYPE, files.reviews_changed),
        links.HOME_PATH: (page.html_page(templates, dataset, urls), representations.HTML_TYPE, both),
        DIRECTORY: (encode(urls.directory()), representations.JSON_TYPE, 0),
        links.LLMS_PATH: (page.llms_text(templates, dataset, urls), representations.TEXT_TYPE, both),
        links.SITEMAP_PATH: (page.sitemap(dataset, urls), representations.XML_TYPE, files.reviews_changed),
        links.ROBOTS_PATH: (page.robots_text(urls), representations.TEXT_TYPE, 0),
        links.ICON_PATH: (page.favicon(templates), representations.ICON_TYPE, 0),
    }


def served_contract(contract: Contract, dataset: Dataset, urls: Links) -> dict[str, Any]:
    """The contract with this service's address and the business to write to."""
    business = dataset.business
    contact = {key: business[key] for key in ("name", "url", "email") if business.get(key)}
    return contract.document | {
        "info": contract.document["info"] | {"contact": contact},
        "servers": [{"url": urls.base_url, "description": "This service"}],
    }


def last_modified(changed: float, now: float, same: bool, before: Snapshot | Representation | None) -> int:
    """Since when content has been current, in whole seconds since the epoch; `same` as `before` or not.

    Not in the future (RFC 9110 section 8.8.2.1), and later than the content before it even if that was put
    back from a copy with an old time: else a client that holds the content between would be told 304.
    """
    date = int(min(changed, now))
    if before is None:
        return date
    return before.last_modified if same else max(date, before.last_modified + 1)
