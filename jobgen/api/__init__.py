"""The public functions `load`, `render`, `lint`, `diff` and `explain`; they neither parse arguments nor print."""
