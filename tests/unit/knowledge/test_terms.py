"""Text → terms."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.knowledge.terms import MAX_TERM_LENGTH, terms
from tests.cases import every_case


@every_case(
    ("text", "expected"),
    [
        ("kube_pod_status", ["kube_pod_status", "kube", "pod", "status"]),
        ("CheckInErrorRate", ["checkinerrorr", "check", "error", "rate"]),
        ("OOMKilled", ["oomkil", "oom", "kill"]),
        ("HTTP 503", ["http", "503"]),
        ("N7", ["n7"]),
        ("E1234", ["e1234"]),
        ("/etc/hosts.conf", ["etc/hosts.conf", "etc", "host", "conf"]),
        ("v1.24.3", ["v1.24.3", "v1", "24", "3"]),
        ("pg-booking", ["pg-booking", "pg", "book"]),
        ("the pods' restarts aren't restarting", ["pod", "restart", "restart"]),
        ("ＯＯＭ", ["oom"]),
    ],
)
def test_identifiers_are_kept_whole_and_split(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_different_forms_of_a_word_are_one_term() -> None:
    assert terms("rolled rolling rolls") == ["roll"] * 3


def test_stop_words_and_lone_letters_are_left_out() -> None:
    assert terms("what is the x of it?") == []


def test_chinese_is_cut_into_overlapping_pairs() -> None:
    assert terms("存储扩容AMF") == ["存储", "储扩", "扩容", "amf"]
    assert terms("盘") == ["盘"]


def test_a_run_of_encoded_data_is_no_term() -> None:
    assert terms("a" * (MAX_TERM_LENGTH + 1)) == []


@given(st.text())
def test_any_text_has_terms_without_space_or_capitals(text: str) -> None:
    for term in terms(text):
        assert term
        assert term == term.lower()
        assert not any(character.isspace() for character in term)


@given(st.text(alphabet="abcXYZ019_-./ ", max_size=60))
def test_terms_do_not_depend_on_surrounding_white_space(text: str) -> None:
    assert terms(f"  {text}\n") == terms(text)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_text_in_ascii_has_the_same_terms_beside_other_text(text: str) -> None:
    assert [*terms(text), "盘"] == terms(f"{text} 盘")
