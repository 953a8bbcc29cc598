"""Rights on the files of the workspace, which are for the bot's user alone."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE

OTHERS = 0o077
PRIVATE = ("*.sqlite*", "*.npz", "index")


def keep_private(folder: Path) -> list[Path]:
    """Take the rights of other users from the data folder and its files. Returns those that keep such rights."""
    paths = [path for path in (folder, *(path for name in PRIVATE for path in folder.glob(name))) if path.exists()]
    for path in paths:
        with suppress(OSError):  # somebody else's, for example the root of a mounted volume
            path.chmod(S_IMODE(path.stat().st_mode) & ~OTHERS)
    # The group of a mounted volume, which an administrator gave to the bot, is no other user.
    others = [(path, 0o007 if path.stat().st_gid == os.getegid() else OTHERS) for path in paths if path.exists()]
    return [path for path, rights in others if path.stat().st_mode & rights]
