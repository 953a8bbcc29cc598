"""Microsoft Teams: inbound activities and outbound Adaptive Cards.

Inbound requests are parsed by us (`authentication`, `activity`, `inbound`), so both values of `TEAMS_SDK` behave alike.
Outbound requests use the chosen SDK (`messenger`).
"""
