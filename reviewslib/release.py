"""What this release of the program is and speaks: told in greetings, cards and logs.

This module knows nothing else.
"""

from __future__ import annotations

VERSION = "1.0.0"

# Revisions of the Model Context Protocol, newest first. In the stateless era every
# request claims its revision; in the initialize era a client begins with a handshake.
STATELESS_VERSIONS = ("2026-07-28",)
# Batches, which the oldest allows, are not served: no client sends them.
INITIALIZE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
SERVED_VERSIONS = STATELESS_VERSIONS + INITIALIZE_VERSIONS
