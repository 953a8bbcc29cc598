"""The finding of a check of `plumbline doctor`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A check result. `mend` says what to do, empty if all is well; a `fatal` finding makes the exit code 1."""

    what: str
    result: str
    mend: str = ""
    fatal: bool = True

    @property
    def well(self) -> bool:
        return not self.mend
