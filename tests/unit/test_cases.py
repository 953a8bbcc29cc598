from __future__ import annotations

import pytest

from tests.cases import every_case


def test_every_case_is_tried_and_each_that_fails_is_named() -> None:
    tried: list[int] = []

    @every_case(("number", "expected"), [(1, 1), (2, 3), (3, 3), (4, 5)])
    def test_number_is_as_expected(number: int, expected: int) -> None:
        tried.append(number)
        assert number == expected

    with pytest.raises(ExceptionGroup, match="2 of 4 cases fail") as raised:
        test_number_is_as_expected()
    assert tried == [1, 2, 3, 4]
    notes = [note for error in raised.value.exceptions for note in error.__notes__]
    assert notes == [f"The case is {case}" for case in ({"number": 2, "expected": 3}, {"number": 4, "expected": 5})]


def test_property_without_a_case_is_refused() -> None:
    with pytest.raises(AssertionError, match="without a case"):
        every_case("number", [])


@pytest.fixture
def seen() -> list[int]:
    return []


@every_case("number", [1, 2])
async def test_fixture_is_set_up_once_for_all_cases(seen: list[int], number: int) -> None:
    seen.append(number)
    assert len(seen) == number
