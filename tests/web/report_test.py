#!/usr/bin/env python3
"""Opens a report in headless Chromium and checks what is drawn. Usage: report_test.py SAMPLE_PROGRAM [SCREENSHOT_DIRECTORY]

SAMPLE_PROGRAM writes a report of invented runs (tests/web/report_sample.cpp).
"""

import html
import html.parser
import pathlib
import re
import subprocess
import sys
import tempfile

BROWSER = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
           "--enable-logging=stderr", "--virtual-time-budget=10000"]
DEADLINE_S = 120

# The report in a window of phone width, which no headless window may have itself; tells what the inner body tells.
PHONE = """<!doctype html><body><iframe style="width:390px;height:800px;border:0" srcdoc="{page}"></iframe><script>
const frame = document.querySelector("iframe");
const look = () => {{
  const inner = frame.contentDocument.body;
  if (!inner || !inner.dataset.drawn) return setTimeout(look, 50);
  for (const [name, value] of Object.entries(inner.dataset)) document.body.dataset[name] = value;
}};
look();
</script></body>"""


class Page(html.parser.HTMLParser):
    """What the drawn page has: attributes of its body, table rows, canvases, shapes of time lines."""

    def __init__(self, text):
        super().__init__()
        self.body, self.cells, self.rows, self.canvases, self.rects, self.buttons = {}, [], 0, [], 0, 0
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag == "body":
            self.body = dict(attributes)
        self.rows += tag == "tr" and "tbody" in self.open
        self.rects += tag == "rect"
        self.buttons += tag == "button"
        if tag == "canvas":
            self.canvases.append(dict(attributes))

    def handle_endtag(self, tag):
        while tag in self.open and self.open.pop() != tag:
            pass

    def handle_data(self, text):
        if "table" in self.open:
            self.cells.append(text)


class Browser:
    def __init__(self, directory):
        self.directory = directory
        self.runs = 0

    def __call__(self, path, *arguments):
        """Standard output and what the page wrote to the console."""
        self.runs += 1
        profile = self.directory / f"profile-{self.runs}"
        command = [*BROWSER, f"--user-data-dir={profile}", *arguments, path.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        console = [line for line in done.stderr.splitlines() if re.search(r"CONSOLE[:(]", line)]
        return done.stdout, console


def png_size(path):
    head = path.read_bytes()[:24] if path.exists() else b""
    return (int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")) if len(head) == 24 else (0, 0)


def checks(browser, report, pictures):
    """Yields (claim, whether it holds, what was found)."""
    text, console = browser(report, "--window-size=1280,2600", "--dump-dom")
    page = Page(text)
    body = page.body
    yield "draws five charts", body.get("data-drawn") == "5 charts", body
    yield "no chart is blank", body.get("data-blank") == "0", page.canvases
    yield "every canvas has colour", len(page.canvases) == 5 and all(
        int(canvas.get("data-coloured", 0)) > 200 for canvas in page.canvases), page.canvases
    yield "draws a time line per recipe", body.get("data-timelines") == "3" and page.rects > 100, (body, page.rects)
    yield "has a table row per recipe", page.rows == 3, page.rows
    yield "has a legend button per recipe", page.buttons == 3, page.buttons
    yield "shows names as they are", "<b>dga</b>" in page.cells, page.cells[:40]
    yield "says that a target was not reached", any("not reached" in cell for cell in page.cells), page.cells
    yield "fits a desktop window", body.get("data-overflow") == "0", body
    yield "reports no error", body.get("data-errors") == "0" and not console, (body, console)

    dark, _ = browser(report, "--window-size=1280,2600", "--force-dark-mode", "--dump-dom")
    yield "draws on a dark system", Page(dark).body.get("data-blank") == "0", Page(dark).body

    phone = report.with_name("phone.html")
    phone.write_text(PHONE.format(page=html.escape(report.read_text(encoding="utf-8"))), encoding="utf-8")
    text, console = browser(phone, "--window-size=800,900", "--dump-dom")
    body = Page(text).body
    yield "draws at phone width", body.get("data-drawn") == "5 charts" and body.get("data-blank") == "0", body
    yield "fits a phone", body.get("data-overflow") == "0" and not console, (body, console)

    for name, path, options in (("report", report, []), ("report-dark", report, ["--force-dark-mode"]), ("phone", phone, [])):
        picture = pictures / f"{name}.png"
        browser(path, "--window-size=1280,2600", f"--screenshot={picture}", *options)
        yield f"{name} can be photographed", png_size(picture) == (1280, 2600), png_size(picture)


def broken_page_is_noticed(browser, report):
    """The checks above prove something only if a page without curves fails them."""
    page = report.read_text(encoding="utf-8")
    empty = report.with_name("empty.html")
    empty.write_text(re.sub(r'"runs":\[\[.*?\]\]\]', '"runs":[[]]', page), encoding="utf-8")
    text, _ = browser(empty, "--window-size=1280,2600", "--dump-dom")
    body = Page(text).body
    yield "a page without curves counts as blank", body.get("data-blank") == "4", body


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        directory = pathlib.Path(name)
        pictures = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) == 3 else directory
        pictures.mkdir(parents=True, exist_ok=True)
        report = directory / "report.html"
        subprocess.run([sys.argv[1], str(report)], check=True)
        browser = Browser(directory)
        for test in (checks, broken_page_is_noticed):
            for claim, holds, found in test(browser, report, *([pictures] if test is checks else [])):
                passed, failed = passed + bool(holds), failed + (not holds)
                print(f"{'ok    ' if holds else 'FAILED'} {claim}" + ("" if holds else f": found {found}"))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
