"""The machine that figures were measured on: others that use it change what a clock shows, and no figure says it alone."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

QUIET = 3.0  # seconds of rest by which a process is taken to be idle


def machine() -> dict[str, float]:
    """Return the number of cores, and the load average of the last minute: above the cores, others were waited for."""
    return {"cores": len(os.sched_getaffinity(0)), "load_average": round(os.getloadavg()[0], 1)}


def cpu_seconds(pid: int) -> float:
    """Of a process, on all cores."""
    values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


async def rested(pid: int) -> None:
    """Until the process has used next to no processor for a while."""
    while True:
        before = cpu_seconds(pid)
        await asyncio.sleep(QUIET)
        if cpu_seconds(pid) - before < 0.05 * QUIET:
            return
