"""What a language model may cite."""

from __future__ import annotations

from core.answering.answer import Sentence
from core.answering.model_evidence import gathered
from core.knowledge.passages import passages_of
from core.knowledge.retriever import RankedPassage
from core.model.document import Document, DocumentKind
from core.model.layout import thread_text, thread_urls


def test_sentences_from_two_messages_of_a_thread_cite_each_its_own() -> None:
    message, replies = (
        "the runner is full?",
        ["Drain it with `drydock runner drain 7`.", "It takes 10 minutes at most."],
    )
    urls = thread_urls(message, "https://chat/1", [(reply, f"https://chat/1-{n}") for n, reply in enumerate(replies)])
    text = thread_text(message, replies)
    thread = Document("chat/1", "chat", "chat", "#ci", text, DocumentKind.THREAD, "https://chat/1", part_urls=urls)
    [passage] = passages_of(thread)
    evidence = gathered([RankedPassage(passage, 5.0, 0.6, 1.0)])
    sentences, citations = evidence.cited([Sentence("Drain it.", (1,)), Sentence("It takes 10 minutes.", (2,))])
    assert [sentence.citations for sentence in sentences] == [(1,), (2,)]
    assert [(source.deep_link, source.quote) for source in citations] == [
        ("https://chat/1-0", replies[0]),
        ("https://chat/1-1", replies[1]),
    ]
