"""Source code that a test wrote down."""

from __future__ import annotations

from collections.abc import Sequence

from core.ports import CodeDefinition


def definition(name: str, *, container: str = "", path: str = "shop/pool.py", text: str = "") -> CodeDefinition:
    return CodeDefinition(name, container, "shop", path, 1, text or f"def {name}(): ...")


class FakeCodeReader:
    """Holds definitions; keeps what it was asked for."""

    def __init__(self, definitions: Sequence[CodeDefinition] = (), name: str = "code") -> None:
        self.name = name
        self.asked: list[Sequence[str]] = []
        self._definitions = definitions

    async def definitions(self, names: Sequence[str]) -> list[CodeDefinition]:
        self.asked.append(names)
        return [each for each in self._definitions if each.name in names]
