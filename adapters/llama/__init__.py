"""Clients of llama.cpp servers: the native `llama-server`, and `llama_cpp.server` of llama-cpp-python."""
