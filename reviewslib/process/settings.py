"""Settings: what an operator can choose, declared once.

Flags, environment variables, help and the listing of `--check` are derived from the
fields of `Settings`. This module parses strings; it must not know a file, a socket or
another module of the program.

Sections: parsers of values - settings - flags and variables - listing.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class BadSetting(ValueError):
    """An invalid setting; the text has its name, its value and what is expected."""


# ---- Parsers of values: they raise BadSetting ----

LOG_LEVELS = ("debug", "info", "warning", "error")
ON = ("on", "yes", "true", "1")
OFF = ("off", "no", "false", "0")
# As browsers send it (RFC 6454 section 6.2); `*` for all.
ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#,\s]+")
# No character of a URL (RFC 3986 section 2), or one that ends a URL in a `Link` field.
NOT_IN_URL = re.compile(r"[^!-~]|[<>\"\\]")


def _port(text: str) -> int:
    if not re.fullmatch("[0-9]{1,5}", text) or int(text) > 65535:
        raise BadSetting(f"{text!r} is not a port: expected 0 to 65535")
    return int(text)


def _base_url(text: str) -> str:
    """An absolute http(s) URL without query, fragment and trailing slash."""
    if NOT_IN_URL.search(text) or not _is_web_address(text):
        expected = "expected for example https://reviews.example.com"
        raise BadSetting(f"{text!r} is not a base URL: {expected}")
    return text.rstrip("/")


def _is_web_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        # The property raises ValueError for an invalid port.
        parts.port  # noqa: B018
    except ValueError:
        return False
    if parts.query or parts.fragment:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _seconds(text: str) -> float:
    # The digits bound the value: ten million seconds are four months.
    if not re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,3})?", text) or float(text) == 0:
        expected = "expected for example 2 or 0.5"
        raise BadSetting(f"{text!r} is not a number of seconds: {expected}")
    return float(text)


def _count(text: str) -> int:
    # The digits bound the value: lengths of leases become moments.
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) == 0:
        raise BadSetting(f"{text!r} is not a number: expected 1 or more")
    return int(text)


def _delays(text: str) -> tuple[float, ...]:
    parts = text.split(",")
    if len(parts) != 2:
        raise BadSetting(f"{text!r} is not two delays: expected for example 60,3600")
    return tuple(_seconds(part.strip()) for part in parts)


def _switch(text: str) -> bool:
    word = text.lower()
    if word not in ON + OFF:
        words = ", ".join(ON + OFF)
        raise BadSetting(f"{text!r} is neither on nor off: expected one of {words}")
    return word in ON


def _origins(text: str) -> frozenset[str]:
    """Comma-separated origins."""
    parts = [part.strip() for part in text.split(",")]
    origins = [part for part in parts if part]
    for origin in origins:
        if not ORIGIN.fullmatch(origin):
            expected = "expected for example https://app.example.com, or *"
            raise BadSetting(f"{origin!r} is not an origin: {expected}")
    return frozenset(origins)


def _log_level(text: str) -> str:
    level = text.lower()
    if level not in LOG_LEVELS:
        levels = ", ".join(LOG_LEVELS)
        raise BadSetting(f"{text!r} is not a log level: expected one of {levels}")
    return level


# ---- Settings ----

# Arguments of `add_argument` by parser: what the help calls a value; `str` is that of
# the host alone. A flag of origins is repeatable, that of a switch takes no value.
FLAG_ARGUMENTS: dict[Callable[[str], Any], dict[str, Any]] = {
    str: {"metavar": "ADDRESS"},
    Path: {"metavar": "PATH"},
    _port: {"metavar": "PORT"},
    _base_url: {"metavar": "URL"},
    _seconds: {"metavar": "SECONDS"},
    _count: {"metavar": "N"},
    _delays: {"metavar": "SECONDS,SECONDS"},
    _log_level: {"metavar": "LEVEL"},
    _origins: {"metavar": "ORIGIN", "action": "append"},
    _switch: {"action": "store_const", "const": "on"},
}


def _setting(default: Any, description: str, parse: Callable[[str], Any] = str) -> Any:
    return field(default=default, metadata={"description": description, "parse": parse})


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings.

    The field `base_url`, for example, has the flag --base-url and REVIEWSD_BASE_URL.
    """

    host: str = _setting("127.0.0.1", "IP address to listen on")
    port: int = _setting(
        8080, "port to listen on; 0 picks a free one and prints it", _port
    )
    uds: Path | None = _setting(
        None, "path of a Unix socket to listen on, instead of a port", Path
    )
    base_url: str = _setting(
        "", "public URL; default http://HOST:PORT, none for --uds or 0.0.0.0", _base_url
    )
    data: Path = _setting(
        Path("data"), "directory of reviews.json and insights.json", Path
    )
    state_dir: Path = _setting(
        Path("state"), "directory of the hub's store; systemd sets it", Path
    )
    max_connections: int = _setting(
        1000, "concurrent connections; further ones wait", _count
    )
    reload_interval: float = _setting(
        2.0, "seconds between two polls of the data files", _seconds
    )
    log_level: str = _setting("info", f"log level: {', '.join(LOG_LEVELS)}", _log_level)
    access_log: bool = _setting(
        False, "log one line for each request, whatever the log level", _switch
    )
    allowed_origin: frozenset[str] = _setting(
        frozenset(),
        "origin whose web pages may call /mcp; repeatable; * for all",
        _origins,
    )
    no_hub: bool = _setting(
        False, "run no hub; another instance with the same base URL runs it", _switch
    )
    hub_lease_seconds: int = _setting(864_000, "default lease, in seconds", _count)
    hub_lease_min: int = _setting(3600, "shortest lease, in seconds", _count)
    hub_lease_max: int = _setting(2_592_000, "longest lease, in seconds", _count)
    hub_retry_delays: tuple[float, ...] = _setting(
        (60.0, 3600.0),
        "seconds before the first and the second retry of a delivery",
        _delays,
    )
    hub_timeout: float = _setting(10.0, "seconds that a delivery may take", _seconds)
    hub_workers: int = _setting(
        64, "concurrent deliveries, and as many verifications", _count
    )
    hub_max_subscriptions: int = _setting(
        10_000, "maximum number of subscriptions", _count
    )
    hub_ca_file: Path | None = _setting(
        None, "additional CA certificates for callbacks; for tests", Path
    )
    hub_allow_private: bool = _setting(
        False, "allow callbacks at any address and port; for tests only", _switch
    )

    def __post_init__(self) -> None:
        """Raise BadSetting for settings that conflict."""
        names = ("hub_lease_min", "hub_lease_seconds", "hub_lease_max")
        seconds = [getattr(self, name) for name in names]
        if seconds == sorted(seconds):
            return
        flags = ", ".join(
            f"{flag_name(name)} {value}"
            for name, value in zip(names, seconds, strict=True)
        )
        raise BadSetting(f"{flags}: none may be more than the next one")


def flag_name(name: str) -> str:
    """The command line flag of a setting."""
    return "--" + name.replace("_", "-")


def variable_name(name: str) -> str:
    """The environment variable of a setting."""
    return "REVIEWSD_" + name.upper()


def variable_names(name: str) -> tuple[str, ...]:
    """The environment variables of a setting, the one that wins first."""
    if name == "state_dir":
        # systemd.exec(5)
        return (variable_name(name), "STATE_DIRECTORY")
    return (variable_name(name),)


def setting_text(value: Any) -> str:
    """The value of a setting as an operator writes it."""
    match value:
        case None:
            return ""
        case bool():
            return "on" if value else "off"
        case frozenset():
            return ",".join(sorted(value))
        case tuple():
            return ",".join(map(setting_text, value))
        case float():
            return f"{value:g}"
        case _:
            return str(value)


# ---- Flags and variables ----

DEFAULT = "default"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every setting; its help has the default and the variable."""
    for setting in fields(Settings):
        arguments = FLAG_ARGUMENTS[setting.metadata["parse"]]
        parser.add_argument(
            flag_name(setting.name), help=_flag_help(setting), **arguments
        )


def _flag_help(setting: Field[Any]) -> str:
    origins = [" or ".join(variable_names(setting.name))]
    if setting.default:
        origins.insert(0, f"default {setting_text(setting.default)}")
    return f"{setting.metadata['description']} ({', '.join(origins)})"


def read_settings(
    flags: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[Settings, dict[str, str]]:
    """The settings, and the source of every value: a flag, a variable, or DEFAULT.

    A flag wins over a variable. An empty variable counts as absent, and so does a flag
    with the value None; an empty flag is an error. The values of a repeated flag are
    joined by commas, as in a variable. Raises BadSetting.
    """
    values: dict[str, Any] = {}
    sources = {}
    for setting in fields(Settings):
        source, text = _given(setting.name, flags, environ)
        sources[setting.name] = source
        if text is not None:
            values[setting.name] = _parsed(setting, source, text)
    return Settings(**values), sources


def _given(
    name: str, flags: Mapping[str, Any], environ: Mapping[str, str]
) -> tuple[str, str | None]:
    """Where a setting is given, and its text; DEFAULT and None if it is not."""
    flag = flags.get(name)
    if isinstance(flag, list):
        return flag_name(name), ",".join(flag)
    if flag is not None:
        return flag_name(name), flag
    for variable in variable_names(name):
        if environ.get(variable):
            return variable, environ[variable]
    return DEFAULT, None


def _parsed(setting: Field[Any], source: str, text: str) -> Any:
    if not text:
        raise BadSetting(f"{source}: a value is missing")
    try:
        return setting.metadata["parse"](text)
    except BadSetting as bad:
        raise BadSetting(f"{source}: {bad}") from None


# ---- Listing ----


def listing(
    settings: Settings, sources: Mapping[str, str], environ: Mapping[str, str]
) -> Iterator[str]:
    """Lines that list the settings with their sources.

    A warning names each variable that belongs to no setting.
    """
    yield "\nSettings:"
    for name, source in sources.items():
        yield f"  {flag_name(name)} {setting_text(getattr(settings, name))} ({source})"
    for stray in stray_variables(environ):
        yield f"warning: {stray}"


def stray_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """A line for each variable that is named like ours and belongs to no setting."""
    prefix = variable_name("")
    known = [variable_name(setting.name)[len(prefix) :] for setting in fields(Settings)]
    for variable in sorted(environ):
        name = variable.removeprefix(prefix)
        if name == variable or name in known:
            continue
        line = f"{variable} is not the variable of a setting"
        for similar in get_close_matches(name, known, n=1):
            line += f"; did you mean {prefix}{similar}?"
        yield line
