"""Where everything is."""

import pytest

from reviewslib.links import ATOM_FEED_PATH, Links, links_below, topic_link_header

BASE = "https://reviews.example/shop"
LINKS = links_below(BASE)


def test_programs_are_told_every_address_below_the_base_url_and_no_hub_where_none_runs() -> None:
    paths = {"reviews": "/reviews.json", "insights": "/insights.json", "search": "/api/reviews/search"}
    paths |= {"since": "/api/reviews/since/{date}", "json_feed": "/api/feed.json", "atom_feed": "/feed.xml"}
    paths |= {
        "contract": "/.well-known/openapi.json",
        "page": "/",
        "review_list": "/reviews",
        "badge": "/badge.svg",
    }
    paths |= {"review": "/reviews/{id}", "llms": "/llms.txt", "mcp": "/mcp", "embed": "/embed"}
    without_hub = {name: BASE + path for name, path in paths.items()}
    assert links_below(BASE, with_hub=False).directory() == without_hub
    assert LINKS.directory() == without_hub | {"hub": f"{BASE}/api/websub/hub"}
    assert (Links().icon, Links().sitemap) == ("/favicon.ico", "/sitemap.xml")


def test_a_link_is_the_base_url_and_a_path_in_which_an_id_is_one_segment() -> None:
    assert (LINKS.path(LINKS.atom_feed), LINKS.path(LINKS.home)) == (ATOM_FEED_PATH, "/")
    assert LINKS.base_url == BASE
    assert LINKS.review_page("a b/?é") == f"{BASE}/reviews/a%20b%2F%3F%C3%A9"


@pytest.mark.parametrize(
    ("options", "hub"), [({}, f'<{BASE}/api/websub/hub>; rel="hub", '), ({"with_hub": False}, "")]
)
def test_a_topic_names_itself_and_its_hub_where_one_runs(options: dict[str, bool], hub: str) -> None:
    assert topic_link_header(BASE, "/feed.xml", **options) == f'{hub}<{BASE}/feed.xml>; rel="self"'
