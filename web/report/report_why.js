// Why one recipe is sooner: factors, parts of a step, links and plans over time, and hindsight.
"use strict";

report.why = (() => {
  const { data, colourName, inSeconds, inRate, inPercent, trimmed, niceStep, element, svg, picture } = report;
  const parts = [["compute", "computing"], ["send", "on the line"], ["flight", "latency"], ["wait", "waiting for others"]];
  const times = (factor) => `${factor >= 9.95 ? factor.toFixed(1) : factor.toFixed(2)}×`;
  const sum = (list) => list.reduce((a, b) => a + b, 0);

  const nameCell = (row, index) => {
    const name = element("th", { scope: "row" }, row);
    element("span", { class: "swatch", style: `--swatch:var(${colourName(index)})` }, name);
    // Long names break behind a colon.
    data.groups[index].name.split(":").forEach((word, i, all) => {
      name.append(i + 1 < all.length ? `${word}:` : word);
      if (i + 1 < all.length) element("wbr", {}, name);
    });
  };

  // time = step × steps, and against the base each factor of it.
  const factorRow = (body, index, base) => {
    const group = data.groups[index];
    const row = element("tr", {}, body);
    nameCell(row, index);
    const isReached = group.time_to_target_s !== null;
    const step = isReached ? group.time_to_target_s / group.steps_to_target : group.step_time_s;
    element("td", {}, row, step === null ? "–" : inSeconds(step));
    element("td", {}, row, isReached ? `× ${Math.round(group.steps_to_target)}` : "–");
    const missed = group.diverged ? "diverged" : "not reached";
    element("td", isReached ? {} : { class: "missed" }, row, isReached ? `= ${inSeconds(group.time_to_target_s)}` : missed);
    const factor = data.factors[base][index];
    if (index === base) return element("td", { colspan: 3, class: "quiet" }, row, "the baseline");
    if (!factor) {
      const other = data.groups[base].step_time_s;
      element("td", {}, row, group.step_time_s && other ? times(other / group.step_time_s) : "–");
      element("td", {}, row, "–");
      return element("td", {}, row, "–");
    }
    const [time, byStep, bySteps, least, most] = factor;
    element("td", {}, row, times(byStep));
    const steps = element("td", {}, row, times(bySteps));
    if (least !== null) element("small", {}, steps, `${times(least)} to ${times(most)} by seed`);
    return element("td", { class: "strong" }, row, time >= 1 ? `= ${times(time)} sooner` : `= ${times(1 / time)} later`);
  };

  const drawFactors = (base) => {
    const box = document.getElementById("factors");
    box.replaceChildren();
    const table = element("table", {}, box);
    const head = element("tr", {}, element("thead", {}, table));
    const from = data.groups[base].name;
    for (const text of ["Recipe", "Mean step", "Steps to target", "Time to target", `From step time`, "From steps", `Against ${from}`])
      element("th", { scope: "col" }, head, text);
    const body = element("tbody", {}, table);
    data.groups.forEach((_, index) => factorRow(body, index, base));
  };

  const drawBase = () => {
    const choice = document.getElementById("baseline");
    data.groups.forEach((group, index) => element("option", { value: index }, choice, group.name));
    const first = data.groups.findIndex((group) => group.time_to_target_s !== null);
    choice.value = Math.max(0, first);
    choice.addEventListener("change", () => drawFactors(+choice.value));
    drawFactors(+choice.value);
  };

  // Bars of a mean step: of the recipe, and thin ones of its replicas where they differ.
  const rowsOf = (group, index) => {
    const all = [{ name: group.name, values: group.mean_step_s, index, height: 18 }];
    const shares = group.by_replica_s.filter((one) => one).map((one) => one[0] / sum(one));
    if (shares.length > 8 || !shares.length || Math.max(...shares) - Math.min(...shares) < 0.02) return all;
    return [...all, ...group.by_replica_s.map((values, i) => ({ name: `replica ${i}`, values, height: 8 }))];
  };

  const drawParts = (isShare) => {
    const box = document.getElementById("parts");
    delete box.dataset.width;
    const rows = data.groups.flatMap((group, index) => (group.mean_step_s ? rowsOf(group, index) : []));
    const longest = Math.max(...rows.map((one) => sum(one.values)));
    const draw = (drawn, width) => {
      const isNarrow = width < 560;
      const left = isNarrow ? 0 : Math.min(240, 20 + 7.4 * Math.max(...rows.map((one) => one.name.length)));
      const right = 72;
      let y = 0;
      for (const one of rows) {
        const total = sum(one.values);
        if (isNarrow && one.index !== undefined) y += 16;
        svg("text", { x: isNarrow ? 0 : left - 10, y: isNarrow ? y - 4 : y + one.height / 2 + 4, class: one.index === undefined ? "" : "name",
          "text-anchor": isNarrow ? "start" : "end" }, drawn, isNarrow && one.index === undefined ? "" : one.name);
        let x = left;
        one.values.forEach((value, part) => {
          const length = (width - left - right) * value / (isShare ? total : longest);
          const rect = svg("rect", { x, y, width: Math.max(0, length - 0.5), height: one.height, class: parts[part][0] }, drawn);
          svg("title", {}, rect, `${one.name}: ${parts[part][1]} ${inSeconds(value)}, ${inPercent(value / total)} of a step`);
          x += length;
        });
        svg("text", { x: x + 6, y: y + one.height / 2 + 4 }, drawn, one.index === undefined ? inPercent(one.values[0] / total) : inSeconds(total));
        const next = rows[rows.indexOf(one) + 1];
        y += one.height + (next && next.index === undefined ? 5 : 12);
      }
      return y + 2;
    };
    box.replaceChildren();
    const inner = element("div", {}, box);
    picture(inner, "Parts of a mean step, by recipe", draw);
  };

  const drawPartSwitch = () => {
    const box = document.getElementById("part-scale");
    for (const [isShare, text] of [[false, "time"], [true, "share"]]) {
      const button = element("button", { "aria-pressed": String(!isShare) }, box, text);
      button.addEventListener("click", () => {
        for (const other of box.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
        drawParts(isShare);
      });
    }
  };

  // Small multiples on one axis of time. A line is {index, points: [[x, y]], isStepped}.
  const panel = (drawn, top, height, at, right, title, lines, show, isLogarithmic) => {
    const all = lines.flatMap((line) => line.points.map((p) => p[1])).filter((v) => v > 0 || !isLogarithmic);
    const scaled = (v) => (isLogarithmic ? Math.log10(Math.max(v, 1e-12)) : v);
    let [low, high] = [Math.min(...all.map(scaled)), Math.max(...all.map(scaled))];
    if (!isLogarithmic) low = 0;
    if (high - low < 1e-9) [low, high] = [low - (isLogarithmic ? 0.3 : 0), high + (isLogarithmic ? 0.3 : 1)];
    const up = (v) => top + height - 4 - (height - 38) * (scaled(v) - low) / (high - low);
    svg("text", { x: 0, y: top + 12, class: "name" }, drawn, title);
    const ends = isLogarithmic ? [10 ** low, 10 ** high] : [low, high];
    for (const v of ends) {
      svg("line", { x1: at(0), x2: right, y1: up(v), y2: up(v), class: "axis" }, drawn);
      svg("text", { x: at(0) - 6, y: up(v) + 4, "text-anchor": "end" }, drawn, show(v));
    }
    for (const { index, points, isStepped } of lines) {
      let path = "";
      points.forEach(([x, y], i) => {
        path += i === 0 ? `M${at(x)},${up(y)}` : isStepped ? `H${at(x)}V${up(y)}` : `L${at(x)},${up(y)}`;
      });
      svg("path", { d: path, class: "curve", style: `stroke:var(${colourName(index)})` }, drawn);
    }
  };

  const drawCourse = () => {
    const planned = data.groups.map((group, index) => ({ group, index })).filter(({ group }) => group.plans.length);
    const varies = ({ group }) => {
      const rates = group.rates.map((p) => p[1]);
      return rates.length > 1 && Math.max(...rates) > 1.05 * Math.min(...rates);
    };
    const all = data.groups.map((group, index) => ({ group, index }));
    const shown = planned.length ? planned : all.filter(varies).slice(0, 1);
    document.getElementById("course").hidden = !shown.length;
    if (!shown.length) return;
    const end = Math.max(...shown.map(({ group }) => group.virtual_s));
    const plans = (column) => shown.filter(({ group }) => group.plans.length).map(({ group, index }) => ({ index, isStepped: true,
      points: [...group.plans.map((p) => [p[0], p[column]]), [group.virtual_s, group.plans[group.plans.length - 1][column]]] }));
    const rates = shown.filter(({ group }) => group.rates.length).map(({ group, index }) => ({ index, isStepped: false,
      points: group.rates.filter((p) => p[0] <= group.virtual_s).map((p) => [p[0], p[1]]) }));
    const panels = [["link rate up, slowest replica", rates, inRate, false], ["keep ratio δ", plans(1), inPercent, true],
      ["delay τ, steps", plans(2), (v) => trimmed(v, 3), false], ["period H, local steps", plans(3), (v) => trimmed(v, 3), false]]
      .filter(([title, lines]) => lines.length && (!title.startsWith("period") || lines.some((line) => line.points.some((p) => p[1] > 1))));
    const legend = document.getElementById("course-legend");
    for (const { group, index } of shown) {
      const key = element("span", {}, legend);
      element("span", { class: "swatch", style: `--swatch:var(${colourName(index)})` }, key);
      key.append(group.name);
    }
    picture(document.getElementById("course-picture"), "Link rate and plan over time", (drawn, width) => {
      const left = 78;
      const at = (seconds) => left + (width - left - 14) * seconds / end;
      panels.forEach(([title, lines, show, isLogarithmic], i) =>
        panel(drawn, i * 108, 98, at, width - 14, title, lines, show, isLogarithmic));
      const bottom = panels.length * 108;
      const tick = niceStep(end, width < 560 ? 3 : 6);
      for (let i = 0; i * tick <= end * 1.0001; ++i)
        svg("text", { x: at(i * tick), y: bottom + 14, "text-anchor": i ? "middle" : "start" }, drawn, inSeconds(i * tick));
      return bottom + 20;
    });
  };

  // Fixed plans by keep ratio and delay; darker is sooner.
  const drawMap = () => {
    if (!data.oracle) return;
    const { cells, judged } = data.oracle;
    const ratios = [...new Set(cells.map((cell) => cell.keep_ratio))].sort((a, b) => a - b);
    const delays = [...new Set(cells.map((cell) => cell.delay_steps))].sort((a, b) => a - b);
    const known = cells.map((cell) => cell.time_s).filter((time) => time !== null);
    const [best, worst] = [Math.min(...known), Math.max(...known)];
    // Where a value lies between columns, in the logarithm.
    const place = (list, value) => {
      if (list.length < 2) return 0;
      const logs = list.map(Math.log);
      let i = logs.findIndex((v) => v >= Math.log(Math.max(value, 1e-9)));
      if (i === -1) return list.length - 1;
      if (i === 0) return 0;
      return i - (logs[i] - Math.log(value)) / (logs[i] - logs[i - 1]);
    };
    picture(document.getElementById("map"), "Time to target over keep ratio and delay", (drawn, width) => {
      const [left, top] = [34, 8];
      const size = (width - left - 6) / Math.max(1, ratios.length);
      const tall = Math.min(34, size);
      const x = (column) => left + size * column;
      const y = (rowAt) => top + tall * (delays.length - 1 - rowAt);
      for (const cell of cells) {
        const [column, rowAt] = [ratios.indexOf(cell.keep_ratio), delays.indexOf(cell.delay_steps)];
        const share = cell.time_s === null ? 0 : worst > best ? 1 - Math.log(cell.time_s / best) / Math.log(worst / best) : 1;
        const rect = svg("rect", { x: x(column) + 1, y: y(rowAt) + 1, width: size - 2, height: tall - 2, rx: 3,
          class: cell.time_s === null ? "cell missed" : "cell", style: `fill-opacity:${(0.1 + 0.8 * share).toFixed(3)}` }, drawn);
        svg("title", {}, rect, `δ ${inPercent(cell.keep_ratio)}, τ ${cell.delay_steps}: ${cell.time_s === null ? "not reached" : inSeconds(cell.time_s)}`);
        const text = cell.time_s === null ? "–" : trimmed(cell.time_s, 3);
        if (size > 30) svg("text", { x: x(column) + size / 2, y: y(rowAt) + tall / 2 + 4, "text-anchor": "middle",
          class: share > 0.55 ? "on" : "" }, drawn, text);
        if (cell.is_best) svg("rect", { x: x(column) + 1, y: y(rowAt) + 1, width: size - 2, height: tall - 2, rx: 3, class: "best" }, drawn);
      }
      judged.forEach((one) => one.ends.forEach(([ratio, delay]) => {
        const dot = svg("circle", { cx: x(place(ratios, ratio)) + size / 2, cy: y(place(delays, delay)) + tall - 8, r: 5, class: "end" }, drawn);
        svg("title", {}, dot, `${one.name} ended at δ ${inPercent(ratio)}, τ ${delay}`);
      }));
      const bottom = top + tall * delays.length;
      ratios.forEach((ratio, i) => svg("text", { x: x(i) + size / 2, y: bottom + 14, "text-anchor": "middle" }, drawn, trimmed(100 * ratio, 2)));
      delays.forEach((delay, i) => svg("text", { x: left - 6, y: y(i) + tall / 2 + 4, "text-anchor": "end" }, drawn, delay));
      svg("text", { x: left + size * ratios.length / 2, y: bottom + 32, "text-anchor": "middle" }, drawn, "keep ratio δ, %   (in cells: seconds to target)");
      svg("text", { x: 0, y: top + 10 }, drawn, "τ");
      return bottom + 38;
    });
  };

  return {
    draw() {
      document.getElementById("why").hidden = !data.groups.length;
      if (!data.groups.length) return;
      drawBase();
      const known = data.groups.some((group) => group.mean_step_s);
      document.getElementById("step-parts").hidden = !known;
      if (known) {
        drawPartSwitch();
        drawParts(false);
      }
      drawCourse();
      drawMap();
    },
  };
})();
