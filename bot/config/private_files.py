"""Rights on the files of the workspace, which are for the bot's user alone."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

OTHERS = 0o077
PRIVATE = ("*.sqlite*", "*.npz", "index")


def keep_private(folder: Path) -> list[Path]:
    """Take the rights of other users from the data folder and its files. Returns those that keep such rights."""
    paths = [path for path in (folder, *(path for name in PRIVATE for path in folder.glob(name))) if path.exists()]
    for path in paths:
        with suppress(OSError):  # somebody else's, for example the root of a mounted volume
            path.chmod(path.stat().st_mode & ~OTHERS & 0o777)
    return [path for path in paths if path.exists() and path.stat().st_mode & OTHERS]
