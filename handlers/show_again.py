"""What a message of ours would show now, from what is stored."""

from __future__ import annotations

from core.confidence.policy import NO_POLICY, Policy
from core.conversation import MessageReference
from core.messages import Message, ProposalMessage
from core.ports import Store
from handlers.present_incident import shown_incident


class ShownAgain:
    """Implements `core.ports.Standing`: for the messages that change, an incident's and a proposed answer's."""

    def __init__(self, store: Store, policy: Policy = NO_POLICY) -> None:
        self._store = store
        self._policy = policy

    async def message(self, reference: MessageReference) -> Message | None:
        async with self._store.transaction() as transaction:
            post = await transaction.posts.at(reference)
            kind, _, subject = post.intent.partition(":") if post is not None else ("", "", "")
            if kind == "incident":
                incident = await transaction.incidents.get(
                    subject.partition("@")[0]
                )  # what follows names a copy's place
                return shown_incident(incident, self._policy) if incident is not None else None
            answer = await transaction.curated.get(subject) if kind == "proposal" else None
            return ProposalMessage(answer) if answer is not None else None
