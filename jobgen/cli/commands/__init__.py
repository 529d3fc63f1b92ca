"""The commands: one module each, named after its command and found by listing this folder.

A module has `command`, a click command or group that returns a `Result`.
"""
