"""Microsoft Teams: activities in, Adaptive Cards out.

What comes in is read by us (`authentication`, `activity`, `inbound`): no SDK stands between the wire and our checks, so
both `TEAMS_SDK`s answer alike. What goes out leaves through the SDK that was chosen (`transport`).
"""
