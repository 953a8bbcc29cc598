"""Many cases of one property as one test, which says which of them fail: an item of pytest for each costs more than most cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

LONGEST = 300  # characters of a case in the message


def every_case(
    names: str | tuple[str, ...], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Return a decorator as `pytest.mark.parametrize` is, for a function that needs no fixture."""
    several = list(cases)
    assert several, "A property without a case says nothing."

    def decorate(holds: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            failures: list[Exception] = []
            for case in several:
                values = {names: case} if isinstance(names, str) else dict(zip(names, case, strict=True))
                try:
                    holds(**values)
                except Exception as error:  # noqa: BLE001 -- all of them are told
                    error.add_note(f"The case is {str(values)[:LONGEST]}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(several)} cases fail", failures)

        # Not `functools.wraps`: pytest would look for the parameters of what is wrapped, and ask for fixtures.
        test.__name__, test.__qualname__ = holds.__name__, holds.__qualname__
        test.__module__, test.__doc__ = holds.__module__, holds.__doc__
        return test

    return decorate
