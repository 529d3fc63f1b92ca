"""Features: each folder adds commands, rules and reports to the core, which imports none of them."""
