"""Where a service's files lie under a folder."""

from __future__ import annotations

from pathlib import Path

from core.errors import ToolUnavailable


def files_of(root: Path, folder: str, service: str, suffix: str) -> list[Path]:
    """The files `<root>/**/<folder>/<service><suffix>`, in order of their paths.

    The service's name is compared and never made part of a path, so that an alert cannot point outside the root.
    Raises ToolUnavailable when the root cannot be listed.
    """
    if not root.is_dir():
        raise ToolUnavailable(f"The folder {root} does not exist: correct the path of this tool in plumbline.yaml.")
    return sorted(path for path in root.glob(f"**/{folder}/*{suffix}") if path.name == f"{service}{suffix}")
