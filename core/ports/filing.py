"""The port of systems in which people file issues and postmortems."""

from __future__ import annotations

from typing import Protocol

from core.model.filing import Filed, Report


class Publisher(Protocol):
    """Writes reports into one target: a project of an issue tracker, a wiki space, or a repository.

    All methods raise Unavailable with a reason that a person understands.
    """

    @property
    def settles_after(self) -> float:
        """Return the seconds after which `find` sees what was written."""
        ...

    async def find(self, report: Report) -> Filed | None:
        """Return the report if an earlier attempt wrote it, recognised by its marker; None otherwise."""
        ...

    async def file(self, report: Report) -> Filed:
        """Write the report. After a failure it may be written or not: call `find` before the next attempt."""
        ...

    async def check(self) -> None:
        """Raise Unavailable if the token, its permissions, the target or the connection are wrong. Writes nothing."""
        ...
