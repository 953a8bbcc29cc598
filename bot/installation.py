"""The installed files of Plumbline. Its packages have plain names, which those of another distribution may have too."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

DISTRIBUTION = "plumbline-bot"


@contextmanager
def installation_checked() -> Generator[None]:
    """End the program with a sentence in place of a traceback if something fails because files were overwritten."""
    try:
        yield
    except Exception:
        if fault := overwritten():
            raise SystemExit(f"Plumbline cannot run: {fault}") from None
        raise


def overwritten() -> str:
    """Return which installed files are no longer those of Plumbline, and what to do; empty if all are, or in a checkout.

    Only files of packages count: who packs an installation anew rewrites or leaves out its scripts and metadata.
    """
    try:
        files = metadata.files(DISTRIBUTION) or ()
    except metadata.PackageNotFoundError:
        return ""
    changed = [
        each
        for each in files
        if each.parts[0].isidentifier() and each.size is not None and each.size != _size(Path(str(each.locate())))
    ]
    if not changed:
        return ""
    owners = metadata.packages_distributions()
    others = sorted({owner for file in changed for owner in owners.get(file.parts[0], ())} - {DISTRIBUTION})
    return (
        f"files are no longer its own, such as {changed[0]}. "
        f"{' and '.join(others)}{' has packages of the same name' if others else 'They were changed or removed'}. "
        f"Install {DISTRIBUTION} again, in an environment of its own (pipx install {DISTRIBUTION})."
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1
