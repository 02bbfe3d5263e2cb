// The time line: what replicas and lines did in the first steps. A span is
// [replica, activity, begin, end, step, queued, latency, part].
"use strict";

report.timeline = (() => {
  const { data, inSeconds, niceStep, element, svg, picture } = report;
  const activities = ["compute", "send", "receive", "wait"];
  const words = ["computes", "sends its update", "receives the mean", "waits"];
  const laneOf = [0, 1, 2, 0];
  const mostReplicas = 8;
  const lane = 8;
  const row = 3 * lane + 8;

  // Two steps of the slowest recipe, or all that the shortest one recorded, whichever is longer.
  const windowOf = (groups) => {
    const ends = groups.map((group) => Math.max(...group.timeline.map((span) => span[3])));
    const steps = groups.map((group, i) => ends[i] / (1 + Math.max(...group.timeline.map((span) => span[4]))));
    return Math.max(2 * Math.max(...steps), Math.min(...ends));
  };

  const bar = (parent, at, range, begin, end, y, name, title) => {
    if (begin >= range || !(end > begin)) return;
    const rect = svg("rect", { x: at(begin), y, height: lane - 1, class: name,
      width: Math.max(0.6, at(Math.min(end, range)) - at(begin) - 0.4) }, parent);
    svg("title", {}, rect, title);
  };

  const drawSpan = (parent, at, range, [replica, activity, begin, end, step, queued, latency]) => {
    const y = replica * row + laneOf[activity] * lane + 2;
    const name = activities[activity];
    const title = `replica ${replica}, step ${step + 1}: ${words[activity]}, ${inSeconds(begin)} to ${inSeconds(end)}`;
    if (activity === 0 || activity === 3) return bar(parent, at, range, begin, end, y, name, title);
    const parts = `${title} (${inSeconds(end - begin - queued - latency)} on the line, ${inSeconds(latency)} latency` +
      `${queued > 1e-6 ? `, ${inSeconds(queued)} queued` : ""})`;
    bar(parent, at, range, begin, begin + queued, y + lane / 2 - 1, `${name} queued`, parts);
    bar(parent, at, range, begin + queued, end - latency, y, name, parts);
    bar(parent, at, range, end - latency, end, y, `${name} flight`, parts);
  };

  // The delay of the plan at that time.
  const delayAt = (group, time) => {
    const known = group.plans.filter((plan) => plan[0] <= time);
    return known.length ? known[known.length - 1][2] : group.delay_steps;
  };
  // From the end of an update's gradient to the step that merges its mean: shows the delay τ, which it returns.
  const drawPath = (parent, at, range, group) => {
    const of = (activity, step) => group.timeline.find((span) => span[0] === 0 && span[1] === activity && span[4] === step);
    for (let step = 1; step < 12; ++step) {
      const [born, back] = [of(0, step), of(2, step)];
      const delay = born ? delayAt(group, born[3]) : 0;
      const merged = of(0, step + delay + 1);
      if (!delay || !back || !merged || merged[2] > range || merged[2] < back[3] - 1e-9) continue;
      const points = [[born[3], lane / 2 + 2], [born[3], 1.5 * lane + 2], [back[3], 2.5 * lane + 2], [merged[2], lane / 2 + 2]];
      svg("polyline", { points: points.map(([time, y]) => `${at(time)},${y}`).join(" "), class: "path" }, parent);
      svg("circle", { cx: at(merged[2]), cy: lane / 2 + 2, r: 2.5, class: "merge" }, parent);
      return delay;
    }
    return 0;
  };

  const drawGroup = (group, range) => {
    const replicas = Math.min(mostReplicas, 1 + Math.max(...group.timeline.map((span) => span[0])));
    const box = element("div", { class: "timeline" });
    const title = element("h3", {}, box, `${group.name} `);
    const remark = element("small", {}, title);
    document.getElementById("timelines").append(box);
    picture(element("div", {}, box), `Time line of ${group.name}`, (drawn, width) => {
      const left = width < 560 ? 26 : 70;
      const height = replicas * row + 18;
      const at = (seconds) => left + (width - left - 12) * seconds / range;
      const tick = niceStep(range, width < 560 ? 3 : 6);
      for (let i = 0; i * tick <= range * 1.0001; ++i) {
        svg("line", { x1: at(i * tick), x2: at(i * tick), y1: 0, y2: height - 18, class: "axis" }, drawn);
        svg("text", { x: at(i * tick), y: height - 4, "text-anchor": i ? "middle" : "start" }, drawn, inSeconds(i * tick));
      }
      for (let i = 0; i < replicas; ++i) svg("text", { x: 0, y: i * row + 18 }, drawn, width < 560 ? `${i}` : `replica ${i}`);
      for (const span of group.timeline) if (span[0] < replicas) drawSpan(drawn, at, range, span);
      const delay = drawPath(drawn, at, range, group);
      remark.textContent = delay ? `the dashed line follows one update: its mean is merged ${delay} ${delay > 1 ? "steps" : "step"} later (τ)` : "";
      return height;
    });
  };

  return {
    draw() {
      const groups = data.groups.filter((group) => group.timeline.length);
      document.getElementById("timeline").hidden = !groups.length;
      for (const group of groups) drawGroup(group, windowOf(groups));
    },
  };
})();
