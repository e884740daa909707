"""Settings come from flags, variables and defaults, in this order.

Invalid ones are refused with a reason.

Sections: where they come from - wrong values - conflicts - right values - flags - systemd
- the listing.
"""

import argparse
from pathlib import Path
from typing import Any

import pytest

from reviewslib.process.settings import (
    BadSetting,
    Settings,
    add_flags,
    flag_name,
    listing,
    read_settings,
    setting_text,
    stray_variables,
    variable_name,
)

# ---- Where they come from ----


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    add_flags(made)
    return made


def test_a_flag_wins_over_a_variable() -> None:
    settings, sources = read_settings({"port": "82"}, {"REVIEWSD_PORT": "81"})

    assert settings.port == 82
    assert sources["port"] == "--port"


def test_a_variable_wins_over_the_default() -> None:
    settings, sources = read_settings({"host": None}, {"REVIEWSD_HOST": "::1"})

    assert settings.host == "::1"
    assert sources["host"] == "REVIEWSD_HOST"


def test_an_empty_variable_counts_as_absent() -> None:
    settings, sources = read_settings({}, {"REVIEWSD_DATA": ""})

    assert settings.data == Path("data")
    assert sources["data"] == "default"


# ---- Wrong values ----

SECONDS = "a number of seconds: expected for example 2 or 0.5"
ORIGIN = "an origin: expected for example https://app.example.com, or *"
BASE_URL = "a base URL: expected for example https://reviews.example.com"
COUNT = "a number: expected 1 or more"
DELAYS = "two delays: expected for example 60,3600"
PORT = "a port: expected 0 to 65535"
LOG_LEVEL = "a log level: expected one of debug, info, warning, error"
WRONG_VALUES = [
    ("port", "http", PORT),
    ("port", "65536", PORT),
    ("port", "٣", PORT),
    ("port", "-1", PORT),
    ("port", "000080", PORT),
    ("base_url", "reviews.example", BASE_URL),
    ("base_url", "ftp://a.example", BASE_URL),
    ("base_url", "https://", BASE_URL),
    ("base_url", "https://a.example/?x", BASE_URL),
    ("base_url", "https://a.example/#x", BASE_URL),
    ("base_url", "https://a.example:port", BASE_URL),
    ("base_url", 'https://a.example/"', BASE_URL),
    ("base_url", "https://a.example/<b", BASE_URL),
    ("base_url", "https://a.example/>", BASE_URL),
    ("base_url", "https://a.example/\\", BASE_URL),
    ("base_url", "https://a b.example", BASE_URL),
    ("base_url", "https://bücher.example", BASE_URL),
    ("base_url", "https://[a", BASE_URL),
    ("reload_interval", "0.0", SECONDS),
    ("reload_interval", "-1", SECONDS),
    ("reload_interval", "0.0001", SECONDS),
    ("reload_interval", "12345678", SECONDS),
    ("hub_retry_delays", "60", DELAYS),
    ("hub_retry_delays", "1,2,3", DELAYS),
    ("hub_workers", "0", COUNT),
    ("hub_workers", "1.5", COUNT),
    ("hub_workers", "1234567890", COUNT),
    ("allowed_origin", "https://a.example/", ORIGIN),
    ("allowed_origin", "https://a?", ORIGIN),
    ("allowed_origin", "https://a#", ORIGIN),
    ("allowed_origin", "https://a b", ORIGIN),
    ("allowed_origin", "a.example", ORIGIN),
    ("allowed_origin", "1://a", ORIGIN),
    ("log_level", "loud", LOG_LEVEL),
]


def complaint(flags: dict[str, str], environ: dict[str, str]) -> str:
    """What the operator is told about wrong settings."""
    with pytest.raises(BadSetting) as caught:
        read_settings(flags, environ)
    return str(caught.value)


def names_of(rows: list[tuple[str, str, Any]]) -> list[str]:
    return [f"{name} {text}" for name, text, _ in rows]


@pytest.mark.parametrize(
    ("name", "text", "right"), WRONG_VALUES, ids=names_of(WRONG_VALUES)
)
def test_an_invalid_setting_is_named_with_an_example_of_a_valid_one(
    name: str, text: str, right: str
) -> None:
    of_flag = complaint({name: text}, {})
    of_variable = complaint({}, {variable_name(name): text})

    assert of_flag == f"{flag_name(name)}: {text!r} is not {right}"
    assert of_variable == f"{variable_name(name)}: {text!r} is not {right}"


@pytest.mark.parametrize(
    ("name", "text", "part", "right"),
    [
        pytest.param("allowed_origin", "null, x, y", "x", ORIGIN, id="of origins"),
        pytest.param("hub_retry_delays", "60,x", "x", SECONDS, id="of delays"),
    ],
)
def test_of_a_list_the_first_wrong_part_is_named(
    name: str, text: str, part: str, right: str
) -> None:
    told = complaint({name: text}, {})

    assert told == f"{flag_name(name)}: {part!r} is not {right}"


def test_a_switch_is_on_or_off() -> None:
    told = complaint({}, {"REVIEWSD_NO_HUB": "x"})

    words = "on, yes, true, 1, off, no, false, 0"
    assert told == (
        f"REVIEWSD_NO_HUB: 'x' is neither on nor off: expected one of {words}"
    )


def test_an_empty_flag_lacks_a_value() -> None:
    assert complaint({"state_dir": ""}, {}) == "--state-dir: a value is missing"


# ---- Conflicts ----

RULE = "none may be more than the next one"


@pytest.mark.parametrize(
    ("leases", "named"),
    [
        pytest.param(
            {"hub_lease_min": "9999999"},
            "--hub-lease-min 9999999, --hub-lease-seconds 864000,"
            " --hub-lease-max 2592000",
            id="shortest",
        ),
        pytest.param(
            {"hub_lease_seconds": "10"},
            "--hub-lease-min 3600, --hub-lease-seconds 10, --hub-lease-max 2592000",
            id="usual",
        ),
        pytest.param(
            {"hub_lease_max": "9999"},
            "--hub-lease-min 3600, --hub-lease-seconds 864000, --hub-lease-max 9999",
            id="longest",
        ),
    ],
)
def test_conflicting_leases_are_named_with_the_rule(
    leases: dict[str, str], named: str
) -> None:
    assert complaint(leases, {}) == f"{named}: {RULE}"


# ---- Right values ----

ORIGINS = frozenset({"https://a.example", "http://localhost:3000"})
OTHER_ORIGINS = frozenset({"*", "null", "coap+tcp://a-b.c"})
RIGHT_VALUES = [
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
    ("allowed_origin", "*,null,coap+tcp://a-b.c", OTHER_ORIGINS),
    ("log_level", "DEBUG", "debug"),
    ("hub_lease_min", "864000", 864_000),
    ("hub_lease_max", "864000", 864_000),
]


@pytest.mark.parametrize(
    ("name", "text", "value"), RIGHT_VALUES, ids=names_of(RIGHT_VALUES)
)
def test_a_text_becomes_the_value_that_it_names(
    name: str, text: str, value: object
) -> None:
    settings, _ = read_settings({}, {variable_name(name): text})

    assert getattr(settings, name) == value


@pytest.mark.parametrize("text", ["on", "yes", "TRUE", "1"])
def test_a_switch_is_turned_on(text: str) -> None:
    settings, _ = read_settings({}, {"REVIEWSD_NO_HUB": text})

    assert settings.no_hub is True


@pytest.mark.parametrize("text", ["off", "no", "false", "0", ""])
def test_a_switch_is_turned_off(text: str) -> None:
    settings, _ = read_settings({}, {"REVIEWSD_NO_HUB": text})

    assert settings.no_hub is False


# ---- Flags ----


def chosen_by(*arguments: str) -> dict[str, object]:
    """The flags that the parser finds in a command line."""
    return vars(parser().parse_args(arguments))


def test_a_flag_of_origins_is_repeatable() -> None:
    flags = [f"--allowed-origin={origin}" for origin in ORIGINS]

    settings, _ = read_settings(chosen_by(*flags), {})

    assert settings.allowed_origin == ORIGINS


def test_a_flag_of_a_switch_has_no_value_and_turns_it_on() -> None:
    settings, sources = read_settings(chosen_by("--no-hub"), {"REVIEWSD_NO_HUB": "off"})

    assert settings.no_hub
    assert sources["no_hub"] == "--no-hub"


HELP = [
    "--port PORT port to listen on; 0 picks a free one and prints it"
    " (default 8080, REVIEWSD_PORT)",
    "--uds PATH path of a Unix socket to listen on, instead of a port (REVIEWSD_UDS)",
    "--state-dir PATH directory of the hub's store; systemd sets it"
    " (default state, REVIEWSD_STATE_DIR or STATE_DIRECTORY)",
    "--access-log log one line for each request, whatever the log level"
    " (REVIEWSD_ACCESS_LOG)",
]


@pytest.mark.parametrize("help", HELP)
def test_the_help_of_a_flag_names_its_default_and_its_variables(
    monkeypatch: pytest.MonkeyPatch, help: str
) -> None:
    # Wide enough for a flag a line.
    monkeypatch.setenv("COLUMNS", "1000")

    lines = parser().format_help().splitlines()

    assert help in [" ".join(line.split()) for line in lines]


# ---- Systemd ----

SYSTEMD = {"STATE_DIRECTORY": "/var/lib/reviewsd"}


def test_the_state_directory_of_systemd_is_the_default() -> None:
    settings, sources = read_settings({}, SYSTEMD)

    assert settings.state_dir == Path("/var/lib/reviewsd")
    assert sources["state_dir"] == "STATE_DIRECTORY"


def test_a_chosen_state_directory_wins_over_that_of_systemd() -> None:
    settings, _ = read_settings({}, SYSTEMD | {"REVIEWSD_STATE_DIR": "/srv"})

    assert settings.state_dir == Path("/srv")


# ---- The listing ----


def test_the_listing_has_values_as_they_are_set_and_where() -> None:
    settings = Settings(
        no_hub=True, hub_retry_delays=(60.0, 0.5), allowed_origin=frozenset("ba")
    )
    sources = {
        "no_hub": "--no-hub",
        "access_log": "default",
        "uds": "default",
        "hub_retry_delays": "REVIEWSD_HUB_RETRY_DELAYS",
        "allowed_origin": "--allowed-origin",
    }

    lines = list(listing(settings, sources, {}))

    assert lines == [
        "\nSettings:",
        "  --no-hub on (--no-hub)",
        "  --access-log off (default)",
        "  --uds  (default)",
        "  --hub-retry-delays 60,0.5 (REVIEWSD_HUB_RETRY_DELAYS)",
        "  --allowed-origin a,b (--allowed-origin)",
    ]


def test_the_listing_warns_of_variables_that_belong_to_no_setting() -> None:
    names = ("REVIEWSD_X", "REVIEWSD_", "REVIEWSD_PORT", "HOME")

    lines = list(listing(Settings(), {"port": "default"}, dict.fromkeys(names, "x")))

    assert lines[2:] == [
        "warning: REVIEWSD_ is not the variable of a setting",
        "warning: REVIEWSD_X is not the variable of a setting",
    ]


def test_a_misspelt_variable_is_named_with_the_one_that_was_meant() -> None:
    lines = list(stray_variables({"REVIEWSD_BASEURL": "https://a.example"}))

    assert lines == [
        "REVIEWSD_BASEURL is not the variable of a setting; "
        "did you mean REVIEWSD_BASE_URL?"
    ]


def test_the_text_of_a_default_is_parsed_as_the_default() -> None:
    settings, _ = read_settings({}, {})
    texts = {name: setting_text(getattr(settings, name)) for name in Settings.__slots__}
    given = {name: text or None for name, text in texts.items()}

    again, _ = read_settings(given, {})

    assert again == settings
