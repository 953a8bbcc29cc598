"""Answer questions from the documents, and cite them."""
