"""Check an object: schema, CEL, admission, rules, policies."""
