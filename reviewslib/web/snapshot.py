"""Snapshots: everything that is served between two reloads, made from the data files.

A snapshot has all fixed representations, ready to be sent, and the dataset, from which
others are computed. This module must not know a file, a request or a socket. The time
is an argument.

Sections: dates - snapshots.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from reviewslib.dataset.reviews import Dataset, load
from reviewslib.links import ServiceUrls
from reviewslib.mcp_tools import Toolbox, toolbox_of
from reviewslib.web.cache import RepresentationCache
from reviewslib.web.data_files import DataFiles
from reviewslib.web.error_pages import ErrorPages, error_pages_of
from reviewslib.web.fixed_contents import FixedContent, fixed_contents
from reviewslib.web.program_files import ProgramFiles
from reviewslib.web.representations import Content, Representation, represent
from reviewslib.web.site import Site, site_of
from reviewslib.web.templating import templates_in

# ---- Dates ----


def first_date(changed: float, now: float) -> int:
    """The Last-Modified of content that changed then, in seconds since the epoch."""
    # Not in the future (RFC 9110 section 8.8.2.1).
    return int(min(changed, now))


def later_date(changed: float, now: float, before: int) -> int:
    """The same for content that replaces another, whose Last-Modified is `before`."""
    # Even if the file is an old copy: otherwise a client with the previous content
    # would get a wrong 304.
    return max(first_date(changed, now), before + 1)


# ---- Snapshots ----


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
    files: DataFiles,
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
    modified = _date_of_data(dataset, changed, previous, now)
    contents = fixed_contents(program, site, files, modified)
    return Snapshot(
        site=site,
        toolbox=toolbox_of(program.contract, dataset),
        fixed=_represented(contents, program.changed, previous, now),
        error_pages=error_pages_of(site),
        last_modified=modified,
        cache=RepresentationCache(),
    )


def _date_of_data(
    dataset: Dataset, changed: float, previous: Snapshot | None, now: float
) -> int:
    """The Last-Modified of whatever is computed from the data."""
    if previous is None:
        return first_date(changed, now)
    if has_same_data(dataset, previous.dataset):
        return previous.last_modified
    return later_date(changed, now, previous.last_modified)


def has_same_data(one: Dataset, other: Dataset) -> bool:
    """Whether two datasets are served as the same bytes."""
    if one.reviews_json != other.reviews_json:
        return False
    return one.insights_json == other.insights_json


def _represented(
    contents: Mapping[str, FixedContent],
    program_changed: float,
    previous: Snapshot | None,
    now: float,
) -> dict[str, Representation]:
    """The representations of fixed contents, which the program shapes as well."""
    fixed = {}
    for path, (content, data_changed) in contents.items():
        before = previous.fixed.get(path) if previous else None
        changed = max(program_changed, data_changed)
        fixed[path] = represent(content, _date_of_fixed(content, changed, before, now))
    return fixed


def _date_of_fixed(
    content: Content, changed: float, before: Representation | None, now: float
) -> int:
    """The Last-Modified of a fixed content; `before` is that of the previous data."""
    if before is None:
        return first_date(changed, now)
    if content.body == before.identity.body:
        return before.last_modified
    return later_date(changed, now, before.last_modified)
