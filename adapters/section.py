"""The base of the sections of plumbline.yaml, and the types of their settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

EnvironmentName = Annotated[str, Field(pattern="^[A-Z][A-Z0-9_]*$")]
"""The name of a variable that contains a secret."""

Url = Annotated[str, Field(pattern=r"^https?://[^/?#\s]+[^?#\s]*$")]
"""A server with the path of its API."""


class Section(BaseModel):
    """A section in which unknown keys are errors, because they are probably misspelt."""

    model_config = ConfigDict(frozen=True, extra="forbid")
