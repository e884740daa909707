"""Where everything is."""

import links

BASE_URL = "https://reviews.example/shop"


def test_every_link_is_below_the_base_url():
    at = links.links_below(BASE_URL)
    assert at.home == BASE_URL + "/"
    assert all(url.startswith(BASE_URL + "/") for url in at.directory().values())


def test_the_path_of_a_link_is_what_follows_the_base_url():
    at = links.links_below(BASE_URL)
    assert at.path(at.atom_feed) == links.ATOM_FEED_PATH
    assert at.path(at.home) == links.HOME_PATH


def test_the_directory_shows_where_the_day_of_since_belongs():
    assert links.links_below(BASE_URL).directory()["since"].endswith("/api/reviews/since/{date}")


def test_a_topic_names_its_hub_and_itself():
    assert links.topic_link_header("https://a.example", "/feed.xml") == (
        '<https://a.example/api/websub/hub>; rel="hub", <https://a.example/feed.xml>; rel="self"'
    )
