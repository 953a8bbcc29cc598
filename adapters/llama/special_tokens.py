"""Breaks up the control tokens of chat templates in texts that are data, so that no tokenizer interprets them."""

from __future__ import annotations

import re
from collections.abc import Collection

# `<|im_end|>` (Qwen), `<|eot_id|>` (Llama 3), `<|channel|>` (gpt-oss), and with the bars of full width (DeepSeek).
_BARRED = re.compile(r"<(?=[|｜])")
# Those without bars: Gemma, Llama 2, SmolLM, the thoughts and tool calls of Qwen 3; in brackets Mistral, and Gemma's own two.
_NAMED = re.compile(
    r"<(?=/?(?:s|bos|eos|pad|unk|mask|cls|sep|think|tools?|tool_call|tool_response|start_of_turn|end_of_turn|turn"
    r"|start_of_image|end_of_image|image_soft_token|unused\d+|repo_?name|file_sep|filename|gh_stars|issue_\w+|jupyter_\w+"
    r"|empty_output|<SYS>)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|THINK|ARGS|CALL_ID|IMG\w*|multimodal"
    r"|@BOS@)\])"
)
_IN_TEMPLATE = re.compile(r"<[^\s<>{}%'\"]{1,40}>|\[/?[A-Z][A-Z_]{1,30}\]")


def template_tokens(template: str) -> frozenset[str]:
    """Return the apparent control tokens of a chat template in Jinja."""
    return frozenset(_IN_TEMPLATE.findall(template))


def without_special_tokens(text: str, known: Collection[str] = ()) -> str:
    """Return the text with a space after the first character of every control token.

    This covers the usual families of models, and the tokens `known` for one server.
    """
    for token in known:
        text = text.replace(token, f"{token[0]} {token[1:]}")
    return _NAMED.sub(lambda found: f"{found[0]} ", _BARRED.sub("< ", text))
