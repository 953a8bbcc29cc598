"""HMAC signatures of request bodies in a header."""

from __future__ import annotations

import hashlib
import hmac


def matches(given: str, body: bytes, secret: str) -> bool:
    """Return whether `given` is the hexadecimal HMAC-SHA256 of the body, in constant time."""
    expected = hmac.new(secret.encode(errors="surrogateescape"), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(given.strip().encode(errors="surrogateescape"), expected.encode())
