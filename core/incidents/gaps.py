"""Count what the investigations could not read, by tool."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from core.model.incident import GapReason, Incident


@dataclass(frozen=True, slots=True)
class ToolGaps:
    """The number of incidents in which a tool could not be read, and the reasons, most frequent first."""

    tool: str
    incidents: int
    reasons: tuple[tuple[GapReason, int], ...]

    @property
    def text(self) -> str:
        """Return “timed out 2, access refused 1”."""
        return ", ".join(f"{reason} {count}" for reason, count in self.reasons)


def gaps_by_tool(incidents: Iterable[Incident]) -> list[ToolGaps]:
    """Return what could not be read in these incidents, the most frequent tool first."""
    reasons: defaultdict[str, Counter[GapReason]] = defaultdict(Counter)
    affected: Counter[str] = Counter()
    for incident in incidents:
        gaps = incident.explanation.gaps if incident.explanation is not None else ()
        affected.update({gap.tool for gap in gaps})
        for tool, reason in {(gap.tool, gap.reason) for gap in gaps}:
            reasons[tool][reason] += 1
    return [ToolGaps(tool, count, tuple(reasons[tool].most_common())) for tool, count in affected.most_common()]
