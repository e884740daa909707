"""The security headers of pages, frame and badge: what browsers may do with them."""

import base64
import hashlib
import re

import pytest
from lab.page_samples import TEMPLATES

from reviewslib import links
from reviewslib.web.policies import content_policy, policies_by_path

SENT = {path: dict(headers) for path, headers in policies_by_path(TEMPLATES).items()}
STYLES = {links.HOME_PATH: "style", links.EMBED_PATH: "embed_style"}


@pytest.mark.parametrize("path", STYLES)
def test_a_policy_allows_the_style_of_its_document_and_no_script(path: str) -> None:
    style = TEMPLATES.globals[STYLES[path]].encode()
    digest = base64.b64encode(hashlib.sha256(style).digest()).decode()

    policy = SENT[path]["Content-Security-Policy"].split("; ")

    assert policy[0] == "default-src 'none'"
    assert f"style-src 'sha256-{digest}'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert not [directive for directive in policy if "script-src" in directive]


@pytest.mark.parametrize("path", STYLES)
def test_a_style_sheet_loads_nothing_and_moves_nothing(path: str) -> None:
    style = TEMPLATES.globals[STYLES[path]]

    assert not re.search(r"url\(|@import|@font-face|transition|animation", style)


@pytest.mark.parametrize(
    ("path", "directives"),
    [
        (links.HOME_PATH, {"form-action 'self'", "frame-ancestors 'none'"}),
        (links.EMBED_PATH, {"form-action 'none'", "frame-ancestors *"}),
    ],
)
def test_pages_have_forms_and_no_frame_around_them_and_the_frame_the_reverse(
    path: str, directives: set[str]
) -> None:
    policy = set(SENT[path]["Content-Security-Policy"].split("; "))

    assert policy >= directives


def test_a_policy_names_no_other_host_and_no_base() -> None:
    name, policy = content_policy(style="", form_action="x", frame_ancestors="y")

    assert name == "Content-Security-Policy"
    assert policy == (
        "default-src 'none';"
        " style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=';"
        " img-src 'self'; connect-src 'self'; base-uri 'none'; form-action x;"
        " frame-ancestors y; require-trusted-types-for 'script'"
    )


@pytest.mark.parametrize("path", STYLES)
def test_other_sites_learn_the_host_alone(path: str) -> None:
    assert SENT[path]["Referrer-Policy"] == "strict-origin-when-cross-origin"


def test_a_page_shares_no_window() -> None:
    assert SENT[links.HOME_PATH]["Cross-Origin-Opener-Policy"] == "same-origin"


@pytest.mark.parametrize("path", [links.EMBED_PATH, links.BADGE_PATH])
def test_frame_and_badge_are_for_any_site(path: str) -> None:
    assert SENT[path]["Cross-Origin-Resource-Policy"] == "cross-origin"


def test_isolated_pages_may_show_the_frame() -> None:
    assert SENT[links.EMBED_PATH]["Cross-Origin-Embedder-Policy"] == "require-corp"
