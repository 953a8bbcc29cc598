"""`maintenance …`: what people say to keep Plumbline quiet about a service for a while."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

LONGEST = timedelta(days=14)
MAX_REASON = 200  # characters that are kept

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_WORDS = re.compile(
    r"\s*+(?:(?P<ended>end)\s++(?P<over>\S{1,200})"
    r"|(?P<service>\S{1,200})\s++(?P<count>\d{1,5})\s*+(?P<unit>[mhd])(?:in(?:utes?)?|ours?|ays?)?\b[\s,:.–-]*+(?P<reason>.*))?\s*+",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class MaintenanceWish:
    """A request about maintenance. `service` is empty for a list of the windows; `length` is None to end the service's."""

    service: str = ""
    length: timedelta | None = None
    reason: str = ""


def read_maintenance(text: str) -> MaintenanceWish | None:
    """“payments 2h new ledger”, “end payments”, or nothing for a list; None for anything else.

    A window lasts at most LONGEST.
    """
    said = _WORDS.fullmatch(text)
    if said is None:
        return None
    if said["ended"]:
        return MaintenanceWish(said["over"])
    if not said["service"]:
        return MaintenanceWish()
    length = min(timedelta(**{_UNITS[said["unit"].lower()]: int(said["count"])}), LONGEST)
    if not length:
        return None
    return MaintenanceWish(said["service"], length, " ".join(said["reason"].split())[:MAX_REASON])
