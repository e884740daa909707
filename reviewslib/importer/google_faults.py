"""Faults of an import from Google: one sentence each, with the way on.

No sentence has a key, a token, a request's address or a review's words. What Google
says itself is repeated for one status alone, since it has the address where to enable
an API. This module is pure.

Sections: the fault - statuses that end an import - what the owner has to settle.
"""

from __future__ import annotations

from reviewslib.dataset.strict_json import Object
from reviewslib.importer.texts import clean_line
from reviewslib.terminal import EXIT_BAD_DATA, EXIT_FAILURE, CommandFailed

# ---- The fault ----


class GoogleFault(CommandFailed):
    """Google gave no usable answer, so nothing is written."""


class NotFound(GoogleFault):
    """Google has no list at an address that it has named itself."""


def no_answer(reason: str) -> GoogleFault:
    """A fault that may be over at the next run."""
    return GoogleFault(reason, status=EXIT_FAILURE)


def to_be_settled(reason: str) -> GoogleFault:
    """A fault that stays until the owner does something."""
    return GoogleFault(reason, status=EXIT_BAD_DATA)


ODD_ANSWER = "if it stays so for a day, this program needs an update."


def odd_answer(what: str) -> GoogleFault:
    """An answer whose shape is not the documented one."""
    return no_answer(
        f"Google's answer has another shape than documented ({what}); {ODD_ANSWER}"
    )


# ---- Statuses that end an import ----

NOT_APPROVED = (
    "Google allows this project 0 requests a minute: access to the Business Profile API "
    "is not approved, or not yet; docs/google.md has the form and how long an answer "
    "takes."
)
THROTTLED = (
    "Google allows no more requests for now; run the command later. If no import has "
    "ever succeeded, access may not be approved yet: see docs/google.md."
)


def fault_of(status: int, error: Object) -> GoogleFault:
    """The sentence for a status that ends the import; `error` is Google's, or empty."""
    if status == 429:
        return (
            to_be_settled(NOT_APPROVED) if has_no_quota(error) else no_answer(THROTTLED)
        )
    if status >= 500:
        return no_answer(
            f"Google answers {status}, after repeated requests too; run the command later."
        )
    if status == 403:
        said = _sentence_of(error) or "it gives no reason"
        return to_be_settled(f"Google refuses access, and says: {said}")
    if status == 401:
        return to_be_settled(
            "Google does not accept the key: log in again with --google-login."
        )
    if status == 404:
        return NotFound(
            "Google answers 404 to a list of this account; run the command later."
        )
    return no_answer(f"Google answers {status}; run the command later.")


def has_no_quota(error: Object) -> bool:
    """Whether the limit that was passed is 0: access is not approved.

    Google's reference says only that the quota is 0 then. Answers that owners have
    published (2026-07, status 429) say it so, in an `ErrorInfo` of google.rpc.
    """
    details = error.get("details")
    if not isinstance(details, list):
        return False
    return any(_limit_in(detail) == "0" for detail in details)


def _limit_in(detail: object) -> object:
    metadata = detail.get("metadata") if isinstance(detail, dict) else None
    return metadata.get("quota_limit_value") if isinstance(metadata, dict) else None


# Google's sentences are short; what is longer would hide the rest of the output.
MAX_SENTENCE_CHARACTERS = 500


def _sentence_of(error: Object) -> str:
    message = error.get("message")
    if not isinstance(message, str):
        return ""
    return clean_line(message)[:MAX_SENTENCE_CHARACTERS]


# ---- What the owner has to settle ----


def no_locations() -> GoogleFault:
    """The account has no profile."""
    return to_be_settled(
        "The account manages no location; log in with the account that owns or manages "
        "the profile."
    )


def none_verified() -> GoogleFault:
    """The account has profiles, and Google says of each that nobody has verified it."""
    return to_be_settled(
        "No location of the account is verified, and Google lists reviews of verified "
        "ones only: verify the profile, and run the command again."
    )


def no_reviews_of(location: str) -> GoogleFault:
    """Google has no list of reviews for a location that its account has."""
    return to_be_settled(
        f"Google has no list of reviews for location {location}: it is gone, or not "
        "verified. If it was imported before, run the command again; if that does not "
        "help, choose again with --location."
    )


def key_has_ended() -> GoogleFault:
    """The refresh token is no longer worth anything (RFC 6749, section 5.2)."""
    return to_be_settled(
        "Google says that the key has ended or was revoked: log in again with "
        "--google-login; if this happens every week, set the consent screen of the "
        'project "in production".'
    )
