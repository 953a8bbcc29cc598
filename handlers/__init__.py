"""The behaviours of the bot, one in each file, which know nothing but a message and the ports that they need."""
