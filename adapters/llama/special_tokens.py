"""Breaks up the control tokens of chat templates in texts that are data, so that no tokenizer interprets them."""

from __future__ import annotations

import re
from collections.abc import Collection

from core.model_calls.prompts.quoted import plain

# `<|im_end|>` (Qwen), `<|eot_id|>` (Llama 3), `<|channel|>` (gpt-oss), and with the bars of full width (DeepSeek); in other
# brackets EXAONE, MiniMax and, with a bar at the end, Gemma 4.
_BARRED = re.compile(r"<\||\[e~|<\w{1,30}\|>|\[\|\w{1,30}\|\]|\]~!?b[\[\]]")
# Those without bars: Gemma, Llama 2, SmolLM, StarCoder, GLM, InternLM, Command R, Nemotron, Seed, the thoughts and tool calls of
# Qwen 3; in brackets Mistral, BERT, GLM, LM Studio's tool calls, and Gemma's own two.
_NAMED = re.compile(
    r"</?(?:s|bos|eos|eot|eod|pad|unk|mask|cls|sep|sop|eop|eoh|eoa|think|tools?|tool_calls?|tool_responses?|tool_results?"
    r"|tool_sep|function_calls?|function=[^>]+|parameter=[^>]+|arg_key|arg_value|(?:start|end)_of_\w+|turn|image_soft_token"
    r"|unused\d+|reserved_\d+|SPECIAL_\d+|TOKENS_UNUSED_\d+|extra_id_\d+|(?:BOS|EOS|PAD|UNK|CLS|SEP|MASK)_TOKEN|PRE|SUF|MID|EOT"
    r"|(?:seed|minimax):[\w:]+|longcat_\w+|fim[_-]\w+|repo_?name|file_sep|filename|gh_stars|issue_\w+|jupyter_\w+"
    r"|empty_output|SYS)>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|(?:END_)?TOOL_REQUEST|THINK|ARGS|CALL_ID"
    r"|IMG\w*|multimodal|[gs]?MASK|CLS|SEP|PAD|UNK|BOS|EOS|@BOS@)\]"
)
_OPENING = re.compile(
    r"[<＜﹤](?=([^<>＜＞﹤﹥\n]{0,60}[>＞﹥]?))|[\[［](?=([^\[\]［］\n]{0,60}[\]］]?))|[\]］](?=([~～][^\s\[\]]{0,9}[\[\]]))"
)
_IN_TEMPLATE = re.compile(r"<[^\s<>{}%'\"]{1,40}>|\[/?[A-Z][A-Z_]{1,30}\]")


def template_tokens(template: str) -> frozenset[str]:
    """Return the apparent control tokens of a chat template in Jinja."""
    return frozenset(_IN_TEMPLATE.findall(template))


def without_special_tokens(text: str, special: Collection[str] = ()) -> str:
    """Return the text with a space after the first character of every control token.

    This covers the usual families of models, and the `special` tokens of one server, also in characters of another width and
    with invisible ones in between, because some tokenizers read these alike.
    """

    def opened(match: re.Match[str]) -> str:
        apparent = plain(match[0] + (match[1] or match[2] or match[3] or ""))
        is_token = apparent in special or _BARRED.match(apparent) or _NAMED.fullmatch(apparent)
        return f"{match[0]} " if is_token else match[0]

    return _OPENING.sub(opened, text)
