"""Clients of language model servers: llama.cpp's `llama-server`, `llama_cpp.server`, and others with OpenAI's interface."""
