"""Pages of `jobgen report` in a real browser: fixtures and functions that the tests of the page share."""

from __future__ import annotations

import shutil
from functools import cache, wraps
from pathlib import Path

import pytest

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first one takes half the time: it draws no window around the page."""
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
ROOT = Path(__file__).parent.parent
URL = "https://git.example.com/ml/jobs"
HOSTILE = (
    "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=1</script>",
    "javascript:window.hacked=1",
    '"><svg onload=window.hacked=1>',
    "{{constructor.constructor('window.hacked=1')()}}",
    "../../%2e%2e#/?team=&q=<b>",
    "a\u202eb\u0000c\u2028d",
    "__proto__",
    "constructor",
    "~0",
    " ",
)


ACTIONS = ("click", "fill", "focus", "press", "select_option", "type")
"""What a test does to a page, through a locator, the page or its keyboard."""


def settle(page) -> None:
    """Wait until the page has handled what has just happened: the browser sends `toggle` and `hashchange` later."""
    page.evaluate("() => new Promise((done) => setTimeout(() => requestAnimationFrame(() => setTimeout(done))))")


def settle_after(action, find_page):
    """Return an action of Playwright that ends when the page has drawn its effect."""

    @wraps(action)
    def act(target, *arguments, **options):
        action(target, *arguments, **options)
        settle(find_page(target))

    return act


def wait_until(page, expression: str) -> None:
    """Wait until an expression is true. Playwright's own function evaluates text in the page, which it forbids."""
    for _ in range(3_000):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(20)
    raise AssertionError(expression)


def measure_cpu(page, act) -> float:
    """Return the seconds of CPU that the page needs for an action: other processes do not change them, unlike time."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def read_clock() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    start = read_clock()
    act()
    taken = read_clock() - start
    session.detach()
    return taken


def reload(page) -> None:
    """Load the page again, until it can be used."""
    page.reload()
    page.wait_for_selector("html[data-ready]")


@pytest.fixture(scope="module")
def browser():
    """One browser for all tests: that of the system, never one that Playwright downloads."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium; `apt-get install chromium-headless-shell` installs it")
    with playwright.sync_playwright() as started, pytest.MonkeyPatch.context() as patch:
        for action in ACTIONS:
            patch.setattr(
                playwright.Locator, action, settle_after(getattr(playwright.Locator, action), lambda it: it.page)
            )
            patch.setattr(playwright.Page, action, settle_after(getattr(playwright.Page, action), lambda it: it))
        launched = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Write each page once; return its address."""
    # Imported late: all tests load this module.
    from gitrepository import Repository
    from report_jobs import write_jobs
    from report_samples import make_fleet, make_pull_request

    from jobgen.features.page.report import report

    folder = tmp_path_factory.mktemp("pages")

    def report_jobs() -> str:
        root = write_jobs(folder / "varied")
        Repository(root, folder).commit()
        (root / "overlays/dev/overlay.yaml").write_text((root / "overlays/dev/overlay.yaml").read_text() + "# new\n")
        return report(root, repo_url=URL).page

    def report_broken() -> str:
        root = write_jobs(folder / "broken")
        (root / "jobs/bert.yaml").write_text("metadata: [<b>", "utf-8")
        return report(root).page

    makers = {
        "fleet": lambda: make_fleet(120, url=URL),
        "small": lambda: make_fleet(12, ("dev", "prod"), url=URL),
        "large": lambda: make_fleet(1000),
        "huge": lambda: make_fleet(1_500, has_manifests=False),
        "hostile": lambda: make_fleet(11, ("<b>dev</b>", "prod"), names=HOSTILE),
        "hostile-changes": lambda: make_pull_request(text=HOSTILE[0]),
        "changes": lambda: make_pull_request(url=URL),
        "jobs": report_jobs,
        "incomplete": report_broken,
        "empty": lambda: make_fleet(0, ("dev",)),
        "no-environment": lambda: make_fleet(0, ()),
        "repository": lambda: report(ROOT, repo_url=URL).page,
    }

    @cache
    def write(name: str) -> str:
        path = folder / f"{name}.html"
        path.write_text(makers[name](), "utf-8")
        return path.as_uri()

    return write


class Tabs:
    """Pages of a browser that tests use one after another: a new one starts a process, which takes twice the CPU time.

    What a test leaves in a page is removed: listeners, media, stored values and the page itself.
    """

    def __init__(self, browser, empty: Path) -> None:
        self.browser, self.idle, self.used = browser, [], []
        # Unlike `about:blank`, a file leaves the process of the page as it is.
        empty.write_text("<!doctype html>")
        self.empty = empty.as_uri()

    def open(self, **options):
        """Return an empty page: of a laptop, if the options say nothing else, and without motion."""
        options = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **options}
        if not options.keys() <= {"viewport", "color_scheme", "reduced_motion"}:
            page = self._start(options)
        else:
            page = self.idle.pop() if self.idle else self._start({})
            page.set_viewport_size(options.pop("viewport"))
            page.emulate_media(**{"media": "null", "color_scheme": "null", **options})
            self.used.append(page)
        return page

    def _start(self, options):
        page = self.browser.new_page(**options)
        for action in ("press", "type"):
            act = getattr(page.keyboard, action)
            setattr(page.keyboard, action, lambda keys, act=act: (act(keys), settle(page)))
        page.set_default_timeout(60_000)
        return page

    def close(self, page) -> None:
        """Take a page back."""
        if page not in self.used or page.is_closed():
            page.close()
            return
        self.used.remove(page)
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        page.goto(self.empty)
        self.idle.append(page)


@pytest.fixture(scope="module")
def tabs(browser, tmp_path_factory) -> Tabs:
    """The pages that the tests of a module share."""
    return Tabs(browser, tmp_path_factory.mktemp("tabs") / "empty.html")


@pytest.fixture
def visit(tabs, pages):
    """Open a page at a route; every error of the console fails the test."""
    opened, problems = [], []

    def list_problem(message) -> None:
        if message.type in {"error", "warning"}:
            problems.append(message.text)

    def list_request(request) -> None:
        if not request.url.startswith(("file:", "data:")):
            problems.append(request.url)

    listeners = {
        "console": list_problem,
        "pageerror": lambda error: problems.append(str(error)),
        "request": list_request,
    }

    def open_page(name: str, route: str = "", **options):
        page = tabs.open(**options)
        opened.append(page)
        for event, listener in listeners.items():
            page.on(event, listener)
        page.goto(pages(name) + route)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for page in opened:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        tabs.close(page)
    assert problems == []


def texts(page, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_text_contents()]


def go(page, route: str) -> None:
    """Go to a route, and wait until its view is drawn."""
    page.evaluate(
        "(route) => new Promise((resolve) => { if (location.hash === route) return resolve();"
        "addEventListener('hashchange', () => setTimeout(resolve), {once: true}); location.hash = route; })",
        route,
    )
