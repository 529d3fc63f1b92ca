"""Tokens are told by their form; none is written out here, lest a scanner takes it for a real one."""

import pytest

from jobgen.k8s.secrets import find_token, is_secret_value, looks_like_secret, may_contain_secret

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
TOKENS = {
    "hugging face": "hf" + "_" + LETTERS[:34],
    "github": "ghp" + "_" + LETTERS[:36],
    "github, fine": "github" + "_pat_" + LETTERS[:22] + "_" + (LETTERS * 2)[:59],
    "gitlab": "glpat" + "-" + LETTERS[:20],
    "openai": "sk" + "-" + LETTERS[:20] + "T3Blbk" + "FJ" + LETTERS[:20],
    "anthropic": "sk" + "-ant-api03-" + (LETTERS * 2)[:93],
    "google": "AIza" + LETTERS[:35],
    "nvidia": "nvapi" + "-" + (LETTERS * 2)[:64],
    "a key": "-----BEGIN RSA " + "PRIVATE KEY-----",
}


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_a_token_is_found_alone_and_in_a_script(token):
    assert may_contain_secret(token)
    assert find_token(token) == token
    assert find_token(f"login --token={token}; train") == token


@pytest.mark.parametrize("text", ["hf_" + "x" * 34, "hf_abc", "hf_" + LETTERS[:33], "a" + TOKENS["hugging face"], ""])
def test_what_only_begins_like_a_token_is_none(text):
    assert find_token(text) == ""


@pytest.mark.parametrize("value", ["", "short", "$(TOKEN)", "<token>", "{token}", "/run/token", "my-token", "xxxxxxxx"])
def test_a_placeholder_is_no_secret(value):
    assert not looks_like_secret("API_TOKEN", value)
    assert not is_secret_value("WANDB_API_KEY", value)


@pytest.mark.parametrize("name", ["API_TOKEN", "password", "db-password", "S3_SECRET_KEY", "openai_api_key"])
def test_a_name_says_secret(name):
    assert looks_like_secret(name, "Tr0ub4dor")


@pytest.mark.parametrize("name", ["PAD_TOKEN", "TOKENIZER", "KEY", "SORT_KEY", "AWS_ACCESS_KEY_ID", "SECRET_NAME"])
def test_a_name_says_something_else(name):
    assert not looks_like_secret(name, "Tr0ub4dor")
