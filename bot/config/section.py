"""The base of every section of plumbline.yaml."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A key that nobody knows is an error: it is a mistyped one."""

    model_config = ConfigDict(frozen=True, extra="forbid")
