"""How a language model is asked, and how its replies are read."""
