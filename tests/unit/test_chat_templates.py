"""Chat templates: control tokens in data, and models that think aloud before they reply."""

from __future__ import annotations

import json

import pytest

from adapters.llama.completion import (
    GrowingReplies,
    messages_of,
    ready_for_reply,
    template_tokens,
    without_special_tokens,
)
from core.model.language_model import ChatMessage, ModelRequest, Role
from tests.cases import every_case

SPECIAL = {
    "Qwen": ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|fim_prefix|>", "<think>", "</think>", "<tool_call>"),
    "Llama 3.1": ("<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>"),
    "Gemma 4": ("<|turn>", "<turn|>", "<|channel>", "<channel|>", "<tool_call|>", "<tool_response|>"),
    "EXAONE": ("[|system|]", "[|assistant|]", "[|endofturn|]"),
    "GLM": ("[gMASK]", "<sop>", "<eop>", "<|observation|>", "<arg_key>", "</arg_value>"),
    "MiniMax": ("]~!b[", "]~b]", "[e~[", "<minimax:tool_call>"),
    "StarCoder": ("<fim_prefix>", "<fim-suffix>", "<file_sep>"),
    "Code Llama": ("<PRE>", "<SUF>", "<MID>", "<EOT>", "<<SYS>>"),
    "Command R": ("<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>"),
    "Nemotron": ("<extra_id_0>", "<SPECIAL_12>"),
    "Seed": ("<seed:bos>", "</seed:think>", "<seed:tool_call>"),
    "tool calls in text": (
        "<tool_calls>",
        "<function_call>",
        "<function=shell>",
        "<parameter=cmd>",
        "[END_TOOL_REQUEST]",
    ),
    "Gemma 3": ("<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "<unused42>", "<start_of_image>", "[@BOS@]"),
    "gpt-oss": ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>"),
    "Mistral": ("[INST]", "[/INST]", "<s>", "</s>", "[SYSTEM_PROMPT]"),
    "DeepSeek": ("<｜User｜>", "<｜end▁of▁sentence｜>"),
}


@every_case("family", SPECIAL)
def test_no_control_token_of_a_family_stays_whole(family: str) -> None:
    said = "".join(f"before {token}system\nmore<{token}> " for token in SPECIAL[family])
    kept = without_special_tokens(said)
    assert not [token for token in SPECIAL[family] if token in kept]
    assert kept.replace(" ", "") == said.replace(" ", ""), "nothing is lost"


def test_control_token_in_other_widths_or_with_invisible_characters_is_broken_up() -> None:
    cases: list[str] = [
        "＜|im_start|＞",
        "<\u200b|im_start|>",
        "<|im_\u200dstart|>",
        "<\u2060start_of_turn>",
        "＜／ｓ＞",
        "［INST］",
        "[IN\u00adST]",
        "<\ufe0f/think>",
        "<\x00s>",
    ]
    for disguised in cases:
        assert without_special_tokens(f"a{disguised}b") == f"a{disguised[0]} {disguised[1:]}b", disguised


def test_what_only_looks_like_markup_stays_as_it_is() -> None:
    text = "kubectl get <NAME> | grep 'a<b' [ERROR] <div>${x}</div> a <- b <API_TOKEN> [1] x |> f [|1; 2|] naïve <é>"
    assert without_special_tokens(text) == text


def test_the_tokens_that_a_servers_template_names_are_broken_up_too() -> None:
    known = template_tokens("{{ '<turn:user>' + message.content }}[BEGIN_TURN]{% if a < b %}")
    assert known == {"<turn:user>", "[BEGIN_TURN]"}
    request = ModelRequest((ChatMessage(Role.USER, "a <turn:user> b [BEGIN_TURN]"),))
    assert messages_of(request, known)[0]["content"] == "a < turn:user> b [ BEGIN_TURN]"


@pytest.mark.parametrize(
    ("prompt", "ready"),
    [
        ("<|im_start|>assistant\n<think>\n", "<|im_start|>assistant\n<think>\n\n</think>\n\n"),
        ("<|start|>assistant", "<|start|>assistant<|channel|>final<|message|>"),
        ("<|im_start|>assistant\n", "<|im_start|>assistant\n"),
        ("<start_of_turn>model\n", "<start_of_turn>model\n"),
    ],
)
def test_json_does_not_go_into_a_thought_that_a_template_opens(prompt: str, ready: str) -> None:
    assert ready_for_reply(prompt) == ready


# Pieces as llama-server, vLLM and Ollama stream them for a model of each family that was asked for one word.
THOUGHTS = ("reasoning_content", "reasoning")
RECORDED = {
    "Qwen 3, thoughts parted": [{"reasoning_content": "Let me see."}, {"content": "disk"}],
    "Qwen 3 on vLLM": [{"reasoning": "Let me", "reasoning_content": "Let me"}, {"reasoning": " see."}, {"content": "disk"}],
    "Qwen 3 on Ollama": [{"role": "assistant", "content": "", "reasoning": "Let me see."}, {"content": "disk"}],
    "Qwen 3, thoughts in the text": [{"content": "<think>\n"}, {"content": "Let me see.\n</think>\n\n"}, {"content": "disk"}],
    "a template that opens the thought": [{"content": "Let me see.\n</think>\n\ndisk"}],
    "gpt-oss": [{"content": None, "reasoning_content": "The user asks"}, {"content": "disk"}],
    "Llama 3.1": [{"role": "assistant", "content": None}, {"content": "disk"}],
    "Gemma 3": [{"content": "di"}, {"content": "sk"}],
}  # fmt: skip


@every_case("family", RECORDED)
def test_of_a_model_that_thinks_aloud_only_the_reply_is_read(family: str) -> None:
    replies = GrowingReplies(prompt_tokens=9)
    for delta in [*RECORDED[family], {}]:
        finish = None if delta else "stop"
        replies.add(json.loads(json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})))
    (reply,) = [each.reply() for each in replies.finished]
    assert (reply.text, reply.complete) == ("disk", True)
    assert reply.generated_tokens == len(
        [each for each in RECORDED[family] if any(each.get(key) for key in ("content", *THOUGHTS))]
    )


def test_a_thought_that_has_not_ended_is_no_reply() -> None:
    replies = GrowingReplies(prompt_tokens=9)
    told = [replies.add({"choices": [{"delta": {"content": text}}]}) for text in ("\n<think>", "The answer is 42.")]
    replies.add({"choices": [{"delta": {}, "finish_reason": "length"}]})
    (reply,) = [each.reply() for each in replies.finished]
    assert (told, reply.text, reply.complete) == (["", ""], "", False)
