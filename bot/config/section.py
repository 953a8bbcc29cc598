"""The base class of the sections of plumbline.yaml."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A section in which unknown keys are errors, because they are probably misspelt."""

    model_config = ConfigDict(frozen=True, extra="forbid")
