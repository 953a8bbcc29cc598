"""The scopes and events that the Slack app needs, as in `deploy/slack/manifest.yaml`."""

from __future__ import annotations

from adapters.slack.interactions import SHORTCUT
from adapters.slack.questions import COMMAND

# Scope → its purpose.
SCOPES = {
    "app_mentions:read": "mentions",
    "assistant:write": "suggested prompts in the conversation with the app",
    "channels:history": "threads it is asked in, edited and deleted questions, its own posts after a crash",
    "channels:read": "whether a channel is public, private or shared with others, and who is in it",
    "chat:write": "everything it says",
    "commands": "the slash command and the message shortcut",
    "files:read": "the snippets that Slack makes of long pastes, and text files",
    "files:write": "diagrams, and answers that are too long for a message",
    "groups:history": "the same as channels:history, in private channels that it was invited to",
    "groups:read": "the same as channels:read, for private channels",
    "im:history": "direct messages",
    "im:read": "whether a conversation is a direct message",
    "mpim:history": "group messages",
    "mpim:read": "who is in a group message",
    "reactions:read": "reactions to its answers as feedback",
    "users:read": "who is a guest, and whose page is opened",
}

AGENT_EVENTS = frozenset({"agent_session_stopped", "app_context_changed"})  # of an app with `agent_view`
ASSISTANT_EVENTS = frozenset({"assistant_thread_context_changed", "assistant_thread_started"})  # with `assistant_view`

EVENTS = AGENT_EVENTS | frozenset(
    {
        "app_home_opened",
        "app_mention",
        "message.channels",
        "message.groups",
        "message.im",
        "message.mpim",
        "reaction_added",
        "reaction_removed",
    }
)

COMMANDS = frozenset({COMMAND})
SHORTCUTS = frozenset({SHORTCUT})
