"""Prompts that ask a model without grammars for JSON again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.model_calls.prompts.template import template


def ask_for_yaml() -> str:
    """Return a request to write the previous reply as YAML."""
    return template("json_regen_yaml").substitute()


def ask_for_json(schema: Mapping[str, Any]) -> str:
    """Return a request to write the previous YAML as JSON under `schema`."""
    return template("json_regen_json").substitute(schema=json.dumps(schema, ensure_ascii=False))
