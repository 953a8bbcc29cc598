"""`python -m bot`, installed as `plumbline`."""

from bot.loading import loading


def main() -> None:
    """The console script."""
    with loading():
        from bot.cli import main as command_line
    command_line()


if __name__ == "__main__":
    main()
