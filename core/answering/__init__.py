"""Answer questions from the documents, with a citation for every sentence."""
