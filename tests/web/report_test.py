#!/usr/bin/env python3
"""Opens reports in headless Chromium and checks what is drawn. Usage: report_test.py SAMPLE_PROGRAM [SCREENSHOT_DIRECTORY]

SAMPLE_PROGRAM writes reports of invented runs: of a lab, a rehearsal and an oracle (tests/web/report_sample.cpp).
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
           "--enable-logging=stderr", "--virtual-time-budget=60000"]
DEADLINE_S = 120
PICTURE_HEIGHT = 4200

# The report in a window of phone width, which no headless window may have itself; tells what the inner body tells.
PHONE = """<!doctype html><body><iframe style="width:420px;height:4000px;border:0" srcdoc="{page}"></iframe><script>
const frame = document.querySelector("iframe");
const look = () => {{
  const inner = frame.contentDocument.body;
  if (!inner || !inner.dataset.drawn) return setTimeout(look, 50);
  for (const [name, value] of Object.entries(inner.dataset)) document.body.dataset[name] = value;
}};
look();
</script></body>"""

# A hidden tab, or a machine too slow for the browser's patience, gets no frames.
NO_FRAMES = """<script>
window.requestAnimationFrame = () => 0;
window.ResizeObserver = class { observe() {} unobserve() {} disconnect() {} };
</script>"""


class Page(html.parser.HTMLParser):
    """What the drawn page has: attributes of its body, its text, tables, canvases, shapes."""

    def __init__(self, text):
        super().__init__()
        self.body, self.cells, self.rows, self.canvases, self.buttons, self.text = {}, [], 0, [], 0, ""
        self.classes, self.titles, self.links = [], [], []
        self.table, self.open = None, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        found = dict(attributes)
        if tag == "body":
            self.body = found
        if tag == "table":
            self.table = found.get("id")
        self.rows += tag == "tr" and "tbody" in self.open and self.table == "results"
        self.buttons += tag == "button"
        self.classes += (found.get("class") or "").split()
        self.titles += [found["title"]] if tag == "abbr" else []
        self.links += [found] if tag == "a" else []
        if tag == "canvas":
            self.canvases.append(found)

    def handle_endtag(self, tag):
        while tag in self.open and self.open.pop() != tag:
            pass

    def handle_data(self, text):
        if "script" in self.open or "style" in self.open:
            return
        self.text += text
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


def lab_checks(browser, report, pictures):
    """Yields (claim, whether it holds, what was found)."""
    text, console = browser(report, "--window-size=1280,2600", "--dump-dom")
    page = Page(text)
    body = page.body
    yield "draws five charts", body.get("data-drawn") == "5 charts", body
    yield "no chart is blank", body.get("data-blank") == "0", page.canvases
    yield "every canvas has colour", len(page.canvases) == 5 and all(
        int(canvas.get("data-coloured", 0)) > 200 for canvas in page.canvases), page.canvases
    yield "draws a time line per recipe", body.get("data-timelines") == "5", body
    yield "draws line time and latency apart", page.classes.count("flight") > 50 and page.classes.count("send") > 50, page.classes.count("flight")
    yield "has a table row per recipe", page.rows == 5, page.rows
    yield "shows names as they are", "<b>dga</b>" in page.cells, page.cells[:40]
    yield "says that a target was not reached", any("not reached" in cell for cell in page.cells), page.cells
    yield "says that a run diverged", any(cell == "diverged" for cell in page.cells), page.cells
    yield "says that times are virtual", "Virtual time, modelled links" in page.text and "Longhaul lab · sample" in page.text, page.text[:300]
    # d-sgd and dd-ef-sgd need the same steps in the sample, and steps of 1.4 s and 60 ms.
    yield "tells the factors", "23.3×" in page.cells and any("= 23.3× sooner" in cell for cell in page.cells), page.cells
    yield "tells how steps vary with the seed", any("by seed" in cell for cell in page.cells), page.cells
    # Four recipes and, under each, four replicas that differ, in four parts each; and one whose replicas are alike.
    yield "draws the parts of a step", body.get("data-bars") == "84", body
    # One recipe by layer, with a wait in each step of its period and in the one that follows.
    yield "draws the schedule of layers", body.get("data-schedules") == "1", body
    yield "marks what is exposed", body.get("data-exposed") == "2", body
    yield "names the parts", all(f">{name}<" in text for name in ("out", "conv/1", "conv/2")), text[-2000:]
    yield "tells measured and planned", "75 % of the communication hidden, 50 ms exposed in a period; planned: 80 % and 40 ms" in page.text, page.text
    yield "draws link and plan over time", body.get("data-course") == "3", body
    yield "explains words on hover", len(page.titles) > 10, page.titles
    yield "has its table as CSV", any(link.get("download") == "results.csv" for link in page.links), page.links
    yield "says which command made it", "longhaul lab sample" in page.text, page.text[-300:]
    yield "fits a desktop window", body.get("data-overflow") == "0", body
    yield "reports no error", body.get("data-errors") == "0" and not console, (body, console)

    dark, _ = browser(report, "--window-size=1280,2600", "--force-dark-mode", "--dump-dom")
    yield "draws on a dark system", Page(dark).body.get("data-blank") == "0", Page(dark).body

    frameless = report.with_name("frameless.html")
    frameless.write_text(report.read_text(encoding="utf-8").replace("<script", NO_FRAMES + "<script", 1), encoding="utf-8")
    text, _ = browser(frameless, "--window-size=1280,2600", "--dump-dom")
    yield "draws without an animation frame", Page(text).body == body, Page(text).body

    phone = phone_page(report)
    text, console = browser(phone, "--window-size=800,900", "--dump-dom")
    body = Page(text).body
    yield "draws at phone width", body.get("data-drawn") == "5 charts" and body.get("data-blank") == "0", body
    yield "fits a phone", body.get("data-overflow") == "0" and not console, (body, console)
    yield from photographs(browser, pictures, report, phone)


def rehearsal_checks(browser, report, pictures):
    text, console = browser(report, "--window-size=1280,2600", "--dump-dom")
    page = Page(text)
    yield "a rehearsal says so", "Longhaul rehearsal · sample" in page.text and "Real time, emulated links" in page.text, page.text[:300]
    yield "nothing on it is virtual", "virtual" not in page.text.lower(), page.text
    yield "shows predicted beside measured", {"1.38 s", "1.4 s", "+1.4 %"} <= set(page.cells), page.cells
    yield "says that all models are equal", any("all 4 models equal" in cell for cell in page.cells), page.cells
    yield "draws its time line", page.body.get("data-timelines") == "2", page.body
    yield "draws it without error", page.body.get("data-errors") == "0" and page.body.get("data-blank") == "0" and not console, (page.body, console)
    yield from photographs(browser, pictures, report, phone_page(report))


def oracle_checks(browser, report, pictures):
    text, console = browser(report, "--window-size=1280,2600", "--dump-dom")
    page = Page(text)
    yield "an oracle's plans are a map", page.body.get("data-cells") == "9", page.body
    yield "and no rows", page.rows == 3, page.rows
    yield "marks the best plan and where auto ended", "best" in page.classes and "end" in page.classes, page.classes
    yield "tells the regret", "Regret" in page.cells and any(re.fullmatch(r"[+-][0-9.]+ %", cell) for cell in page.cells), page.cells
    yield "draws that without error", page.body.get("data-errors") == "0" and not console, (page.body, console)
    yield from photographs(browser, pictures, report, phone_page(report))


def phone_page(report):
    phone = report.with_name(f"phone-{report.stem}.html")
    phone.write_text(PHONE.format(page=html.escape(report.read_text(encoding="utf-8"))), encoding="utf-8")
    return phone


def photographs(browser, pictures, report, phone):
    for path, options, name in ((report, [], report.stem), (report, ["--force-dark-mode"], f"{report.stem}-dark"), (phone, [], phone.stem)):
        picture = pictures / f"{name}.png"
        browser(path, f"--window-size=1280,{PICTURE_HEIGHT}", f"--screenshot={picture}", *options)
        yield f"{name} can be photographed", png_size(picture) == (1280, PICTURE_HEIGHT), png_size(picture)


def broken_page_is_noticed(browser, report, _):
    """The checks above prove something only if a page without curves fails them."""
    page = report.read_text(encoding="utf-8")
    empty = report.with_name("empty.html")
    page = re.sub(r'"runs":\[\[.*?\]\]\]', '"runs":[[]]', page)
    page = re.sub(r'"(time_to_target_s|steps_to_target)":[0-9.]+', r'"\1":null', page)  # no marks at the target either
    empty.write_text(page, encoding="utf-8")
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
        browser = Browser(directory)
        for kind, test in (("lab", lab_checks), ("rehearsal", rehearsal_checks), ("oracle", oracle_checks), ("lab", broken_page_is_noticed)):
            report = directory / f"{kind}.html"
            subprocess.run([sys.argv[1], str(report), kind], check=True)
            for claim, holds, found in test(browser, report, pictures):
                passed, failed = passed + bool(holds), failed + (not holds)
                print(f"{'ok    ' if holds else 'FAILED'} {claim}" + ("" if holds else f": found {found}"))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
