"""URLs of the service: the directory, links of topics, and ids as path segments."""

import pytest

from reviewslib.links import HEALTH_PATH, ROBOTS_PATH, ServiceUrls, service_urls, topic_link_header

BASE = "https://reviews.example/shop"
DIRECTORY = """
    reviews=/reviews.json insights=/insights.json search=/api/reviews/search since=/api/reviews/since/{date}
    json_feed=/api/feed.json atom_feed=/feed.xml contract=/.well-known/openapi.json page=/ llms=/llms.txt
    review_list=/reviews review=/reviews/{id} badge=/badge.svg embed=/embed mcp=/mcp hub=/api/websub/hub
"""


def test_the_directory_has_every_url_and_a_hub_only_where_one_runs() -> None:
    expected = {name: BASE + path for name, path in (entry.split("=") for entry in DIRECTORY.split())}
    assert service_urls(BASE).directory() == expected
    assert service_urls(BASE, with_hub=False).directory() == {
        name: url for name, url in expected.items() if name != "hub"
    }


def test_paths_of_crawlers_and_of_monitoring_are_the_usual_ones() -> None:
    paths = [ServiceUrls().icon, ServiceUrls().sitemap, ROBOTS_PATH, HEALTH_PATH]
    assert paths == ["/favicon.ico", "/sitemap.xml", "/robots.txt", "/healthz"]


def test_a_url_is_the_base_url_and_a_path_with_the_id_as_one_segment() -> None:
    urls = service_urls(BASE)
    assert [urls.path(url) for url in (urls.atom_feed, urls.home)] == ["/feed.xml", "/"]
    assert urls.base_url == BASE
    assert urls.review_page("a b/?é") == f"{BASE}/reviews/a%20b%2F%3F%C3%A9"
    assert urls.selection() == f"{BASE}/reviews"
    assert urls.selection(rating=5, source="a b") == f"{BASE}/reviews?rating=5&source=a+b"


@pytest.mark.parametrize(("with_hub", "hub"), [(True, f'<{BASE}/api/websub/hub>; rel="hub", '), (False, "")])
def test_the_link_of_a_topic_has_the_topic_and_a_hub_that_runs(with_hub: bool, hub: str) -> None:
    assert topic_link_header(BASE, "/feed.xml", with_hub) == f'{hub}<{BASE}/feed.xml>; rel="self"'
