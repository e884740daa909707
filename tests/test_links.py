"""URLs of the service: the directory, links of topics, and ids as path segments."""

import pytest

from reviewslib.links import (
    HEALTH_PATH,
    ROBOTS_PATH,
    ServiceUrls,
    service_urls,
    topic_link_header,
)

BASE = "https://reviews.example/shop"
URLS = service_urls(BASE)
DIRECTORY = """
    reviews=/reviews.json insights=/insights.json search=/api/reviews/search since=/api/reviews/since/{date}
    json_feed=/api/feed.json atom_feed=/feed.xml contract=/.well-known/openapi.json page=/ llms=/llms.txt
    review_list=/reviews review=/reviews/{id} badge=/badge.svg embed=/embed mcp=/mcp
"""


@pytest.mark.parametrize(
    ("with_hub", "hub"), [(True, "hub=/api/websub/hub"), (False, "")]
)
def test_the_directory_has_every_url_and_a_hub_only_where_one_runs(
    with_hub: bool, hub: str
) -> None:
    expected = dict(entry.split("=") for entry in (DIRECTORY + hub).split())
    directory = service_urls(BASE, with_hub).directory()
    assert {name: url.removeprefix(BASE) for name, url in directory.items()} == expected


def test_paths_of_crawlers_and_of_monitoring_are_the_usual_ones() -> None:
    paths = [ServiceUrls().icon, ServiceUrls().sitemap, ROBOTS_PATH, HEALTH_PATH]
    assert paths == ["/favicon.ico", "/sitemap.xml", "/robots.txt", "/healthz"]


def test_a_url_is_the_base_url_and_a_path_with_the_id_as_one_segment() -> None:
    assert (URLS.base_url, URLS.path(URLS.atom_feed), URLS.path(URLS.home)) == (
        BASE,
        "/feed.xml",
        "/",
    )
    assert URLS.review_page("a b/?é") == f"{BASE}/reviews/a%20b%2F%3F%C3%A9"
    selections = [URLS.selection(), URLS.selection(rating=5, source="a b")]
    assert selections == [f"{BASE}/reviews", f"{BASE}/reviews?rating=5&source=a+b"]


@pytest.mark.parametrize(
    ("with_hub", "hub"), [(True, f'<{BASE}/api/websub/hub>; rel="hub", '), (False, "")]
)
def test_the_link_of_a_topic_has_the_topic_and_a_hub_that_runs(
    with_hub: bool, hub: str
) -> None:
    assert (
        topic_link_header(BASE, "/feed.xml", with_hub)
        == f'{hub}<{BASE}/feed.xml>; rel="self"'
    )
