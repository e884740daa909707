"""Settings: where each comes from, and what is said of one that cannot be used."""

import argparse
from dataclasses import fields
from pathlib import Path

import pytest

from reviewslib.process.settings import (
    BadSetting,
    Settings,
    add_flags,
    flag_name,
    opposite_flag_name,
    read_settings,
    setting_text,
    variable_name,
)


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_default() -> None:
    environ = {"REVIEWSD_PORT": "81", "REVIEWSD_HOST": "::1", "REVIEWSD_DATA": ""}
    settings, sources = read_settings({"port": "82", "host": None}, environ)
    assert (settings.port, settings.host, settings.data) == (82, "::1", Path("data"))
    assert (sources["port"], sources["host"], sources["data"]) == ("--port", "REVIEWSD_HOST", "default")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("port", "http", "'http' is not a port: expected 0 to 65535"),
        ("port", "65536", "'65536' is not a port: expected 0 to 65535"),
        ("port", "٣", "'٣' is not a port: expected 0 to 65535"),
        (
            "base_url",
            "reviews.example",
            "is not a base URL: expected for example https://reviews.example.com",
        ),
        ("base_url", "https://", "is not a base URL"),
        ("base_url", "https://a.example/?x", "is not a base URL"),
        ("base_url", "https://a.example:port", "is not a base URL"),
        ("base_url", 'https://a.example/"><b', "is not a base URL"),
        ("base_url", "https://bücher.example", "is not a base URL"),
        ("allowed_origin", "https://a.example/", "is not an origin: expected for example https://app"),
        ("no_hub", "perhaps", "'perhaps' is neither on nor off: expected one of on, yes,"),
        ("state_dir", "", "a value is missing"),
        ("log_level", "loud", "'loud' is not a log level: expected one of debug, info, warning, error"),
        ("hub_workers", "0", "'0' is not a number: expected 1 or more"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_what_would_be_right(
    name: str, text: str, message: str
) -> None:
    by_variable = (
        [({}, {variable_name(name): text}, variable_name(name))] if text else []
    )  # else it is absent
    for flags, environ, source in [({name: text}, {}, flag_name(name)), *by_variable]:
        with pytest.raises(BadSetting) as caught:
            read_settings(flags, environ)
        assert str(caught.value).startswith(f"{source}: ")
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"hub_lease_min": "9999999"},
            "--hub-lease-min 9999999, --hub-lease-max 2592000: the first must be at most the second",
        ),
        (
            {"hub_lease_seconds": "10"},
            "--hub-lease-seconds 10, --hub-lease-min 3600, --hub-lease-max 2592000: a default lease from 3600"
            " to 2592000 would do",
        ),
        ({"hub_retry_delays": "60"}, "--hub-retry-delays 60: 2 delays are needed, for example 60,3600"),
    ],
)
def test_settings_that_conflict_are_named_with_what_would_do(given: dict[str, str], message: str) -> None:
    with pytest.raises(BadSetting) as caught:
        read_settings(given, {})
    assert str(caught.value) == message


def test_the_base_url_loses_its_last_slash() -> None:
    settings, _ = read_settings({"base_url": "https://reviews.example/shop/"}, {})
    assert settings.base_url == "https://reviews.example/shop"


def test_a_list_is_repeated_flags_or_a_variable_with_commas() -> None:
    expected = {"https://a.example", "http://localhost:3000"}
    for flags, environ in (
        ({"allowed_origin": ["https://a.example", "http://localhost:3000"]}, {}),
        ({}, {"REVIEWSD_ALLOWED_ORIGIN": "https://a.example, http://localhost:3000,"}),
    ):
        assert read_settings(flags, environ)[0].allowed_origin == expected


@pytest.mark.parametrize(("text", "value"), [("on", True), ("TRUE", True), ("0", False), ("", False)])
def test_a_switch_has_a_variable_too(text: str, value: bool) -> None:
    environ = {"REVIEWSD_NO_HUB": text}
    assert read_settings({}, environ)[0].no_hub is value


SWITCHES = [declared.name for declared in fields(Settings) if isinstance(declared.default, bool)]


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_that_its_variable_turns_on_is_turned_off_by_a_flag(name: str) -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    for flag, value in ((flag_name(name), True), (opposite_flag_name(name), False)):
        for variable in ("on", "off"):
            settings, sources = read_settings(
                vars(parser.parse_args([flag])), {variable_name(name): variable}
            )
            assert getattr(settings, name) is value
            assert sources[name] == flag_name(name)


def test_the_flag_that_turns_a_switch_off_says_no_and_that_of_a_no_does_not() -> None:
    assert opposite_flag_name("access_log") == "--no-access-log"
    assert opposite_flag_name("no_hub") == "--hub"


def test_the_state_directory_is_systemd_s_unless_somebody_says_otherwise() -> None:
    systemd = {"STATE_DIRECTORY": "/var/lib/reviewsd"}
    settings, sources = read_settings({}, systemd)
    assert (settings.state_dir, sources["state_dir"]) == (Path("/var/lib/reviewsd"), "STATE_DIRECTORY")
    chosen = systemd | {"REVIEWSD_STATE_DIR": "/srv"}
    assert read_settings({}, chosen)[0].state_dir == Path("/srv")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "on"),
        (False, "off"),
        ((60.0, 0.5), "60,0.5"),
        (frozenset({"b", "a"}), "a,b"),
        (None, ""),
        (2.0, "2"),
    ],
)
def test_a_value_is_shown_as_an_operator_writes_it(value: object, text: str) -> None:
    assert setting_text(value) == text


def test_every_default_is_what_its_own_text_reads_as() -> None:
    settings, _ = read_settings({}, {})
    texts = {name: setting_text(getattr(settings, name)) for name in Settings.__slots__}
    assert read_settings({name: text or None for name, text in texts.items()}, {})[0] == settings
