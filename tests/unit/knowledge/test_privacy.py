"""What is taken out of a document before it is indexed."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from core.knowledge.names import People, mentions
from core.knowledge.redactor import Redactor
from core.model.document import Document
from tests.cases import every_case

ASHA = ("Asha Brandt", "asha.brandt", "asha@marigold.example")
MATEO = ("Mateo Silvestri",)
WILL = ("Will Thackeray-Moon",)
PEOPLE: People = (ASHA, MATEO, WILL)


class FakeSecrets:
    """Every `hunter2` is a secret."""

    def find(self, text: str) -> list[tuple[int, int]]:
        return [(start, start + 7) for start in range(len(text)) if text.startswith("hunter2", start)]


def redacted(text: str, people: People = PEOPLE, title: str = "", owner: str = "") -> Document:
    document = Document("chat/1", "chat", "chat", title, text, url="https://chat.example/1", owner=owner, people=people)
    return Redactor(FakeSecrets())(document)


def named(text: str, people: People = PEOPLE) -> list[str]:
    return [text[mention.start : mention.end] for mention in mentions(text, people)]


# --- one person is one placeholder -----------------------------------------------------------------------------------


def test_people_are_numbered_as_they_appear() -> None:
    assert (
        redacted("Mateo asks, Asha answers, Mateo thanks.").text == "Person 1 asks, Person 2 answers, Person 1 thanks."
    )


def test_a_person_is_the_same_by_every_name_and_in_the_title_too() -> None:
    text = "@asha.brandt: done. Brandt, Asha (asha@marigold.example) and asha's mail ASHA@marigold.example"
    found = redacted(text, title="#ci: thanks Mateo and Asha Brandt")
    assert found.title == "#ci: thanks Person 1 and Person 2"
    assert found.text == "Person 2: done. Person 2 (Person 2) and Person 2's mail Person 2"


def test_the_owner_is_taken_out_if_it_is_a_person_and_stays_if_it_is_a_team() -> None:
    assert redacted("x", owner="Asha Brandt").owner == "Person 1"
    assert redacted("x", owner="payments").owner == "payments"


def test_the_people_go_no_further_and_all_else_stays() -> None:
    found = redacted("Nothing to see.")
    assert found.people == ()
    assert (found.id, found.url, found.text) == ("chat/1", "https://chat.example/1", "Nothing to see.")


def test_configured_names_are_taken_out_of_every_document() -> None:
    document = Document("docs/1", "docs", "docs", "", "Ask Noor el-Amin, or Noor's team.")
    assert Redactor(FakeSecrets(), ["Noor el-Amin"])(document).text == "Ask Person 1, or Person 1's team."


def test_secrets_and_the_addresses_of_others_have_a_placeholder_of_their_kind() -> None:
    text = "hunter2 is for x@partner.example, tel: +46 70 123 45 67"
    assert redacted(text).text == "[secret] is for [e-mail], tel: [phone]"


@every_case(
    ("text", "left"),
    [
        ("E-mail:foo.bar@acme.example.", "E-mail:[e-mail]."),
        ("user:foo@acme.example may read", "user:[e-mail] may read"),
        ("foo@müller.example", "[e-mail]"),
        ("https://acme.example/users/foo.bar@acme.example/edit", "https://acme.example/users/[e-mail]/edit"),
        ("https://acme.example/?to=asha%40marigold.example&x=1", "https://acme.example/?to=Person 1&x=1"),
        ("[write](mailto:asha@marigold.example?subject=x)", "[write](mailto:Person 1?subject=x)"),
    ],
)
def test_an_address_is_found_behind_a_colon_and_in_a_url(text: str, left: str) -> None:
    assert redacted(text).text == left


@every_case(
    "text",
    [
        "ssh://deploy@build.example/x",
        "https://deploy@git.example/docs.git",
        "https://user:$TOKEN@git.example/docs",
        "pip install git+https://git.example/docs.git@release.next",
        "https://cdn.example/npm/vue@3.2.js",
        "HTTP/web01.acme.example@ACME.EXAMPLE",
        "serviceAccount:ci@acme.iam.gserviceaccount.com",
    ],
)
def test_whom_a_url_logs_in_as_and_what_it_names_are_no_addresses(text: str) -> None:
    assert redacted(text).text == text


def test_a_secret_in_an_address_goes_as_a_secret() -> None:
    assert redacted("postgres://asha.brandt:hunter2@db.example/x").text == "postgres://Person 1:[secret]@db.example/x"


@given(st.text(alphabet="Ashab @.-`\n,:/'’WilTMoMateo2hunter", max_size=200))
def test_what_is_left_holds_nothing_more_to_take_out(text: str) -> None:
    redactor = Redactor(FakeSecrets())
    once = redacted(text).text
    findings = redactor.findings(text, PEOPLE)
    assert [f for f, g in pairwise(findings) if f.end > g.start] == []
    assert "hunter2" not in once
    assert "Asha Brandt" not in once


# --- names -----------------------------------------------------------------------------------------------------------


def test_names_are_found_in_every_way_that_people_write_them() -> None:
    for text in (
        "Asha Brandt",
        "ASHA BRANDT",
        "asha brandt",
        "Brandt, Asha",
        "A. Brandt",
        "@Asha",
        "asha",
        "asha_brandt",
    ):
        assert named(f"ask {text} now") == [text], text


def test_the_genitive_of_other_languages_is_a_name_and_the_plural_of_a_word_is_none() -> None:
    assert named("Ashas Rechner, Silvestris Ticket") == ["Ashas", "Silvestris"]
    assert named("Wills and ashas, `Ashas`") == []


def test_marks_on_letters_may_be_left_out() -> None:
    assert named("Jose and José Ibarra", (("José Ibarra-Quintal",),)) == ["Jose", "José"]


def test_an_addendum_to_a_name_is_no_part_of_it() -> None:
    assert named("Vik said so", (("Vik Rao (he/him) | Payments",),)) == ["Vik"]


def test_names_without_letter_case_are_found_within_a_sentence() -> None:
    assert named("田中さんと김민서 님", (("田中 一郎",), ("김민서",))) == ["田中", "김민서"]


def test_a_name_within_an_identifier_or_a_command_is_left_alone() -> None:
    for text in (
        "pod asha-canary-5d8f7c6b9 restarted",
        "branch feature/asha and tag mateo:1.2",
        "mateo.enabled=true, asha=1",
        "`kubectl logs asha`",
        "```\nasha\n```",
        "kubectl -n asha get pods",
        "San Mateo is a county",
    ):
        assert named(text) == [], text


def test_a_user_name_is_found_in_a_path_and_a_full_name_in_code() -> None:
    assert named("look in /home/asha.brandt/bin") == ["asha.brandt"]
    assert named("`git log --author='Asha Brandt'`") == ["Asha Brandt"]


def test_a_full_name_is_found_in_a_url() -> None:
    page = "https://wiki.example/display/OPS/On+call+Asha+Brandt?from=Mateo%20Silvestri"
    assert named(page) == ["Asha+Brandt", "Mateo%20Silvestri"]


def test_a_name_that_is_a_word_counts_only_where_it_is_a_name() -> None:
    assert named("Will this help? It will. Will do.") == []
    assert named("I asked Will; @Will, Will said no, thanks Will") == ["Will", "@Will", "Will", "Will"]


def test_a_name_that_is_a_product_counts_only_where_a_person_is_talked_of() -> None:
    people = (("Travis Uhlmann",),)
    assert named("Travis is slow, the Travis build failed, we left Travis", people) == []
    assert named("thanks Travis! Travis said so, Travis, can you look?", people) == ["Travis"] * 3


def test_two_names_joined_by_a_stroke_are_two_names_and_no_path() -> None:
    assert named("Asha/Mateo decide") == ["Asha", "Mateo"]


def test_contractions_are_no_names() -> None:
    assert named("don't", (("Don Quist",),)) == []


def test_whom_both_a_setting_and_a_source_name_is_one_person() -> None:
    text = "Ask Asha Brandt, mail asha@marigold.example or ping @abrandt; else Mateo Silvestri."
    people = (("Asha Brandt", "abrandt", "asha@marigold.example"),)
    found = Redactor(FakeSecrets(), ["asha brandt", "Mateo Silvestri"])(
        Document("d", "s", "f", "T", text, people=people)
    )
    assert found.text == "Ask Person 1, mail Person 1 or ping Person 1; else Person 2."
