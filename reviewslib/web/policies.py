"""What browsers may do with a page, the frame and the badge: their security headers.

This module must not know requests or data.
"""

from __future__ import annotations

import base64
import hashlib

from jinja2 import Environment

from reviewslib import links
from reviewslib.messages import Headers

# Another website learns the host of a page alone, not what was searched for there.
REFERRER = ("Referrer-Policy", "strict-origin-when-cross-origin")
ANY_SITE = ("Cross-Origin-Resource-Policy", "cross-origin")
# The frame loads nothing from elsewhere; pages that are isolated (`require-corp` or
# `credentialless`) show only frames that say so themselves.
ISOLATED = ("Cross-Origin-Embedder-Policy", "require-corp")
# Windows that a page opens cannot reach back into it.
OWN_WINDOW = ("Cross-Origin-Opener-Policy", "same-origin")


def policies_by_path(templates: Environment) -> dict[str, Headers]:
    """The headers of the paths that have some; HOME_PATH's apply to all pages."""
    return {
        links.HOME_PATH: page_headers(templates),
        links.EMBED_PATH: frame_headers(templates),
        links.BADGE_PATH: (ANY_SITE,),
    }


def page_headers(templates: Environment) -> Headers:
    """The policies of a page, which no other page may embed."""
    policy = content_policy(
        style=str(templates.globals["style"]),
        form_action="'self'",
        frame_ancestors="'none'",
    )
    return policy, OWN_WINDOW, REFERRER


def frame_headers(templates: Environment) -> Headers:
    """The policies of the frame, which any page may embed."""
    policy = content_policy(
        style=str(templates.globals["embed_style"]),
        form_action="'none'",
        frame_ancestors="*",
    )
    return policy, REFERRER, ANY_SITE, ISOLATED


def content_policy(
    *, style: str, form_action: str, frame_ancestors: str
) -> tuple[str, str]:
    """The Content-Security-Policy of a document with this style sheet and no script."""
    digest = hashlib.sha256(style.encode()).digest()
    style_hash = base64.b64encode(digest).decode()
    directives = (
        "default-src 'none'",
        f"style-src 'sha256-{style_hash}'",
        "img-src 'self'",
        # Auditing tools fetch robots.txt from within the document.
        "connect-src 'self'",
        "base-uri 'none'",
        f"form-action {form_action}",
        f"frame-ancestors {frame_ancestors}",
        "require-trusted-types-for 'script'",
    )
    return "Content-Security-Policy", "; ".join(directives)
