"""Write a comment on a pull request of GitHub, or replace the one that an earlier run wrote.

A token that must not write comments, such as that of a pull request from a fork, is not an error: the job summary has
the same text.
"""

from __future__ import annotations

import json
import os
import re
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

MAX_LENGTH = 65_536
"""The characters that GitHub accepts in a comment."""
PAGE_LENGTH = 100
MAX_PAGES = 50
TIMEOUT = 30
AUTHOR = "github-actions[bot]"
"""The author of comments that the token of a job writes; a comment of anyone else is never replaced."""
REFUSED = (401, 403, 404)


def call_api(method: str, path: str, data: dict[str, str] | None = None) -> Any:
    """Send a request to the API of the repository; return its answer."""
    request = Request(  # noqa: S310 -- the address comes from the runner
        f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}",
        method=method,
        data=json.dumps(data).encode() if data else None,
        headers={
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {os.environ['TOKEN']}",
            "Content-Type": "application/json",
        },
    )
    with urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310 -- as above
        return json.load(answer)


def find_comment(number: int, marker: str) -> int | None:
    """Return the comment of an earlier run."""
    for page in range(1, MAX_PAGES + 1):
        comments = call_api("GET", f"issues/{number}/comments?per_page={PAGE_LENGTH}&page={page}")
        for comment in comments:
            author = (comment.get("user") or {}).get("login")
            if author == AUTHOR and (comment.get("body") or "").startswith(marker):
                return int(comment["id"])
        if len(comments) < PAGE_LENGTH:
            break
    return None


def write_comment(number: int, marker: str, text: str) -> None:
    """Write the comment, or replace the one of an earlier run."""
    body = {"body": f"{marker}\n{text}"[:MAX_LENGTH]}
    found = find_comment(number, marker)
    if found is None:
        call_api("POST", f"issues/{number}/comments", body)
    else:
        call_api("PATCH", f"issues/comments/{found}", body)


def main() -> None:
    """Write the comment; print an annotation if this is not possible."""
    name = re.sub(r"[^A-Za-z0-9._]+", "-", os.environ["NAME"])
    text = Path(os.environ["COMMENT"]).read_text("utf-8", "replace")
    try:
        write_comment(int(os.environ["NUMBER"]), f"<!-- jobgen: {name} -->", text)
    except HTTPError as error:
        if error.code in REFUSED:
            print("::notice::The token must not write comments (`pull-requests: write`); the job summary has the text.")
        else:
            print(f"::warning::The comment was not written: GitHub answered {error.code}.")
    except (OSError, HTTPException, ValueError) as error:
        print(f"::warning::The comment was not written: {type(error).__name__}.")


if __name__ == "__main__":
    main()
