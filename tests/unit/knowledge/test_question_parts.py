"""What a question is made of."""

from __future__ import annotations

import pytest

from core.knowledge.question_parts import MAX_LENGTH, MAX_PARTS, comparison_sides, question_parts


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "how do I roll back X and who approves a hotfix?",
            ["how do I roll back X", "who approves a hotfix?"],
        ),
        ("How do I drain a runner? Who is the captain?", ["How do I drain a runner?", "Who is the captain?"]),
        ("is the quota full, and can I ask for more?", ["is the quota full", "can I ask for more?"]),
        ("如何登录管理界面？日志在哪个路径下？", ["如何登录管理界面？", "日志在哪个路径下？"]),
        ("如何创建子组织，以及谁可以审批？", ["如何创建子组织", "谁可以审批？"]),
        ("1. how do I rotate the key\n2. who is told", ["how do I rotate the key", "who is told"]),
        ("Two things: 1) rotating the key 2) rebuilding the index", ["rotating the key", "rebuilding the index"]),
        ("- where are the logs\n- who reads the logs", ["where are the logs", "who reads the logs"]),
    ],
)
def test_a_question_for_several_things_is_split(question: str, parts: list[str]) -> None:
    assert list(question_parts(question)) == parts


@pytest.mark.parametrize(
    "question",
    [
        "how do I drain and retire a runner?",
        "can I put a manifest into a message? broker says RecordTooLarge",
        "the leader failed and now the replica refuses to join",
        "EPS回落流程中，PCF向SBC上报几次用户位置吗，分别使用什么事件？",
        "what does port 3. mean",
        "why does ```a? b?``` fail",
        "",
        "and? who?",
    ],
)
def test_a_question_for_one_thing_is_left_whole(question: str) -> None:
    assert question_parts(f" {question}") == (question,)


def test_what_only_tells_belongs_to_the_question_after_it_and_at_the_end_to_the_one_before() -> None:
    parts = question_parts("is the queue slow? the logs show nothing. who owns the queue? it is urgent.")
    assert parts == ("is the queue slow?", "the logs show nothing. who owns the queue? it is urgent.")


def test_more_parts_than_can_be_answered_stay_together() -> None:
    parts = question_parts("who owns the index? who owns the queue? who owns the cache? who owns the gateway?")
    assert len(parts) == MAX_PARTS
    assert parts[-1] == "who owns the cache? who owns the gateway?"


def test_a_long_story_is_left_whole() -> None:
    story = "the queue is slow. " * (MAX_LENGTH // 10) + "why? who owns it?"
    assert question_parts(story) == (story,)


@pytest.mark.parametrize(
    ("question", "sides"),
    [
        ("canary or rolling?", ("canary ?", "rolling?")),
        ("pg-booking vs pg-fleet", ("pg-booking", "pg-fleet")),
        ("what is the difference between a canary and a hotfix, in short?", True),
        ("is it true or not?", ()),
        ("how do I drain a runner?", ()),
    ],
)
def test_a_comparison_asks_the_same_of_both_sides(question: str, sides: tuple[str, ...] | bool) -> None:
    found = comparison_sides(question)
    if sides is True:
        first, second = found
        assert ("hotfix" in first, "canary" in first) == (False, True)
        assert ("hotfix" in second, "canary" in second) == (True, False)
    else:
        assert found == sides
