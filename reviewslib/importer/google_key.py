"""The key to Google's API: an "authorized user" file, and the login that writes it.

The file has mode 0600, and what is in it stands in no message. The login is that of a
desktop client (RFC 8252, with PKCE of RFC 7636).

Sections: the file - the access token - the login.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import tempfile
import threading
import webbrowser
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from reviewslib import files
from reviewslib.dataset.strict_json import Json, NotJson, Object, decode
from reviewslib.importer.google_faults import (
    fault_of,
    key_has_ended,
    odd_answer,
    to_be_settled,
)
from reviewslib.importer.google_http import (
    Endpoints,
    GoogleResponse,
    Pacing,
    exchange_patiently,
)
from reviewslib.importer.google_shapes import object_of, text_in

# It can also write; this program only reads.
SCOPE = "https://www.googleapis.com/auth/business.manage"

# ---- The file ----


class GoogleKey(NamedTuple):
    """What a request for an access token needs."""

    client_id: str
    client_secret: str
    refresh_token: str

    def __repr__(self) -> str:
        return "GoogleKey(…)"


def read_key(path: Path, endpoints: Endpoints) -> GoogleKey:
    """The key in an "authorized user" file. Raises GoogleFault."""
    members = _object_in(path)
    texts = _texts_in(members, GoogleKey._fields)
    if texts is None:
        raise to_be_settled(
            f"{path}: not the key of an authorized user; write it with --google-login."
        )
    _check_token_address(path, members, endpoints)
    return GoogleKey(**texts)


def _check_token_address(path: Path, members: Object, endpoints: Endpoints) -> None:
    """Raises GoogleFault: a file with another address would carry the key there."""
    if members.get("token_uri", endpoints.token) != endpoints.token:
        raise to_be_settled(f"{path}: its token_uri is not the address of Google's.")


def _texts_in(holder: Json, names: Sequence[str]) -> dict[str, str] | None:
    """The texts of these names, None if one is absent, empty or no text."""
    if not isinstance(holder, dict):
        return None
    texts = dict[str, str]()
    for name in names:
        text = holder.get(name)
        if not isinstance(text, str) or not text:
            return None
        texts[name] = text
    return texts


def _object_in(path: Path) -> Object:
    """Raises GoogleFault."""
    try:
        document = decode(files.content_of(path) or b"")
    except OSError as error:
        raise to_be_settled(f"{path}: cannot be read: {error.strerror}.") from None
    except NotJson:
        document = None
    if not isinstance(document, dict):
        raise to_be_settled(f"{path}: there is no JSON object of Google's in it.")
    return document


def write_key(path: Path, key: GoogleKey, endpoints: Endpoints) -> None:
    """Write the key so that only its owner can read it, at no moment anybody else."""
    content = {"type": "authorized_user", **key._asdict(), "token_uri": endpoints.token}
    # mkstemp creates files with mode 0600.
    number, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(number, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(number)
    os.replace(draft, path)


# ---- The access token ----

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Access(NamedTuple):
    """What requests need for an hour, and when Google gave it."""

    token: str
    date: str  # the moment of Google's clock, in UTC, empty without one

    def __repr__(self) -> str:
        return "Access(…)"


def access_of(key: GoogleKey, endpoints: Endpoints, pacing: Pacing) -> Access:
    """A new access token. Raises GoogleFault."""
    fields = {"grant_type": "refresh_token", **key._asdict()}
    response = _ask_for_token(fields, endpoints, pacing)
    token = text_in(response.content, "access_token")
    # It becomes a header field. A message about another character would repeat it.
    if not token or not TOKEN_CHARACTERS.issuperset(token):
        raise odd_answer("access_token")
    return Access(token=token, date=response.date)


# Visible ASCII (RFC 6749, appendix A.12), without the blank.
TOKEN_CHARACTERS = frozenset(map(chr, range(0x21, 0x7F)))

# Errors of the token address are those of OAuth (RFC 6749, section 5.2).
ENDED = ("invalid_grant", "invalid_client")


def _ask_for_token(
    fields: Mapping[str, str], endpoints: Endpoints, pacing: Pacing
) -> GoogleResponse:
    """The token address's answer, whose content is an object. Raises GoogleFault."""
    body = urlencode(fields).encode()
    response = exchange_patiently(endpoints.token, FORM, pacing, body)
    if isinstance(response.content, dict) and response.content.get("error") in ENDED:
        raise key_has_ended()
    if response.status != 200:
        raise fault_of(response.status, response.error)
    return response._replace(content=object_of(response.content, "it"))


# ---- The login ----

DONE_PAGE = (
    b"<!doctype html><title>Login</title>"
    b"<p>You can close this page. The terminal says how it goes on."
)
NO_LOGIN_PAGE = b"<!doctype html><title>No login</title><p>This is not the login."

# What a browser without an answer may keep this command waiting.
LOGIN_SECONDS = 600


def log_in(
    client_file: Path,
    key_file: Path,
    endpoints: Endpoints,
    say: Callable[[str], None],
    open_browser: Callable[[str], object] = webbrowser.open,
    patience_seconds: float = LOGIN_SECONDS,
) -> None:
    """Let the owner log in with a browser; write the key file. Raises GoogleFault."""
    client = _desktop_client(client_file, endpoints)
    verifier = secrets.token_urlsafe(48)
    with _Loopback(secrets.token_urlsafe(24), patience_seconds) as loopback:
        address = _consent_address(client, verifier, loopback, endpoints)
        say("Log in with this address, in a browser on this machine:")
        say(f"  {address}")
        say(
            "If it has no browser, run this command on a laptop that has one, and copy "
            f"{key_file.name} to this machine."
        )
        # Some browsers run until they are closed, and this one waits for an answer.
        threading.Thread(target=open_browser, args=(address,), daemon=True).start()
        code = loopback.wait_for_code()
    proof = {
        "code": code,
        "code_verifier": verifier,
        "redirect_uri": loopback.url,
    }
    refresh_token = _refresh_token(client | proof, endpoints)
    write_key(key_file, GoogleKey(**client, refresh_token=refresh_token), endpoints)


def _refresh_token(fields: Mapping[str, str], endpoints: Endpoints) -> str:
    """What Google gives for the code of a login. Raises GoogleFault."""
    request = {"grant_type": "authorization_code", **fields}
    tokens = _ask_for_token(request, endpoints, Pacing()).content
    refresh_token = text_in(tokens, "refresh_token")
    if not refresh_token:
        raise odd_answer("no refresh_token")
    return refresh_token


def _desktop_client(path: Path, endpoints: Endpoints) -> dict[str, str]:
    """The id and the secret of a client of type "Desktop app". Raises GoogleFault."""
    client: Json = _object_in(path).get("installed")
    texts = _texts_in(client, ("client_id", "client_secret"))
    if not isinstance(client, dict) or texts is None:
        raise to_be_settled(
            f'{path}: not the JSON of an OAuth client of type "Desktop app".'
        )
    _check_token_address(path, client, endpoints)
    return texts


def _consent_address(
    client: Mapping[str, str],
    verifier: str,
    loopback: _Loopback,
    endpoints: Endpoints,
) -> str:
    challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    query = {
        "response_type": "code",
        "client_id": client["client_id"],
        "redirect_uri": loopback.url,
        "scope": SCOPE,
        "state": loopback.state,
        "code_challenge": challenge.decode().rstrip("="),
        "code_challenge_method": "S256",
        # Both: otherwise Google gives a refresh token at the first login only.
        "access_type": "offline",
        "prompt": "consent",
    }
    return f"{endpoints.consent}?{urlencode(query)}"


class _Loopback(HTTPServer):
    """Waits on a port of this machine for the browser that comes back with the code."""

    address_family = socket.AF_INET

    def __init__(self, state: str, patience_seconds: float):
        super().__init__(("127.0.0.1", 0), _Redirected)
        self.state = state
        self.timeout = patience_seconds
        self.answer: dict[str, list[str]] | None = None
        self.has_timed_out = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *details: object) -> None:
        """Say nothing of a browser that leaves early."""

    def handle_timeout(self) -> None:
        self.has_timed_out = True

    def wait_for_code(self) -> str:
        """Raises GoogleFault."""
        while self.answer is None:
            self.handle_request()
            if self.has_timed_out:
                raise to_be_settled("Nobody logged in; run the command again.")
        if "code" not in self.answer:
            raise to_be_settled("The login was refused in the browser; run it again.")
        return self.answer["code"][0]


class _Redirected(BaseHTTPRequestHandler):
    """One request of the browser."""

    server: _Loopback
    timeout = 10

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        state = query.get("state", [""])[0]
        # Another page that the browser shows may ask this port, too.
        is_ours = secrets.compare_digest(state.encode(), self.server.state.encode())
        if is_ours:
            self.server.answer = query
        self.send_response(200 if is_ours else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(DONE_PAGE if is_ours else NO_LOGIN_PAGE)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: the address has the code."""
