// Loss and accuracy over time and over steps, and the bytes on the links.
"use strict";

report.curves = (() => {
  const { data, css, colourName, inSeconds, inBytes, median, niceStep, element } = report;
  const hidden = new Set();  // indices of recipes that are turned off
  const charts = [];
  const colour = (index) => css(colourName(index));
  const faint = (hex) => hex + "55";

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

  const shown = () => data.groups.filter((_, index) => !hidden.has(index));
  const values = (groups, column) => groups.flatMap((group) => group.runs.flatMap((run) => run.map((p) => p[column])));
  const finite = (list) => list.filter((v) => v !== null);

  // How time is shown. Logarithmic at first where one recipe takes many times as long as another.
  const ends = data.groups.map((group) => Math.max(0, ...values([group], 1)));
  const reached = data.groups.map((group) => group.time_to_target_s).filter((t) => t > 0);
  const zoomEnd = reached.length ? 2.5 * Math.min(...reached) : Math.min(...ends.filter((end) => end > 0));
  let scale = Math.max(...ends) > 8 * Math.min(...ends.filter((end) => end > 0)) ? "logarithmic" : "linear";

  const lines = (x, y) => data.groups.flatMap((group, index) => {
    const base = { hidden: hidden.has(index), pointRadius: 0, pointHitRadius: 8, tension: 0 };
    const main = { ...base, label: group.name, data: points(middleRun(group.runs), x, y), borderColor: colour(index),
      backgroundColor: colour(index), borderWidth: 2.2, order: 1 };
    if (group.runs.length < 2) return [main];
    const seeds = group.runs.map((run) => ({ ...base, label: "", data: points(run, x, y), borderColor: faint(colour(index)),
      borderWidth: 1, order: 2, pointHitRadius: 0 }));
    return [main, ...seeds];
  });

  // The target, and where each recipe crossed it.
  const targetLines = (x, y) => {
    if ((data.target.metric === "loss" ? 2 : 3) !== y) return [];
    const across = [x === 1 ? Math.min(...finite(values(data.groups, 1)), Infinity) : 0, Math.max(0, ...values(data.groups, x))]
      .map((at) => ({ x: at, y: data.target.value }));
    const marks = data.groups.flatMap((group, index) => {
      const at = x === 1 ? group.time_to_target_s : group.steps_to_target;
      if (at === null || hidden.has(index)) return [];
      return [{ label: `${group.name} reaches the target`, data: [{ x: at, y: data.target.value }], showLine: false, pointRadius: 5,
        pointHitRadius: 8, pointStyle: "circle", borderColor: css("--card"), backgroundColor: colour(index), borderWidth: 2, order: 0 }];
    });
    return [{ label: `target ${data.target.value}`, data: across, borderColor: css("--target"), borderDash: [5, 5],
      borderWidth: 1.2, pointRadius: 0, pointHitRadius: 0, order: 3 }, ...marks];
  };

  // A cross where a diverged recipe was last seen.
  const divergedMarks = (x, y) => data.groups.flatMap((group, index) => {
    if (!group.diverged || hidden.has(index)) return [];
    const seen = group.runs.flatMap((run) => run.filter((p) => p[y] !== null && p[y] <= lossLimit()).slice(-1));
    if (!seen.length) return [];
    return [{ label: `${group.name} diverged`, data: points(seen, x, y), showLine: false, pointRadius: 7, pointStyle: "crossRot",
      borderColor: colour(index), borderWidth: 3, order: 0 }];
  });

  // One diverged run must not flatten the others: the axis ends a little above the largest loss of those that did not.
  const lossLimit = () => {
    const sound = shown().filter((group) => !group.diverged);
    const most = Math.max(...finite(values(sound.length ? sound : shown(), 2)));
    return Number.isFinite(most) ? 1.05 * most : Infinity;
  };

  const axis = (title, ticks) => ({ title: { display: title !== "", text: title, color: css("--soft") },
    grid: { color: css("--grid"), borderColor: css("--line") }, ticks: { color: css("--soft"), maxRotation: 0, ...ticks } });
  const base = () => ({ animation: false, responsive: true, maintainAspectRatio: false, plugins: { legend: { display: false } } });

  const isNarrow = () => document.documentElement.clientWidth < 560;
  // Round numbers only, in one unit: the distance between them is what counts.
  const logTick = (s) => {
    const digit = s / 10 ** Math.floor(Math.log10(s) + 1e-9);
    if (![1, ...(isNarrow() ? [] : [2, 5])].some((round) => Math.abs(digit - round) < 1e-6)) return null;
    return s < 1 ? `${+(s * 1000).toPrecision(2)} ms` : `${+s.toPrecision(2)} s`;
  };

  // One unit for the whole axis of time, with round numbers of it.
  const timeAxis = () => {
    const title = data.clock === "real" ? "time" : "virtual time";
    if (scale === "logarithmic") {
      const least = Math.min(...finite(values(shown(), 1)).filter((t) => t > 0));
      return { type: "logarithmic", min: Number.isFinite(least) ? least : undefined,
        ...axis(`${title}, logarithmic`, { autoSkip: false, callback: logTick }) };
    }
    const most = scale === "zoom" ? zoomEnd : Math.max(1e-3, ...values(data.groups, 1));
    const [unit, name] = most >= 600 ? [60, "min"] : most >= 2 ? [1, "s"] : [1e-3, "ms"];
    return { type: "linear", min: 0, max: scale === "zoom" ? zoomEnd : undefined,
      ...axis(title, { stepSize: niceStep(most / unit) * unit, callback: (s) => `${+(s / unit).toFixed(2)} ${name}` }) };
  };

  const drawLines = (id, x, y) => {
    const options = base();
    options.interaction = { mode: "nearest", axis: "x", intersect: false };
    const limit = y === 2 ? lossLimit() : Infinity;
    options.scales = {
      x: x === 1 ? timeAxis() : { type: "linear", min: 0, ...axis("steps", {}) },
      y: { type: "linear", max: Number.isFinite(limit) ? limit : undefined,
        ...axis(y === 3 ? "accuracy" : "loss", { callback: (v) => +v.toPrecision(3) }) },
    };
    options.plugins.tooltip = { filter: (item) => item.dataset.label !== "",
      callbacks: { title: (items) => (items.length ? (x === 1 ? inSeconds(items[0].parsed.x) : `step ${items[0].parsed.x}`) : "") } };
    charts.push(new Chart(document.getElementById(id), { type: "line", options,
      data: { datasets: [...lines(x, y), ...targetLines(x, y), ...divergedMarks(x, y)] } }));
  };

  // Round numbers of one unit.
  const byteTicks = () => {
    const most = Math.max(1, ...data.groups.flatMap((group) => [group.bytes_up, group.bytes_down]));
    const power = Math.floor(Math.log2(most) / 10);
    const unit = 1024 ** power;
    const name = inBytes(unit).split(" ")[1];
    return { stepSize: niceStep(most / unit, isNarrow() ? 3 : 6) * unit, callback: (n) => `${+(n / unit).toFixed(2)} ${name}` };
  };

  const drawBytes = () => {
    const options = base();
    options.indexAxis = "y";
    options.scales = { x: { beginAtZero: true, ...axis("", byteTicks()) }, y: axis("", { autoSkip: false }) };
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
      const button = element("button", { "aria-pressed": "true" }, legend);
      element("span", { class: "swatch", style: `--swatch:var(${colourName(index)})` }, button);
      button.append(group.diverged ? `${group.name} (diverged)` : group.name);
      button.addEventListener("click", () => {
        if (!hidden.delete(index)) hidden.add(index);
        button.setAttribute("aria-pressed", String(!hidden.has(index)));
        drawAll();
      });
    });
  };

  const drawSwitch = () => {
    const box = document.getElementById("time-scale");
    for (const [name, text] of [["linear", "all"], ["logarithmic", "logarithmic"], ["zoom", `first ${inSeconds(zoomEnd)}`]]) {
      const button = element("button", { "aria-pressed": String(name === scale) }, box, text);
      button.addEventListener("click", () => {
        scale = name;
        for (const other of box.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
        drawAll();
      });
    }
  };

  return { charts, drawAll, draw() { drawLegend(); drawSwitch(); drawAll(); } };
})();
