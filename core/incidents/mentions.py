"""Find the service that a text is about."""

from __future__ import annotations

import re
from collections.abc import Iterable


def service_in(text: str, services: Iterable[str]) -> str:
    """Return the service that a text names first; empty if it names none.

    Of several that start at the same position the longest counts: `pg-booking`, not `pg`.
    """
    places = {service: place for service in services if (place := _place_of(service, text)) is not None}
    return min(places, key=lambda service: (places[service], -len(service), service), default="")


def _place_of(service: str, text: str) -> int | None:
    """Return the position of the first mention of a service, ignoring case; None if there is none.

    A part of a longer word, such as `till` in “until”, does not count, nor does the beginning of a host's name. Letters
    of scripts without spaces between words may be adjacent.
    """
    match = re.search(rf"(?<![^\W_]){re.escape(service)}(?![^\W_]|\.[\w-]+\.)", text, re.IGNORECASE | re.ASCII)
    return match.start() if match else None
