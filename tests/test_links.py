"""URLs of the service: the directory, links of topics, and ids as path segments."""

import pytest

from reviewslib import links
from reviewslib.links import ServiceUrls, service_urls, topic_link_header

BASE = "https://reviews.example/shop"
URLS = service_urls(BASE)
WITHOUT_HUB = service_urls(BASE, with_hub=False)

# What `/` tells programs, without the base URL.
DIRECTORY = {
    "reviews": "/reviews.json",
    "insights": "/insights.json",
    "search": "/api/reviews/search",
    "search_feed": "/api/reviews/search.xml",
    "since": "/api/reviews/since/{date}",
    "json_feed": "/api/feed.json",
    "atom_feed": "/feed.xml",
    "contract": "/.well-known/openapi.json",
    "page": "/",
    "review_list": "/reviews",
    "review": "/reviews/{id}",
    "llms": "/llms.txt",
    "badge": "/badge.svg",
    "embed": "/embed",
    "mcp": "/mcp",
}


def paths_in(urls: ServiceUrls) -> dict[str, str]:
    return {name: url.removeprefix(BASE) for name, url in urls.directory().items()}


def test_the_directory_has_the_url_of_the_hub_where_one_runs() -> None:
    assert paths_in(URLS) == DIRECTORY | {"hub": "/api/websub/hub"}


def test_the_directory_names_no_hub_where_none_runs() -> None:
    assert paths_in(WITHOUT_HUB) == DIRECTORY


@pytest.mark.parametrize(
    ("path", "usual"),
    [
        pytest.param(links.ICON_PATH, "/favicon.ico", id="icon"),
        pytest.param(links.SITEMAP_PATH, "/sitemap.xml", id="sitemap"),
        pytest.param(links.ROBOTS_PATH, "/robots.txt", id="robots"),
        pytest.param(links.HEALTH_PATH, "/healthz", id="health"),
    ],
)
def test_paths_that_clients_guess_are_the_usual_ones(path: str, usual: str) -> None:
    assert path == usual


def test_a_url_is_the_base_url_and_a_path() -> None:
    assert URLS.base_url == BASE
    assert URLS.path(URLS.atom_feed) == "/feed.xml"
    assert URLS.path(URLS.home) == "/"


def test_an_id_is_one_segment_of_a_path() -> None:
    assert URLS.review_page("a b/?é") == f"{BASE}/reviews/a%20b%2F%3F%C3%A9"


def test_a_selection_without_filters_is_the_list() -> None:
    assert URLS.selection() == f"{BASE}/reviews"


def test_the_filters_of_a_selection_are_its_query() -> None:
    selection = URLS.selection(rating=5, source="a b")

    assert selection == f"{BASE}/reviews?rating=5&source=a+b"


@pytest.mark.parametrize(
    ("base", "path"),
    [
        pytest.param("https://reviews.example", "", id="no path"),
        pytest.param(BASE, "/shop", id="a path"),
        pytest.param("https://a.example//b", "/.//b", id="what looks like a host"),
    ],
)
def test_links_from_page_to_page_name_no_host(base: str, path: str) -> None:
    urls = service_urls(base).as_paths()

    assert urls.review_list == f"{path}/reviews"


def test_links_from_page_to_page_name_no_hub_where_none_runs() -> None:
    assert WITHOUT_HUB.as_paths().hub == ""


def test_the_link_of_a_topic_has_the_topic_and_its_hub() -> None:
    field = topic_link_header(BASE, "/feed.xml")

    hub = f'<{BASE}/api/websub/hub>; rel="hub"'
    assert field == f'{hub}, <{BASE}/feed.xml>; rel="self"'


def test_the_link_of_a_topic_names_no_hub_where_none_runs() -> None:
    field = topic_link_header(BASE, "/feed.xml", with_hub=False)

    assert field == f'<{BASE}/feed.xml>; rel="self"'
