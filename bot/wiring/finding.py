"""Findings of a check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One check. `mend` says what to do, empty if all is well; `fatal` findings make the exit code 1."""

    what: str
    result: str
    mend: str = ""
    fatal: bool = True

    @property
    def well(self) -> bool:
        return not self.mend
