"""Writes the figures of a measure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_json(figures: Mapping[str, Any], path: Path | None) -> None:
    """Write the figures to `path` as indented JSON; does nothing without one."""
    if path is not None:
        path.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
