"""Messages that other bots post in a channel: one reader a chat, and one recogniser of alerts for all senders."""
