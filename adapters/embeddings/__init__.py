"""Embedding models: the embedded default, sentence-transformers, and an embeddings endpoint."""
