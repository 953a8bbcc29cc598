"""What is said to the language model: one text file per prompt, and one typed render function for each."""
