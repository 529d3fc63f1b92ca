"""Tokens are recognized by their form. None is written out here, so that no scanner reports it."""

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
def test_tokens_are_found_alone_and_in_scripts(token):
    assert may_contain_secret(token)
    assert find_token(token) == token
    assert find_token(f"login --token={token}; train") == token


@pytest.mark.parametrize("text", ["hf_" + "x" * 34, "hf_abc", "hf_" + LETTERS[:33], "a" + TOKENS["hugging face"], ""])
def test_token_prefix_alone_is_not_a_secret(text):
    assert find_token(text) == ""


@pytest.mark.parametrize("value", ["", "short", "$(TOKEN)", "<token>", "{token}", "/run/token", "my-token", "xxxxxxxx"])
def test_placeholder_is_not_a_secret(value):
    assert not looks_like_secret("API_TOKEN", value)
    assert not is_secret_value("WANDB_API_KEY", value)


@pytest.mark.parametrize("name", ["API_TOKEN", "password", "db-password", "S3_SECRET_KEY", "openai_api_key"])
def test_names_of_secrets(name):
    assert looks_like_secret(name, "Tr0ub4dor")


@pytest.mark.parametrize("name", ["PAD_TOKEN", "TOKENIZER", "KEY", "SORT_KEY", "AWS_ACCESS_KEY_ID", "SECRET_NAME"])
def test_names_that_are_not_secrets(name):
    assert not looks_like_secret(name, "Tr0ub4dor")
