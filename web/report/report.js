// Draws the report from the JSON in #data. When it has drawn, the page says what is on it:
// data-drawn="5 charts", data-blank, data-timelines, data-overflow and data-errors of its body.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const hidden = new Set();  // indices of recipes that are turned off
  const charts = [];
  let errors = 0;
  window.addEventListener("error", () => { document.body.dataset.errors = ++errors; });
  document.body.dataset.errors = 0;

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (index) => css(`--c${index % 8}`);
  const faint = (hex) => hex + "55";

  const inSeconds = (s) => (s >= 120 ? `${+(s / 60).toFixed(1)} min` : s >= 1 || s === 0 ? `${+s.toFixed(2)} s`
    : `${+(s * 1000).toFixed(1)} ms`);
  const inBytes = (n) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    const at = n >= 1 ? Math.min(units.length - 1, Math.floor(Math.log2(n) / 10)) : 0;
    return `${+(n / 1024 ** at).toFixed(at ? 1 : 0)} ${units[at]}`;
  };

  const median = (values) => {
    const sorted = values.filter((v) => v !== null).sort((a, b) => a - b);
    if (!sorted.length) return null;
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  };

  // A point is [step, seconds, loss, accuracy].
  const points = (run, x, y) => run.map((p) => ({ x: p[x], y: p[y] }));
  // The median over seeds of every column, at the evaluations that most seeds have.
  const middleRun = (runs) => {
    const steps = new Map();
    for (const p of runs.flat()) steps.set(p[0], [...(steps.get(p[0]) || []), p]);
    return [...steps.values()].filter((same) => 2 * same.length > runs.length)
      .sort((a, b) => a[0][0] - b[0][0])
      .map((same) => [0, 1, 2, 3].map((column) => median(same.map((p) => p[column]))));
  };

  const lines = (x, y) => data.groups.flatMap((group, index) => {
    const base = { group: index, hidden: hidden.has(index), pointRadius: 0, pointHitRadius: 8, tension: 0 };
    const main = { ...base, label: group.name, data: points(middleRun(group.runs), x, y), borderColor: colour(index),
      backgroundColor: colour(index), borderWidth: 2.2, order: 1 };
    if (group.runs.length < 2) return [main];
    const seeds = group.runs.map((run) => ({ ...base, label: "", data: points(run, x, y), borderColor: faint(colour(index)),
      borderWidth: 1, order: 2, pointHitRadius: 0 }));
    return [main, ...seeds];
  });

  const targetLine = (x, y) => {
    if ((data.target.metric === "loss" ? 2 : 3) !== y) return [];
    const ends = data.groups.flatMap((group) => group.runs.flatMap((run) => run.map((p) => p[x])));
    const across = [0, Math.max(0, ...ends)].map((at) => ({ x: at, y: data.target.value }));
    return [{ label: `target ${data.target.value}`, data: across, borderColor: css("--target"), borderDash: [5, 5],
      borderWidth: 1.2, pointRadius: 0, pointHitRadius: 0, order: 3 }];
  };

  const axis = (title, ticks) => ({ title: { display: true, text: title, color: css("--soft") },
    grid: { color: css("--grid"), borderColor: css("--line") }, ticks: { color: css("--soft"), maxRotation: 0, ...ticks } });

  const base = () => ({ animation: false, responsive: true, maintainAspectRatio: false, plugins: { legend: { display: false } } });

  // One unit for the whole axis of time, with round numbers of it.
  const timeTicks = () => {
    const most = Math.max(1e-3, ...data.groups.flatMap((group) => group.runs.flatMap((run) => run.map((p) => p[1]))));
    const [unit, name] = most >= 600 ? [60, "min"] : most >= 2 ? [1, "s"] : [1e-3, "ms"];
    return { stepSize: niceStep(most / unit) * unit, callback: (s) => `${+(s / unit).toFixed(2)} ${name}` };
  };

  const drawLines = (id, x, y) => {
    const seconds = x === 1;
    const options = base();
    options.interaction = { mode: "nearest", axis: "x", intersect: false };
    options.scales = {
      x: { type: "linear", min: 0, ...axis(seconds ? "virtual time" : "steps", seconds ? timeTicks() : {}) },
      y: { type: "linear", ...axis(y === 3 ? "accuracy" : "loss", {}) },
    };
    options.plugins.tooltip = { filter: (item) => item.dataset.label !== "",
      callbacks: { title: (items) => (items.length ? (seconds ? inSeconds(items[0].parsed.x) : `step ${items[0].parsed.x}`) : "") } };
    charts.push(new Chart(document.getElementById(id), { type: "line", options,
      data: { datasets: [...lines(x, y), ...targetLine(x, y)] } }));
  };

  // A round number of the unit that inBytes writes.
  const byteStep = () => {
    const most = Math.max(1, ...data.groups.flatMap((group) => [group.bytes_up, group.bytes_down]));
    const unit = 1024 ** Math.floor(Math.log2(most) / 10);
    return niceStep(most / unit) * unit;
  };

  const drawBytes = () => {
    const options = base();
    options.indexAxis = "y";
    options.scales = { x: { beginAtZero: true, ...axis("", { callback: inBytes, stepSize: byteStep() }) }, y: axis("", { autoSkip: false }) };
    options.plugins.legend = { display: true, labels: { color: css("--ink"), boxWidth: 14 } };
    options.plugins.tooltip = { callbacks: { label: (item) => `${item.dataset.label}: ${inBytes(item.parsed.x)}` } };
    const bars = (label, key, tint) => ({ label, data: data.groups.map((group) => group[key]), backgroundColor: css(tint),
      maxBarThickness: 18 });
    const canvas = document.getElementById("bytes");
    canvas.parentElement.style.height = `${6 + 3 * data.groups.length}rem`;
    charts.push(new Chart(canvas, { type: "bar", options, data: { labels: data.groups.map((group) => group.name),
      datasets: [bars("up", "bytes_up", "--send"), bars("down", "bytes_down", "--receive")] } }));
  };

  const drawAll = () => {
    for (const chart of charts.splice(0)) chart.destroy();
    drawLines("accuracy-time", 1, 3);
    drawLines("accuracy-steps", 0, 3);
    drawLines("loss-time", 1, 2);
    drawLines("loss-steps", 0, 2);
    drawBytes();
  };

  const drawLegend = () => {
    const legend = document.getElementById("legend");
    data.groups.forEach((group, index) => {
      const button = document.createElement("button");
      const swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.setProperty("--swatch", `var(--c${index % 8})`);
      button.append(swatch, group.name);
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        if (!hidden.delete(index)) hidden.add(index);
        button.setAttribute("aria-pressed", String(!hidden.has(index)));
        drawAll();
      });
      legend.append(button);
    });
  };

  // Time lines: plain SVG. A span is [replica, activity, begin, end, step].
  const svg = (tag, attributes, parent) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (parent) parent.append(element);
    return element;
  };
  const activities = ["compute", "send", "receive", "wait"];
  const laneOf = [0, 1, 2, 0];
  const mostReplicas = 8;

  // Two steps of the slowest recipe, or all that the shortest one recorded, whichever is longer.
  const windowOf = (groups) => {
    const ends = groups.map((group) => Math.max(...group.timeline.map((span) => span[3])));
    const steps = groups.map((group, i) => ends[i] / (1 + Math.max(...group.timeline.map((span) => span[4]))));
    return Math.max(2 * Math.max(...steps), Math.min(...ends));
  };
  const niceStep = (range) => {
    const rough = range / 6;
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  };

  const drawTimeline = (group, range) => {
    const replicas = Math.min(mostReplicas, 1 + Math.max(...group.timeline.map((span) => span[0])));
    const [left, width, row, lane] = [74, 1000, 32, 9];
    const height = replicas * row + 22;
    const box = document.createElement("div");
    box.className = "timeline";
    const title = document.createElement("h3");
    title.textContent = group.name;
    box.append(title);
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Time line of ${group.name}` }, box);
    const at = (seconds) => left + (width - left - 8) * seconds / range;
    const tick = niceStep(range);
    for (let i = 0; i * tick <= range * 1.0001; ++i) {
      svg("line", { x1: at(i * tick), x2: at(i * tick), y1: 0, y2: height - 18, class: "axis" }, picture);
      svg("text", { x: at(i * tick), y: height - 4, "text-anchor": i ? "middle" : "start" }, picture).textContent = inSeconds(i * tick);
    }
    for (let i = 0; i < replicas; ++i) svg("text", { x: 0, y: i * row + 17 }, picture).textContent = `replica ${i + 1}`;
    for (const [replica, activity, begin, end, step] of group.timeline) {
      if (replica >= replicas || begin >= range) continue;
      const rect = svg("rect", { x: at(begin), y: replica * row + laneOf[activity] * lane + 1, height: lane - 1,
        width: Math.max(0.6, at(Math.min(end, range)) - at(begin) - 0.4), class: activities[activity] }, picture);
      svg("title", {}, rect).textContent = `replica ${replica + 1}, step ${step + 1}: ${activities[activity]} ${inSeconds(begin)} to ${inSeconds(end)}`;
    }
    document.getElementById("timelines").append(box);
  };

  // Coloured pixels: axes and labels are grey, so an empty chart has next to none.
  const isBlank = (canvas) => {
    if (!canvas.width || !canvas.height) return true;
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let coloured = 0;
    for (let i = 0; i < pixels.length; i += 4) {
      const least = Math.min(pixels[i], pixels[i + 1], pixels[i + 2]);
      const most = Math.max(pixels[i], pixels[i + 1], pixels[i + 2]);
      if (pixels[i + 3] > 100 && most - least > 70) ++coloured;
    }
    canvas.dataset.coloured = coloured;
    return coloured < 60;
  };

  const tellWhatIsDrawn = () => {
    const blank = charts.filter((chart) => isBlank(chart.canvas)).length;
    document.body.dataset.blank = blank;
    document.body.dataset.timelines = document.querySelectorAll(".timeline rect").length ? document.querySelectorAll(".timeline").length : 0;
    document.body.dataset.overflow = Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth);
    document.body.dataset.drawn = `${charts.length} charts`;
  };

  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  drawLegend();
  drawAll();
  const drawn = data.groups.filter((group) => group.timeline.length);
  for (const group of drawn) drawTimeline(group, windowOf(drawn));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  requestAnimationFrame(() => requestAnimationFrame(tellWhatIsDrawn));
})();
