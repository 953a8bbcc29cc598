"""The secrets of a bot that other machines can reach, and the header of a sender that knows them."""

from __future__ import annotations

SECRET = "known-to-who-may-come-in"
LOCKED = {"PLUMBLINE_WEBHOOK_SECRET": SECRET, "PLUMBLINE_CONSOLE_TOKEN": SECRET}
KNOWN = {"Authorization": f"Bearer {SECRET}"}
