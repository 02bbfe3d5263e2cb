// What all parts of the report share: the data, texts of quantities, SVG, colours.
"use strict";

const report = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colourName = (index) => `--c${index % 8}`;

  const trimmed = (value, digits) => String(+value.toPrecision(digits));
  const inSeconds = (s) => {
    if (s === 0) return "0 s";
    if (s < 1e-3) return `${trimmed(s * 1e6, 3)} µs`;
    if (s < 1) return `${trimmed(s * 1000, 3)} ms`;
    if (s < 119.5) return `${trimmed(s, 3)} s`;
    const whole = Math.round(s);
    if (whole >= 3600) return `${Math.floor(whole / 3600)} h ${Math.floor(whole % 3600 / 60)} min`;
    return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  };
  const inBytes = (n) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    const at = n >= 1 ? Math.min(units.length - 1, Math.floor(Math.log2(n) / 10)) : 0;
    return `${+(n / 1024 ** at).toFixed(at ? 1 : 0)} ${units[at]}`;
  };
  const inRate = (bits) => {
    const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
    const at = bits >= 1 ? Math.min(units.length - 1, Math.floor(Math.log10(bits) / 3)) : 0;
    return `${trimmed(bits / 1000 ** at, 3)} ${units[at]}`;
  };
  const inPercent = (share) => `${trimmed(100 * share, share < 0.1 ? 2 : 3)} %`;

  const median = (values) => {
    const sorted = values.filter((v) => v !== null).sort((a, b) => a - b);
    if (!sorted.length) return null;
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  };
  // About six of them in the range.
  const niceStep = (range, count = 6) => {
    const rough = range / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  };

  const element = (tag, attributes, parent, text) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };
  const svg = (tag, attributes, parent, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };
  // A picture that is drawn again when its width changes, so that its text keeps its size.
  const redraws = [];
  const picture = (parent, label, draw) => {
    const again = () => {
      const width = Math.max(260, Math.round(parent.clientWidth));
      if (+parent.dataset.width === width) return;
      parent.dataset.width = width;
      parent.replaceChildren();
      const drawn = svg("svg", { width, role: "img", "aria-label": label }, parent);
      const height = draw(drawn, width);
      drawn.setAttribute("height", height);
      drawn.setAttribute("viewBox", `0 0 ${width} ${height}`);
    };
    redraws.push(again);
    again();
  };
  window.addEventListener("resize", () => redraws.forEach((again) => again()));

  return { data, css, colourName, inSeconds, inBytes, inRate, inPercent, trimmed, median, niceStep, element, svg, picture };
})();
