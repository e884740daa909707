"""Settings come from flags, variables and defaults, in this order; invalid ones are refused with a reason."""

import argparse
from pathlib import Path

import pytest

from reviewslib.process.settings import (
    BadSetting,
    Settings,
    add_flags,
    flag_name,
    listing,
    read_settings,
    setting_text,
    variable_name,
)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    add_flags(made)
    return made


def test_a_flag_wins_over_a_variable_and_a_variable_over_the_default() -> None:
    environ = {"REVIEWSD_PORT": "81", "REVIEWSD_HOST": "::1", "REVIEWSD_DATA": ""}
    settings, sources = read_settings({"port": "82", "host": None}, environ)
    assert (settings.port, settings.host, settings.data) == (82, "::1", Path("data"))
    assert (sources["port"], sources["host"], sources["data"]) == (
        "--port",
        "REVIEWSD_HOST",
        "default",
    )


SECONDS = "a number of seconds: expected for example 2 or 0.5"
ORIGIN = "an origin: expected for example https://app.example.com, or *"
BASE_URL = "a base URL: expected for example https://reviews.example.com"
WRONG = {
    "port": ("a port: expected 0 to 65535", ["http", "65536", "٣", "-1", "000080"]),
    "base_url": (
        BASE_URL,
        [
            "reviews.example",
            "ftp://a.example",
            "https://",
            "https://a.example/?x",
            "https://a.example/#x",
            "https://a.example:port",
            'https://a.example/"',
            "https://a.example/<b",
            "https://a.example/>",
            "https://a.example/\\",
            "https://a b.example",
            "https://bücher.example",
            "https://[a",
        ],
    ),
    "reload_interval": (SECONDS, ["0.0", "-1", "0.0001", "12345678"]),
    "hub_retry_delays": ("two delays: expected for example 60,3600", ["60", "1,2,3"]),
    "hub_workers": ("a number: expected 1 or more", ["0", "1.5", "1234567890"]),
    "allowed_origin": (
        ORIGIN,
        [
            "https://a.example/",
            "https://a?",
            "https://a#",
            "https://a b",
            "a.example",
            "1://a",
        ],
    ),
    "log_level": ("a log level: expected one of debug, info, warning, error", ["loud"]),
}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (name, text, f"{text!r} is not {right}")
        for name, (right, texts) in WRONG.items()
        for text in texts
    ]
    + [
        ("allowed_origin", "null, x, y", f"'x' is not {ORIGIN}"),
        ("hub_retry_delays", "60,x", f"'x' is not {SECONDS}"),
        (
            "no_hub",
            "x",
            "'x' is neither on nor off: expected one of on, yes, true, 1, off, no, false, 0",
        ),
        ("state_dir", "", "a value is missing"),
    ],
)
def test_an_invalid_setting_is_named_with_an_example_of_a_valid_one(
    name: str, text: str, message: str
) -> None:
    variables = (
        {variable_name(name): text} if text else {}
    )  # an empty variable counts as absent
    for flags, environ, source in (
        ({name: text}, {}, flag_name(name)),
        ({}, variables, variable_name(name)),
    ):
        if flags or environ:
            with pytest.raises(BadSetting) as caught:
                read_settings(flags, environ)
            assert str(caught.value) == f"{source}: {message}"


@pytest.mark.parametrize(
    "conflicting",
    [
        {"hub_lease_min": "9999999"},
        {"hub_lease_seconds": "10"},
        {"hub_lease_max": "9999"},
    ],
)
def test_conflicting_leases_are_named_with_the_rule(
    conflicting: dict[str, str],
) -> None:
    usual = {
        "hub_lease_min": "3600",
        "hub_lease_seconds": "864000",
        "hub_lease_max": "2592000",
    }
    named = ", ".join(
        f"{flag_name(name)} {value}" for name, value in (usual | conflicting).items()
    )
    with pytest.raises(
        BadSetting, match=f"^{named}: none may be more than the next one$"
    ):
        read_settings(conflicting, {})


ORIGINS = frozenset({"https://a.example", "http://localhost:3000"})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("port", "0", 0),
        ("port", "65535", 65535),
        ("base_url", "https://reviews.example/shop/", "https://reviews.example/shop"),
        ("base_url", "http://[::1]:8080/X/", "http://[::1]:8080/X"),
        ("uds", "/run/reviewsd.sock", Path("/run/reviewsd.sock")),
        ("reload_interval", "9999999.999", 9999999.999),
        ("hub_retry_delays", "0.5 , 3600", (0.5, 3600)),
        ("hub_workers", "1", 1),
        ("hub_workers", "999999999", 999999999),
        ("allowed_origin", "https://a.example, http://localhost:3000,", ORIGINS),
        (
            "allowed_origin",
            "*,null,coap+tcp://a-b.c",
            frozenset({"*", "null", "coap+tcp://a-b.c"}),
        ),
        ("log_level", "DEBUG", "debug"),
        ("hub_lease_min", "864000", 864_000),
        ("hub_lease_max", "864000", 864_000),
        *[("no_hub", text, True) for text in ("on", "yes", "TRUE", "1")],
        *[("no_hub", text, False) for text in ("off", "no", "false", "0", "")],
    ],
)
def test_a_text_becomes_the_value_that_it_names(
    name: str, text: str, value: object
) -> None:
    assert getattr(read_settings({}, {variable_name(name): text})[0], name) == value


def test_flags_are_repeatable_or_have_no_value() -> None:
    flags = [part for origin in ORIGINS for part in ("--allowed-origin", origin)]
    chosen = vars(parser().parse_args([*flags, "--no-hub"]))
    settings, sources = read_settings(chosen, {"REVIEWSD_NO_HUB": "off"})
    assert (settings.allowed_origin, settings.no_hub, sources["no_hub"]) == (
        ORIGINS,
        True,
        "--no-hub",
    )


HELP = """\
  --port X port to listen on; 0 picks a free one and prints it (default 8080, REVIEWSD_PORT)
  --uds X path of a Unix socket to listen on, instead of a port (REVIEWSD_UDS)
  --state-dir X directory of the hub's store; systemd sets it \
(default state, REVIEWSD_STATE_DIR or STATE_DIRECTORY)
  --access-log log one line for each request, whatever the log level (REVIEWSD_ACCESS_LOG)"""


def test_the_help_of_a_flag_names_its_default_and_its_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    lines = {
        f"  {' '.join(line.split())}" for line in parser().format_help().splitlines()
    }
    assert set(HELP.splitlines()) <= lines


def test_the_state_directory_of_systemd_is_the_default() -> None:
    systemd = {"STATE_DIRECTORY": "/var/lib/reviewsd"}
    settings, sources = read_settings({}, systemd)
    assert (settings.state_dir, sources["state_dir"]) == (
        Path("/var/lib/reviewsd"),
        "STATE_DIRECTORY",
    )
    chosen = systemd | {"REVIEWSD_STATE_DIR": "/srv"}
    assert read_settings({}, chosen)[0].state_dir == Path("/srv")


def test_the_listing_has_values_as_they_are_set_and_unknown_variables() -> None:
    chosen = Settings(
        no_hub=True, hub_retry_delays=(60.0, 0.5), allowed_origin=frozenset("ba")
    )
    environ = dict.fromkeys(("REVIEWSD_X", "REVIEWSD_", "REVIEWSD_PORT", "HOME"), "x")
    sources = dict.fromkeys(
        ("no_hub", "access_log", "uds", "hub_retry_delays", "allowed_origin"), "flag"
    )
    assert list(listing(chosen, sources | {"port": "default"}, environ)) == [
        "\nSettings:",
        "  --no-hub on (flag)",
        "  --access-log off (flag)",
        "  --uds  (flag)",
        "  --hub-retry-delays 60,0.5 (flag)",
        "  --allowed-origin a,b (flag)",
        "  --port 8080 (default)",
        *(
            f"warning: {name} is not the variable of a setting"
            for name in ("REVIEWSD_", "REVIEWSD_X")
        ),
    ]


def test_the_text_of_a_default_is_parsed_as_the_default() -> None:
    settings, _ = read_settings({}, {})
    texts = {name: setting_text(getattr(settings, name)) for name in Settings.__slots__}
    assert (
        read_settings({name: text or None for name, text in texts.items()}, {})[0]
        == settings
    )
