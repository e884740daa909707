"""Where everything is."""

from reviewslib import links

LINKS = links.links_below("https://reviews.example/shop")


def test_every_link_is_below_the_base_url() -> None:
    assert LINKS.home == "https://reviews.example/shop/"
    assert all(url.startswith(LINKS.home) for url in LINKS.directory().values())


def test_the_path_of_a_link_is_what_follows_the_base_url() -> None:
    assert (LINKS.path(LINKS.atom_feed), LINKS.path(LINKS.home)) == (links.ATOM_FEED_PATH, links.HOME_PATH)


def test_the_directory_shows_where_the_day_of_since_belongs() -> None:
    assert LINKS.directory()["since"].endswith("/api/reviews/since/{date}")


def test_a_topic_names_its_hub_and_itself() -> None:
    field = '<https://a.example/api/websub/hub>; rel="hub", <https://a.example/feed.xml>; rel="self"'
    assert links.topic_link_header("https://a.example", "/feed.xml") == field


def test_without_a_hub_there_is_no_link_to_one() -> None:
    assert "hub" not in links.links_below("https://a.example", with_hub=False).directory()
    field = '<https://a.example/feed.xml>; rel="self"'
    assert links.topic_link_header("https://a.example", "/feed.xml", with_hub=False) == field
