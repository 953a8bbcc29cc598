"""Many cases of one property as one test, which says which of them fail: an item of pytest for each costs more than most cases."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from inspect import Signature, iscoroutinefunction, signature
from typing import Any

LONGEST = 300  # characters of a case in the message


def every_case(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[[], Any]]:
    """Return a decorator as `pytest.mark.parametrize` is, for a function that skips nothing.

    Its fixtures are set up once for all cases, so each case leaves them as it finds them.
    """
    several = [({names: case} if isinstance(names, str) else dict(zip(names, case, strict=True))) for case in cases]
    assert several, "A property without a case says nothing."

    def decorate(holds: Callable[..., Any]) -> Callable[..., Any]:
        def test(**fixtures: Any) -> None:
            failures: list[Exception] = []
            for values in several:
                with noted(values, failures):
                    holds(**values, **fixtures)
            tell(failures)

        async def test_awaited(**fixtures: Any) -> None:
            failures: list[Exception] = []
            for values in several:
                with noted(values, failures):
                    await holds(**values, **fixtures)
            tell(failures)

        def tell(failures: list[Exception]) -> None:
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(several)} cases fail", failures)

        # Not `functools.wraps`: pytest would look for the parameters of what is wrapped, and ask for all of them.
        chosen = test_awaited if iscoroutinefunction(holds) else test
        asked = [each for name, each in signature(holds).parameters.items() if name not in several[0]]
        vars(chosen)["__signature__"] = Signature(asked)
        chosen.__name__, chosen.__qualname__ = holds.__name__, holds.__qualname__
        chosen.__module__, chosen.__doc__ = holds.__module__, holds.__doc__
        return chosen

    return decorate


@contextmanager
def noted(values: dict[str, Any], failures: list[Exception]) -> Generator[None]:
    """Add what a case raises to the failures, with the case."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 -- all of them are told
        error.add_note(f"The case is {str(values)[:LONGEST]}")
        failures.append(error)
