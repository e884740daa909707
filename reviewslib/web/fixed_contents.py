"""Fixed contents: whatever is made once when data are loaded.

This module must not know a file or a request; the time is an argument.

Sections: what depends on which file - data and feeds - for people - for assistants.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from reviewslib import links
from reviewslib.dataset.strict_json import encode
from reviewslib.links import ServiceUrls, topic_link_header
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
)
from reviewslib.web.api_description import api_description
from reviewslib.web.cards import host_catalogue, server_card
from reviewslib.web.crawlers import robots_text, sitemap
from reviewslib.web.data_files import DataFiles
from reviewslib.web.feeds import atom_feed, json_feed
from reviewslib.web.home_page import html_page, llms_text
from reviewslib.web.pictures import badge, icon
from reviewslib.web.program_files import ProgramFiles
from reviewslib.web.representations import Content
from reviewslib.web.site import Site

# ---- What depends on which file ----

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
    program: ProgramFiles, site: Site, files: DataFiles, modified: int
) -> dict[str, FixedContent]:
    """The fixed contents by path; `modified` dates an Atom feed without reviews."""
    return {
        **_data(program, site, files),
        **_feeds(site, files, modified),
        **_home(program, site, files),
        **_for_crawlers(site, files),
        **_pictures(program, site, files),
        **_for_assistants(site, files),
    }


# ---- Data and feeds ----


def _data(
    program: ProgramFiles, site: Site, files: DataFiles
) -> dict[str, FixedContent]:
    """Reviews, insights, and the contract."""
    dataset = site.dataset
    reviews = Content(
        dataset.reviews_json,
        JSON_TYPE,
        link=_topic_link(site.urls, links.REVIEWS_PATH),
    )
    insights = Content(dataset.insights_json, JSON_TYPE)
    description = api_description(program.contract, dataset, site.urls)
    contract = Content(encode(description), JSON_TYPE)
    return {
        links.REVIEWS_PATH: FixedContent(reviews, files.changed),
        links.INSIGHTS_PATH: FixedContent(insights, _change_of_insights(files)),
        links.CONTRACT_PATH: FixedContent(contract, files.reviews_changed),
    }


def _change_of_insights(files: DataFiles) -> float:
    if files.insights is None:
        # They are counted, and change with the reviews.
        return files.changed
    return files.insights_changed


def _feeds(site: Site, files: DataFiles, modified: int) -> dict[str, FixedContent]:
    """Both feeds of the newest reviews."""
    json = Content(
        json_feed(site),
        JSON_TYPE,
        link=_topic_link(site.urls, links.JSON_FEED_PATH),
    )
    feed = atom_feed(site, updated_when_empty=datetime.fromtimestamp(modified, UTC))
    atom = Content(feed, ATOM_TYPE, link=_topic_link(site.urls, links.ATOM_FEED_PATH))
    return {
        links.JSON_FEED_PATH: FixedContent(json, files.changed),
        links.ATOM_FEED_PATH: FixedContent(atom, files.changed),
    }


def _topic_link(urls: ServiceUrls, path: str) -> str:
    return topic_link_header(urls.base_url, path, with_hub=bool(urls.hub))


# ---- For people ----


def _home(
    program: ProgramFiles, site: Site, files: DataFiles
) -> dict[str, FixedContent]:
    """The home page in its three media types, and its Markdown under a path."""
    page = Content(
        html_page(site),
        HTML_TYPE,
        policy=program.policies[links.HOME_PATH],
        vary=VARY_BY_TYPE,
    )
    directory = encode(site.urls.directory())
    markdown = llms_text(site)
    home_directory = Content(directory, JSON_TYPE, vary=VARY_BY_TYPE)
    home_markdown = Content(markdown, MARKDOWN_TYPE, vary=VARY_BY_TYPE)
    llms = Content(markdown, TEXT_TYPE)
    return {
        links.HOME_PATH: FixedContent(page, files.changed),
        DIRECTORY: FixedContent(home_directory, changed=0),
        MARKDOWN: FixedContent(home_markdown, files.changed),
        links.LLMS_PATH: FixedContent(llms, files.changed),
    }


def _for_crawlers(site: Site, files: DataFiles) -> dict[str, FixedContent]:
    """Which pages there are, and which may be read."""
    pages = Content(sitemap(site), XML_TYPE)
    robots = Content(robots_text(site.urls), TEXT_TYPE)
    return {
        links.SITEMAP_PATH: FixedContent(pages, files.reviews_changed),
        links.ROBOTS_PATH: FixedContent(robots, changed=0),
    }


def _pictures(
    program: ProgramFiles, site: Site, files: DataFiles
) -> dict[str, FixedContent]:
    """The badge for the owner's website, and the icon of the pages."""
    policy = program.policies[links.BADGE_PATH]
    stars = Content(badge(site), ICON_TYPE, policy=policy)
    favicon = Content(icon(site.templates), ICON_TYPE)
    return {
        links.BADGE_PATH: FixedContent(stars, files.reviews_changed),
        links.ICON_PATH: FixedContent(favicon, changed=0),
    }


# ---- For assistants ----


def _for_assistants(site: Site, files: DataFiles) -> dict[str, FixedContent]:
    """Card and catalogue; none where the host has no name."""
    urls = site.urls
    if not urls.server_card:
        return {}
    card = Content(encode(server_card(site.dataset, urls)), CARD_TYPE)
    entries = Content(encode(host_catalogue(site.dataset, urls)), JSON_TYPE)
    return {
        links.SERVER_CARD_PATH: FixedContent(card, files.reviews_changed),
        links.HOST_CATALOGUE_PATH: FixedContent(entries, files.changed),
    }
