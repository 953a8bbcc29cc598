"""`python -m bot`, installed as `plumbline`."""

import codecs
import io
import sys

from bot.installation import installation_checked
from bot.quick_imports import quick_imports

PLAIN = dict(zip("●•·–—−×…→›“”‘’≥≤✓✗", "* * - - - - x ... -> > \" \" ' ' >= <= + x".split(), strict=True))


def main() -> None:
    """Run the command line."""
    write_plainly()
    with installation_checked():
        with quick_imports():
            from bot.cli import main as command_line
        command_line()


def write_plainly() -> None:
    """Replace characters that the encoding of standard output or standard error lacks with similar ones."""
    codecs.register_error("plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors != "plain":
            stream.reconfigure(errors="plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(PLAIN.get(character, "?") for character in error.object[error.start : error.end]), error.end


if __name__ == "__main__":
    main()
