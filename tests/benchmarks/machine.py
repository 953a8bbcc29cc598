"""The machine that figures were measured on: others that use it change what a clock shows, and no figure says it alone."""

from __future__ import annotations

import os


def machine() -> dict[str, float]:
    """Return the number of cores, and the load average of the last minute: above the cores, others were waited for."""
    return {"cores": len(os.sched_getaffinity(0)), "load_average": round(os.getloadavg()[0], 1)}
