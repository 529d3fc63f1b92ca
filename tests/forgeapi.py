"""Comments of GitHub, served on this machine: the network edge of the CI files."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

ME = {"id": 7, "login": "github-actions[bot]"}
SOMEONE = {"id": 8, "login": "mallory"}
COLLECTION = re.compile(r"/issues/\d+/comments$")
ITEM = re.compile(r"/issues/comments/(\d+)$")


class Forge:
    """The comments of one pull request, and what was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.comments: list[dict] = []
        self.requests: list[str] = []
        self.tokens: set[str] = set()
        self.refused = 0
        """The status of the answer to each attempt to write; 0 if it succeeds."""

    def add(self, author: dict, body: str) -> dict:
        self.comments.append({"id": len(self.comments) + 1, "user": author, "author": author, "body": body})
        return self.comments[-1]

    def answer(self, method: str, address: str, data: dict | None) -> tuple[int, object]:
        parts = urlsplit(address)
        self.requests.append(f"{method} {parts.path}")
        if method == "GET" and COLLECTION.search(parts.path):
            query = parse_qs(parts.query)
            size, page = int(query["per_page"][0]), int(query["page"][0])
            return 200, self.comments[size * (page - 1) : size * page]
        if self.refused:
            return self.refused, {"message": "Resource not accessible by integration"}
        if method == "POST" and COLLECTION.search(parts.path):
            return 201, self.add(ME, data["body"])
        if method in ("PATCH", "PUT") and (found := ITEM.search(parts.path)):
            self.comments[int(found[1]) - 1]["body"] = data["body"]
            return 200, {}
        return 404, {}


@contextmanager
def serve_forge() -> Iterator[Forge]:
    forge = Forge()

    class Handler(BaseHTTPRequestHandler):
        def reply(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            forge.tokens.add(self.headers.get("Authorization") or "")
            status, value = forge.answer(self.command, self.path, json.loads(data) if data else None)
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_PUT = reply  # noqa: N815 -- the names that the server calls

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        forge.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield forge
        finally:
            server.shutdown()
            thread.join()
