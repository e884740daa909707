"""The login at Google: a browser, a port of this machine, and a key file."""

import json
import stat
import threading
from base64 import urlsafe_b64encode
from hashlib import sha256
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen

import pytest
from lab.google_lab import CLIENT, REFRESH_TOKEN, SECRET, TOKEN

from reviewslib.importer.google_faults import GoogleFault
from reviewslib.importer.google_key import LOGIN_SECONDS, GoogleKey, log_in, read_key


class Browser:
    """Follows the redirect of a consent page with these fields, after some others."""

    def __init__(self, *answers):
        self.answers = answers
        self.asked = dict[str, list[str]]()
        self.statuses = list[int]()
        self._thread = threading.Thread(target=self._follow)

    def open(self, address: str) -> None:
        self.asked = parse_qs(urlsplit(address).query)
        self._thread.start()

    def _follow(self) -> None:
        for answer in self.answers:
            fields = {"state": self.asked["state"][0]} | answer
            url = f"{self.asked['redirect_uri'][0]}/?{urlencode(fields)}"
            try:
                with urlopen(url, timeout=10) as response:
                    self.statuses.append(response.status)
            except HTTPError as error:
                with error:
                    self.statuses.append(error.code)

    def close(self) -> None:
        self._thread.join()


@pytest.fixture
def client(tmp_path, google):
    installed = {
        "client_id": "client-id",
        "client_secret": SECRET,
        "token_uri": google.endpoints.token,
    }
    path = tmp_path / "client.json"
    path.write_text(json.dumps({"installed": installed}))
    return path


def logged_in(client, google, browser):
    """The key file of a login, and what was said."""
    key_file = client.with_name("google.json")
    said = list[str]()

    def say(*lines: str) -> None:
        said.extend(lines)

    try:
        log_in(client, key_file, google.endpoints, say, browser.open)
    finally:
        browser.close()
    return key_file, "\n".join(said)


def test_a_login_writes_a_key_that_only_its_owner_can_read(client, google):
    # given
    browser = Browser({"code": "4/code"})
    # when
    key_file, _ = logged_in(client, google, browser)
    # then
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    key = GoogleKey("client-id", SECRET, REFRESH_TOKEN)
    assert read_key(key_file, google.endpoints) == key


def test_the_code_is_proved_by_its_verifier(client, google):
    # given
    browser = Browser({"code": "4/code"})
    # when
    logged_in(client, google, browser)
    # then
    (request,) = google.requests
    fields = parse_qs(request.partition("/token ")[2])
    digest = sha256(fields["code_verifier"][0].encode()).digest()
    challenge = urlsafe_b64encode(digest).decode().rstrip("=")
    assert browser.asked["code_challenge"] == [challenge]
    assert fields["code"] == ["4/code"]


def test_a_request_with_another_state_is_no_login(client, google):
    # given
    browser = Browser({"state": "other", "code": "evil"}, {"code": "4/code"})
    # when
    logged_in(client, google, browser)
    # then
    assert browser.statuses == [404, 200]
    assert "evil" not in google.requests[0]


def test_a_refusal_in_the_browser_is_a_sentence(client, google):
    # given
    browser = Browser({"error": "access_denied"})
    # when, then
    with pytest.raises(GoogleFault, match="refused in the browser"):
        logged_in(client, google, browser)


def test_a_login_waits_for_a_browser_for_ten_minutes():
    assert LOGIN_SECONDS == 600


def test_a_login_without_an_answer_ends_without_a_key_file(client, google):
    # given
    key_file = client.with_name("google.json")
    # when, then
    with pytest.raises(GoogleFault, match="Nobody logged in"):
        log_in(client, key_file, google.endpoints, str, str, patience_seconds=0.01)
    assert not key_file.exists()


@pytest.mark.parametrize(
    "installed",
    [
        pytest.param(None, id="of another type"),
        pytest.param([], id="no object"),
        pytest.param({"client_secret": SECRET}, id="without an id"),
        pytest.param({"client_id": CLIENT, "client_secret": ""}, id="empty secret"),
        pytest.param({"client_id": CLIENT, "client_secret": 5}, id="no text"),
    ],
)
def test_a_client_of_another_type_is_refused_before_the_browser_opens(
    client, google, installed
):
    # given
    client.write_text(json.dumps({"installed": installed}))
    opened = list[str]()
    # when, then
    with pytest.raises(GoogleFault, match="Desktop app"):
        log_in(client, client, google.endpoints, str, opened.append)
    assert opened == []


def test_a_client_with_another_token_address_is_refused(client, google):
    # given
    installed = json.loads(client.read_text())["installed"]
    installed["token_uri"] = "https://evil.example/token"
    client.write_text(json.dumps({"installed": installed}))
    # when, then
    with pytest.raises(GoogleFault, match="token_uri"):
        log_in(client, client, google.endpoints, str, str)


def test_a_browser_that_runs_until_it_is_closed_gets_its_answer(client, google):
    # given
    browser = Browser({"code": "4/code"})

    def open_and_wait(address: str) -> None:
        browser.open(address)
        browser.close()

    key_file = client.with_name("google.json")
    # when
    log_in(client, key_file, google.endpoints, str, open_and_wait)
    # then
    browser.close()
    assert browser.statuses == [200]


def test_a_machine_without_a_browser_is_told_the_way_on(client, google):
    # given
    browser = Browser({"code": "4/code"})
    # when
    _, said = logged_in(client, google, browser)
    # then
    assert f"{google.url}/consent?" in said
    assert "copy google.json" in said
    for secret in (SECRET, TOKEN, REFRESH_TOKEN):
        assert secret not in said


def test_the_credentials_file_of_gcloud_is_read_as_a_key(tmp_path, google):
    # given
    path = tmp_path / "adc.json"
    names = {"client_id": "a", "client_secret": "b", "refresh_token": "c"}
    path.write_text(json.dumps({"type": "authorized_user", "account": ""} | names))
    # when
    key = read_key(path, google.endpoints)
    # then
    assert key == GoogleKey("a", "b", "c")


def test_a_key_shows_nothing_in_a_traceback():
    # given
    key = GoogleKey("a", SECRET, REFRESH_TOKEN)
    # when
    shown = repr(key)
    # then
    assert SECRET not in shown
    assert REFRESH_TOKEN not in shown
