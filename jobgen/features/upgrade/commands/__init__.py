"""The commands of this feature; each module has `command`, as those of `jobgen/cli/commands`."""
