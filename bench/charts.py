"""Pictures as SVG text, from the results that pictures.py keeps. Pure functions: the same results give the same text."""
import html
import math
import statistics

THEMES = {
    "light": {"text": "#1f2328", "faint": "#656d76", "grid": "#d0d7de", "bar": "#8c959f", "ours": "#1a7f37", "free": "#bfd8c6",
              "compute": "#1a7f37", "wait": "#d8dee4", "send": "#0969da", "receive": "#8250df", "flight": "#afb8c1"},
    "dark": {"text": "#e6edf3", "faint": "#8d96a0", "grid": "#30363d", "bar": "#6e7681", "ours": "#3fb950", "free": "#2b5136",
             "compute": "#3fb950", "wait": "#30363d", "send": "#58a6ff", "receive": "#a371f7", "flight": "#484f58"},
}
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
NAMES = {"ideal": "network without cost", "auto": "Longhaul auto", "streaming-diloco": "Streaming DiLoCo", "diloco": "DiLoCo",
         "local-sgd": "local SGD", "d-sgd": "synchronous SGD"}


class Svg:
    def __init__(self, width, height, title):
        self.size = (width, height)
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
                      f'role="img" font-family="{FONT}" font-size="14"><title>{html.escape(title)}</title>']

    def rect(self, x, y, width, height, colour, more=""):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" fill="{colour}"{more}/>')

    def line(self, x1, y1, x2, y2, colour, more=""):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{more}/>')

    def path(self, data, colour):
        self.parts.append(f'<path d="{data}" fill="none" stroke="{colour}" stroke-width="1.5"/>')

    def text(self, x, y, words, colour, anchor="start", more=""):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}"{more}>{html.escape(words)}</text>')

    def done(self):
        return "\n".join([*self.parts, "</svg>", ""])


class Row:
    """What the seeds of one recipe say together. A seed that does not reach the target counts as later than all others."""

    def __init__(self, recipe, runs):
        self.recipe, self.runs = recipe, runs
        times = [math.inf if run["time_to_target_s"] is None else run["time_to_target_s"] for run in runs]
        self.least, self.median, self.most = min(times), statistics.median(times), max(times)
        self.missed = sum(math.isinf(time) for time in times)

    def middle(self, key):
        values = [run[key] for run in self.runs if run[key] is not None]
        return statistics.median(values) if values else None

    def overlaps(self, other):
        return self.least <= other.most and other.least <= self.most


def rows_of(results):
    names = []
    for run in results["runs"]:
        names += [run["recipe"]] if run["recipe"] not in names else []
    rows = [Row(name, [run for run in results["runs"] if run["recipe"] == name]) for name in names]
    return sorted(rows, key=lambda row: row.recipe != "ideal" and row.median)  # the yardstick first, then by time


def near_to_ours(results):
    """The recipes whose times overlap with those of `auto`."""
    rows = rows_of(results)
    ours = next(row for row in rows if row.recipe == "auto")
    return [row for row in rows if row is not ours and row.overlaps(ours)]


def seconds(value):
    if math.isinf(value):
        return "not reached"
    return f"{value:.0f} s" if value >= 99.5 else f"{value:.1f} s"


def nice_step(most):
    rough = most / 5
    power = 10 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)


def label_of(row):
    if math.isinf(row.median):
        return f"not reached by {row.missed} of {len(row.runs)} seeds"
    return seconds(row.median) + (f", not reached by {row.missed} of {len(row.runs)}" if row.missed else "")


def draw_bar(svg, colours, row, y, at):
    """A bar to the median and a whisker from the least to the most; open at the right if a seed never arrived."""
    colour = {"auto": "ours", "ideal": "free"}.get(row.recipe, "bar")
    weight = ' font-weight="600"' if row.recipe == "auto" else ""
    svg.text(at(0) - 10, y + 19, NAMES.get(row.recipe, row.recipe), colours["text"], "end", weight)
    if math.isinf(row.median):
        svg.text(at(0) + 8, y + 19, label_of(row), colours["text"], more=weight)
        return
    svg.rect(at(0), y + 4, at(row.median) - at(0), 20, colours[colour], ' rx="2"')
    svg.line(at(row.least), y + 14, at(row.most), y + 14, colours["text"], ' stroke-width="1.5"')
    for end in sorted({row.least, row.most} - {math.inf}):
        svg.line(at(end), y + 9, at(end), y + 19, colours["text"], ' stroke-width="1.5"')
    svg.text(at(row.most) + 8, y + 19, label_of(row), colours["text"], more=weight)


def bars(results, theme):
    """Horizontal bars: the median time to the target, with whiskers from the least to the most."""
    colours, rows = THEMES[theme], rows_of(results)
    most = 1.05 * max((time for row in rows for time in (row.median, row.most) if not math.isinf(time)), default=1)
    left, right, top, height = 190, 690 if any(row.missed for row in rows) else 810, 44, 34
    bottom = top + height * len(rows)
    svg = Svg(900, bottom + 70, "Time to the target, by method")
    target = f"{100 * results['target']['value']:.0f} %"
    svg.text(0, 20, f"Time to {target} accuracy, in seconds. Shorter is better.", colours["text"], more=' font-weight="600"')
    at = lambda value: left + (right - left) * min(value, most) / most
    for tick in range(int(most / nice_step(most)) + 1):
        x = at(tick * nice_step(most))
        svg.line(x, top - 8, x, bottom, colours["grid"])
        svg.text(x, bottom + 16, f"{tick * nice_step(most):.0f}", colours["faint"], "middle", ' font-size="12"')
    for index, row in enumerate(rows):
        draw_bar(svg, colours, row, top + index * height, at)
    for index, caption in enumerate(captions_of(results)):
        svg.text(0, bottom + 42 + 18 * index, caption, colours["faint"], more=' font-size="12"')
    return svg.done()


def captions_of(results):
    seeds = len({run["seed"] for run in results["runs"]})
    yield f"{results['about']} Bars: median of {seeds} seeds; whiskers: least and most. Virtual time, real gradients."
    near = near_to_ours(results)
    if near:
        names = [NAMES.get(row.recipe, row.recipe) for row in near]
        yield f"Within seed noise of {NAMES['auto']}, as the whiskers overlap: {', '.join(names)}."


def spans_of(results, recipe, window):
    """Activities of the first replica that begin in the window, cut at its end."""
    for activity, begin, end, step, queued, latency in results["timelines"].get(recipe, {"spans": []})["spans"]:
        if begin < window:
            yield activity, begin, end, step, queued, latency


def share_computing(results, recipe, window):
    spans = spans_of(results, recipe, window)
    return sum(min(end, window) - begin for activity, begin, end, *_ in spans if activity == "compute") / window


LANES = {"compute": 0, "wait": 0, "send": 1, "receive": 2}
LANE_WORDS = ("computes", "sends", "receives")


def draw_message(svg, colours, span, at, y, window):
    """Line time in full colour, queueing and flight faint."""
    activity, begin, end, _, queued, latency = span
    svg.rect(at(begin), y, at(min(end, window)) - at(begin), 14, colours["flight"], ' opacity="0.45"')
    if begin + queued < window:
        svg.rect(at(begin + queued), y, at(min(end - latency, window)) - at(begin + queued), 14, colours[activity])


def draw_replica(svg, colours, results, recipe, top, at, window):
    lane = lambda activity: top + 24 * LANES[activity]
    for index, words in enumerate(LANE_WORDS):
        svg.text(122, top + 24 * index + 12, words, colours["faint"], "end", ' font-size="12"')
    for span in spans_of(results, recipe, window):
        activity, begin, end, *_ = span
        if activity in ("compute", "wait"):
            svg.rect(at(begin), lane(activity), at(min(end, window)) - at(begin) - 0.8, 14, colours[activity])
        else:
            draw_message(svg, colours, span, at, lane(activity), window)


def draw_delay(svg, colours, results, recipe, top, at):
    """An arrow from an update to the step that begins with its mean merged."""
    line = results["timelines"][recipe]
    computed = {step: (begin, end) for activity, begin, end, step, *_ in line["spans"] if activity == "compute"}
    born = 1
    merged = born + line["delay_steps"] + 1
    if merged not in computed:
        return
    x1, x2 = at(computed[born][1]), at(computed[merged][0])
    svg.path(f"M{x1:.1f} {top} C{x1:.1f} {top - 22} {x2:.1f} {top - 22} {x2:.1f} {top - 2}", colours["text"])
    svg.path(f"M{x2 - 4:.1f} {top - 8} L{x2:.1f} {top - 1} L{x2 + 4:.1f} {top - 8}", colours["text"])
    words = f"the mean of this step is applied {line['delay_steps']} steps later"
    svg.text(x2 + 10, top - 9, words, colours["text"], more=' font-size="12"')


def window_of(results, recipes):
    """As long as one step of the first recipe, at most what all of them recorded."""
    begins = [sorted(span[1] for span in results["timelines"][recipe]["spans"] if span[0] == "compute") for recipe in recipes]
    step = begins[0][1] if len(begins[0]) > 1 else math.inf
    return min(step, *(max(span[2] for span in results["timelines"][recipe]["spans"]) for recipe in recipes))


def timeline(results, theme):
    """What one replica does at the beginning: synchronous SGD above, `auto` below, on one scale."""
    colours = THEMES[theme]
    recipes = [recipe for recipe in ("d-sgd", "auto") if recipe in results["timelines"]]
    window = window_of(results, recipes)
    bottom = 2 + 140 * len(recipes)
    svg = Svg(900, bottom + 48, "What one replica does at the beginning of a run")
    at = lambda value: 130 + 740 * value / window
    for tick in range(int(window / nice_step(window)) + 1):
        x = at(tick * nice_step(window))
        svg.line(x, 48, x, bottom, colours["grid"])
        svg.text(x, bottom + 16, f"{tick * nice_step(window):.1f} s", colours["faint"], "middle", ' font-size="12"')
    for index, recipe in enumerate(recipes):
        top = 52 + index * 140
        steps = sum(end <= window + 1e-9 for activity, _, end, *_ in spans_of(results, recipe, window) if activity == "compute")
        share = f"{100 * share_computing(results, recipe, window):.0f} % of the time computing, {steps} step{'s' * (steps != 1)}"
        svg.text(0, top - 30, f"{NAMES[recipe]}: {share}", colours["text"], more=' font-weight="600"')
        draw_replica(svg, colours, results, recipe, top, at, window)
        if results["timelines"][recipe]["delay_steps"] > 0:
            draw_delay(svg, colours, results, recipe, top, at)
    knows_latency = any(span[5] > 0 for recipe in recipes for span in results["timelines"][recipe]["spans"])
    words = "Solid: on the line. Faint: queueing and latency." if knows_latency else "Sending and receiving include the latency."
    svg.text(0, bottom + 40, words + " Grey: waiting.", colours["faint"], more=' font-size="12"')
    return svg.done()
