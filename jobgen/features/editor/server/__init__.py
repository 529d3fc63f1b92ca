"""The language server protocol: the only package that imports pygls and lsprotocol."""
