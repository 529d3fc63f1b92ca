"""The public functions, such as `load`, `render`, `lint` and `diff`; they neither parse arguments nor print."""
