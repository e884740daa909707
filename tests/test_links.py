"""URLs of the service: the directory, links of topics, and ids as path segments."""

import pytest

from reviewslib.links import (
    ATOM_FEED_PATH,
    HEALTH_PATH,
    ROBOTS_PATH,
    ServiceUrls,
    service_urls,
    topic_link_header,
)

BASE = "https://reviews.example/shop"


def test_the_directory_has_every_url_and_a_hub_only_where_one_runs() -> None:
    paths = {"reviews": "/reviews.json", "insights": "/insights.json", "search": "/api/reviews/search"}
    paths |= {"since": "/api/reviews/since/{date}", "json_feed": "/api/feed.json", "atom_feed": "/feed.xml"}
    paths |= {"contract": "/.well-known/openapi.json", "page": "/", "embed": "/embed", "llms": "/llms.txt"}
    paths |= {"review_list": "/reviews", "review": "/reviews/{id}", "badge": "/badge.svg", "mcp": "/mcp"}
    without_hub = {name: BASE + path for name, path in paths.items()}
    assert service_urls(BASE, with_hub=False).directory() == without_hub
    assert service_urls(BASE).directory() == without_hub | {"hub": f"{BASE}/api/websub/hub"}
    of_crawlers = [ServiceUrls().icon, ServiceUrls().sitemap, ROBOTS_PATH]
    assert [*of_crawlers, HEALTH_PATH] == ["/favicon.ico", "/sitemap.xml", "/robots.txt", "/healthz"]


def test_a_url_is_the_base_url_and_a_path_with_the_id_as_one_segment() -> None:
    urls = service_urls(BASE)
    assert [urls.path(url) for url in (urls.atom_feed, urls.home)] == [ATOM_FEED_PATH, "/"]
    assert urls.base_url == BASE
    assert urls.review_page("a b/?é") == f"{BASE}/reviews/a%20b%2F%3F%C3%A9"
    assert urls.selection() == f"{BASE}/reviews"
    assert urls.selection(rating=5, source="a b") == f"{BASE}/reviews?rating=5&source=a+b"


@pytest.mark.parametrize(
    ("options", "hub"), [({}, f'<{BASE}/api/websub/hub>; rel="hub", '), ({"with_hub": False}, "")]
)
def test_the_link_of_a_topic_has_the_topic_and_a_hub_that_runs(options: dict[str, bool], hub: str) -> None:
    assert topic_link_header(BASE, "/feed.xml", **options) == f'{hub}<{BASE}/feed.xml>; rel="self"'
