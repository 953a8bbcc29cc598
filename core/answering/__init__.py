"""Question and evidence → an answer of which every sentence is cited."""
