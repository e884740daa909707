"""The settings: everything an operator can choose, declared once.

Flags, environment variables, help and the listing of `--check` all come from the fields of `Settings`. This
module reads texts into values; it knows no file, no socket and no other module of the program.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class BadSetting(ValueError):
    """A setting cannot be used; the text names it, the value and what would be right."""


# ---- Readers: from what an operator wrote to a value; each raises BadSetting ----

LOG_LEVELS = ("debug", "info", "warning", "error")
ON, OFF = ("on", "yes", "true", "1"), ("off", "no", "false", "0")
ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#,\s]+")


def _port(text: str) -> int:
    if not (re.fullmatch("[0-9]{1,5}", text) and int(text) <= 65535):
        raise BadSetting(f"{text!r} is not a port: expected 0 to 65535")
    return int(text)


def _base_url(text: str) -> str:
    """An absolute http(s) URL without query or fragment; a slash at its end is dropped."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
        parts.port  # noqa: B018 - the property raises ValueError for a port that is not a number
    except ValueError:
        usable = False
    if not usable or re.search(r"[^!-~]|[<>\"\\]", text):
        raise BadSetting(f"{text!r} is not a base URL: expected for example https://reviews.example.com")
    return text.rstrip("/")


def _seconds(text: str) -> float:
    if not (re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,3})?", text) and float(text) > 0):
        raise BadSetting(f"{text!r} is not a number of seconds: expected for example 2 or 0.5")
    return float(text)


def _count(text: str) -> int:
    if not (re.fullmatch("[0-9]{1,9}", text) and int(text) > 0):
        raise BadSetting(f"{text!r} is not a number: expected 1 or more")
    return int(text)


def _delays(text: str) -> tuple[float, ...]:
    return tuple(_seconds(part.strip()) for part in text.split(","))


def _switch(text: str) -> bool:
    if text.lower() not in ON + OFF:
        raise BadSetting(f"{text!r} is neither on nor off: expected one of {', '.join(ON + OFF)}")
    return text.lower() in ON


def _origins(text: str) -> frozenset[str]:
    """Origins as browsers send them (RFC 6454 section 6.2), with commas between; `*` for every one."""
    origins = [part.strip() for part in text.split(",") if part.strip()]
    if wrong := [origin for origin in origins if not ORIGIN.fullmatch(origin)]:
        raise BadSetting(f"{wrong[0]!r} is not an origin: expected for example https://app.example.com, or *")
    return frozenset(origins)


def _log_level(text: str) -> str:
    if text.lower() not in LOG_LEVELS:
        raise BadSetting(f"{text!r} is not a log level: expected one of {', '.join(LOG_LEVELS)}")
    return text.lower()


# ---- Settings ----

# Arguments of `add_argument` by reader: a list may be repeated, a switch takes no value.
FLAG_ARGUMENTS: dict[Callable[[str], Any], dict[str, Any]] = {
    _origins: {"metavar": "X", "action": "append"},
    _switch: {"action": "store_const", "const": "on"},
}


def _setting(default: Any, description: str, read: Callable[[str], Any] = str) -> Any:
    return field(default=default, metadata={"description": description, "read": read})


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything an operator can choose. A field `base_url` is the flag --base-url and REVIEWSD_BASE_URL."""

    host: str = _setting("127.0.0.1", "IP address to listen on")
    port: int = _setting(8080, "port to listen on; 0 picks a free one and prints it", _port)
    uds: Path | None = _setting(None, "path of a Unix socket to listen on instead", Path)
    base_url: str = _setting("", "public URL; default http://HOST:PORT, none for --uds or 0.0.0.0", _base_url)
    data: Path = _setting(Path("data"), "directory of reviews.json and insights.json", Path)
    state_dir: Path = _setting(Path("state"), "directory for what the service keeps; systemd names it", Path)
    max_connections: int = _setting(1000, "connections at the same time; others wait", _count)
    reload_interval: float = _setting(2.0, "seconds between two polls of the data files", _seconds)
    log_level: str = _setting("info", f"how much to log: {', '.join(LOG_LEVELS)}", _log_level)
    access_log: bool = _setting(False, "log one line for each request, whatever the log level", _switch)
    allowed_origin: frozenset[str] = _setting(
        frozenset(), "origin whose web pages may call /mcp; may be given more than once; * for all", _origins
    )
    no_hub: bool = _setting(
        False, "run no hub here: another instance at the same public address does", _switch
    )
    hub_lease_seconds: int = _setting(864_000, "default lease, in seconds", _count)
    hub_lease_min: int = _setting(3600, "shortest lease, in seconds", _count)
    hub_lease_max: int = _setting(2_592_000, "longest lease, in seconds", _count)
    hub_retry_delays: tuple[float, ...] = _setting(
        (60.0, 3600.0), "seconds before the second and the third try of a delivery", _delays
    )
    hub_timeout: float = _setting(10.0, "seconds that a delivery may take", _seconds)
    hub_workers: int = _setting(16, "deliveries at the same time", _count)
    hub_max_subscriptions: int = _setting(10_000, "subscriptions that are kept", _count)
    hub_ca_file: Path | None = _setting(None, "certificates to trust for callbacks, too; for labs", Path)
    hub_allow_private: bool = _setting(False, "call back at any address and port; for labs only", _switch)

    def __post_init__(self) -> None:
        """Raise BadSetting, which names all of them, when settings conflict."""
        least, most = self.hub_lease_min, self.hub_lease_max
        is_within = least <= self.hub_lease_seconds <= most
        within = f"a default lease from {least} to {most} would do"
        for is_wrong, names, would_do in (
            (least > most, "hub_lease_min hub_lease_max", "the first must be at most the second"),
            (not is_within, "hub_lease_seconds hub_lease_min hub_lease_max", within),
            (len(self.hub_retry_delays) != 2, "hub_retry_delays", "2 delays are needed, for example 60,3600"),
        ):
            if is_wrong:
                given = [f"{flag_name(name)} {setting_text(getattr(self, name))}" for name in names.split()]
                raise BadSetting(f"{', '.join(given)}: {would_do}")


def flag_name(name: str) -> str:
    """The command line flag of a setting."""
    return "--" + name.replace("_", "-")


def opposite_flag_name(name: str) -> str:
    """The flag that turns a switch off, for example --no-access-log or --hub."""
    return flag_name(name.removeprefix("no_") if name.startswith("no_") else f"no_{name}")


def variable_name(name: str) -> str:
    """The environment variable of a setting."""
    return "REVIEWSD_" + name.upper()


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """The environment variables that begin as those of settings do and belong to none."""
    known = {variable_name(declared.name) for declared in fields(Settings)}
    return sorted(name for name in environ if name.startswith(variable_name("")) and name not in known)


def _variable_names(name: str) -> list[str]:
    """The environment variables that are read for a setting, the one that wins first."""
    return [variable_name(name), *(["STATE_DIRECTORY"] if name == "state_dir" else [])]  # systemd.exec(5)


def setting_text(value: Any) -> str:
    """A setting's value as an operator would write it."""
    match value:
        case bool():
            return "on" if value else "off"
        case frozenset():
            return ",".join(sorted(value))
        case tuple():
            return ",".join(map(setting_text, value))
        case float():
            return f"{value:g}"
    return "" if value is None else str(value)


# ---- Reading ----


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Give `parser` a flag for each setting, and one more that turns a switch off.

    The help of a flag names the default and the variable.
    """
    for declared in fields(Settings):
        description, read = declared.metadata["description"], declared.metadata["read"]
        variables = " or ".join(_variable_names(declared.name))
        default = f"default {setting_text(declared.default)}, " if declared.default else ""
        arguments = FLAG_ARGUMENTS.get(read, {"metavar": "X"})
        parser.add_argument(
            flag_name(declared.name), help=f"{description} ({default}{variables})", **arguments
        )
        if read is _switch:
            opposite, help = opposite_flag_name(declared.name), f"the opposite of {flag_name(declared.name)}"
            parser.add_argument(opposite, dest=declared.name, action="store_const", const="off", help=help)


def read_settings(flags: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[Settings, dict[str, str]]:
    """The settings, and for each where it came from: a flag, else a variable, else the default.

    An empty variable is the same as an absent one; so is a flag with the value None. An empty flag is wrong.
    A list of texts, from a flag given more than once, reads as a variable does, with commas between. Raises
    BadSetting.
    """
    values: dict[str, Any] = {}
    sources = {}
    for declared in fields(Settings):
        name, flag = declared.name, flags.get(declared.name)
        texts = {flag_name(name): ",".join(flag) if isinstance(flag, list) else flag}
        texts |= {variable: environ.get(variable) or None for variable in _variable_names(name)}
        sources[name], text = next((item for item in texts.items() if item[1] is not None), ("default", None))
        if text == "":
            raise BadSetting(f"{sources[name]}: a value is missing")
        if text is not None:
            try:
                values[name] = declared.metadata["read"](text)
            except BadSetting as bad:
                raise BadSetting(f"{sources[name]}: {bad}") from None
    return Settings(**values), sources
