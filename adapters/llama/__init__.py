"""llama.cpp at the user's side: its native `llama-server`, and `llama_cpp.server` of llama-cpp-python."""
