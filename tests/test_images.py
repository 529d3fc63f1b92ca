"""Names of images, by the grammar of distribution/reference and its own cases."""

import pytest

from jobgen.k8s.images import find_image_error, parse_image_name

DIGEST = "sha256:" + "0123456789abcdef" * 4
GOOD = [
    "bert",
    "bert:1.0",
    "Registry/bert",
    "localhost/bert",
    "localhost:5000/ml/bert:V1_x.y-z",
    "registry.example.com:5000/bert",
    "[2001:db8::1]:5000/bert",
    "a__b/c--d/e.f",
    f"bert@{DIGEST}",
    f"bert:1.0@{DIGEST}",
    "bert:" + "x" * 128,
    "123.45/bert",
    "xn--n3h.com/bert",
]
BAD = [
    "Bert",
    "docker.io/Bert",
    "bert:",
    "bert@",
    ":1.0",
    "bert:1:2",
    "bert:-1",
    "bert:" + "x" * 129,
    "bert@sha256:0123",
    f"bert@{DIGEST.upper()}",
    "bert@md5:" + "0123456789abcdef" * 2,
    "be rt",
    "ml//bert",
    "/bert",
    "ml/",
    "a___b",
    "a..b",
    "-bert",
    "bert_",
    "https://example.com/bert",
    "under_score.com/bert",
    "registry.example.com:port/bert",
    "0123456789abcdef" * 4,
    "gcr.io/<project>/bert",
    "${IMAGE}",
    "a/" * 128 + "a",
]


@pytest.mark.parametrize("image", GOOD)
def test_valid_image_names(image):
    assert not find_image_error(image)


@pytest.mark.parametrize("image", BAD)
def test_invalid_image_names(image):
    assert find_image_error(image)


def test_parts_of_image_names():
    name = parse_image_name(f"localhost:5000/ml/bert-gpu:1.0-cuda12@{DIGEST}")

    assert name[:4] == ("localhost:5000", "ml/bert-gpu", "1.0-cuda12", DIGEST)
    assert {"bert", "gpu", "cuda12"} <= name.name_tokens
    assert not name.is_mutable
    assert parse_image_name("bert").is_mutable
    assert parse_image_name("bert:latest").is_mutable


@pytest.mark.parametrize(
    ("digest", "reason"),
    [
        ("sha256:9f86d081884c", "because it has 12 of 64 hexadecimal digits; copy the whole digest"),
        (f"sha256:{'A' * 64}", "because it has other signs than `0` to `9` and `a` to `f`; copy the whole digest"),
        ("9f86d081884c", "write `sha256:` and 64 hexadecimal digits"),
    ],
)
def test_a_digest_that_is_not_one_says_what_it_lacks(digest, reason):
    assert find_image_error(f"registry.example.com/a@{digest}").endswith(reason)
