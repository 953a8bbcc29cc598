"""The views of all messages: their texts and controls, the same for every chat."""
