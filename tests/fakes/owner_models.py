"""What was learned of owners, in memory."""

from __future__ import annotations

from core.triage.owner_model import OwnerModel


class FakeOwnerModelStore:
    def __init__(self) -> None:
        self.model: OwnerModel | None = None

    async def load(self) -> OwnerModel | None:
        return self.model

    async def load_newest(self) -> OwnerModel | None:
        return self.model

    async def save(self, model: OwnerModel, /) -> None:
        self.model = model
