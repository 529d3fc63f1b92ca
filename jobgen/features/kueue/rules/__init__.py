"""The rules of this feature, in folders by category, as those of `jobgen/check/rules`."""
