"""`python -m bot`, installed as `plumbline`."""

from bot.cli import main

if __name__ == "__main__":
    main()
