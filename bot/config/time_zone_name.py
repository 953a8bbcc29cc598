"""A validated time zone name."""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator


def _known(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{name} is no time zone, such as Europe/Berlin") from error
    return name


TimeZoneName = Annotated[str, AfterValidator(_known)]
"""An IANA time zone name."""
