"""The finding of a check of `plumbline doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import aiohttp

from adapters.http import CHAT, HttpAnswer, exchange


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A check result. `remedy` says what to do, empty if all is well; a `fatal` finding makes the exit code 1."""

    what: str
    result: str
    remedy: str = ""
    fatal: bool = True

    @property
    def well(self) -> bool:
        return not self.remedy


async def probe(session: aiohttp.ClientSession, address: str, **options: Any) -> HttpAnswer:
    """Post to a public address of the bot and return the answer. Raises ChatUnavailable if there is none."""
    return await exchange(session, "POST", address, system="The address", errors=CHAT, seconds=5.0, **options)
