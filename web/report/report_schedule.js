// The schedule of a recipe by layer: which part of the model is on the line when, in one period of replica 0, and which
// waits it causes.
"use strict";

report.schedule = (() => {
  const { data, inSeconds, inPercent, element, svg, picture } = report;
  const [compute, send, receive, wait] = [0, 1, 2, 3]; // activities of a span: see report_timeline.js
  const row = 15;
  const bar = 9;

  // The last period whose waits were recorded too. A step begins with its forward pass, which waits for the step before.
  const periodOf = (group) => {
    // In real time there are moments of computing and waiting that say nothing.
    const spans = group.timeline.filter((span) => span[0] === 0 && span[3] - span[2] > 2e-4);
    const steps = 1 + Math.max(...spans.filter((span) => span[1] === compute).map((span) => span[4]));
    const length = group.layers.period_steps;
    const first = Math.max(0, Math.floor((steps - 1) / length) - 1) * length;
    const begins = [];
    for (let step = first; step <= first + length; ++step) {
      const isBegun = (activity) => activity === compute || (activity === wait && step > first);
      const times = spans.filter((span) => span[4] === step && isBegun(span[1])).map((span) => span[2]);
      if (times.length) begins.push(Math.min(...times));
    }
    const isOf = (span) => span[4] >= first && span[4] < first + length;
    const trips = spans.filter((span) => (span[1] === send || span[1] === receive) && isOf(span));
    const end = Math.max(...spans.filter((span) => span[4] <= first + length && span[1] === compute).map((span) => span[3]),
      ...trips.map((span) => span[3]));
    // Waits of the first step are for rounds of the period before.
    const waits = spans.filter((span) => span[1] === wait && span[4] > first && span[4] <= first + length);
    return { first, length, begins, end, trips, waits,
      computing: spans.filter((span) => span[1] === compute && span[2] >= begins[0] && span[2] < end) };
  };

  const exposedOf = (period, part) => period.waits.filter((span) => span[7] === part).reduce((sum, span) => sum + span[3] - span[2], 0);

  const drawRows = (drawn, group, period, at, width, top) => {
    const rect = (begin, end, y, name, title, height = bar) => {
      if (!(end > begin)) return;
      const made = svg("rect", { x: at(begin), y, height, width: Math.max(0.6, at(Math.min(end, period.end)) - at(begin)), class: name }, drawn);
      svg("title", {}, made, title);
    };
    for (const [, , begin, end, step] of period.computing)
      rect(begin, end, 16, "compute", `step ${step - period.first + 1} of the period computes, ${inSeconds(end - begin)}`);
    for (const [, activity, begin, end, step, queued, latency, part] of period.trips) {
      const y = top + part * row;
      const way = activity === send ? "up" : "down";
      const title = `${group.layers.names[part]}, step ${step - period.first + 1}: ${inSeconds(end - begin - queued - latency)} on the line ${way}`;
      rect(begin, begin + queued, y + bar / 2 - 1, `${way === "up" ? "send" : "receive"} queued`, `${title}, queued ${inSeconds(queued)}`, 2);
      rect(begin + queued, end - latency, y, way === "up" ? "send" : "receive", title);
      rect(end - latency, end, y, "flight", `${title}, latency ${inSeconds(latency)}`);
    }
    for (const [, , begin, end, , , , part] of period.waits)
      rect(begin, end, top + part * row + bar, "exposed", `the replica waits ${inSeconds(end - begin)} for ${group.layers.names[part]}`, 4);
    group.layers.names.forEach((name, part) => {
      const exposed = exposedOf(period, part);
      svg("text", { x: 0, y: top + part * row + bar, class: "name" }, drawn, name);
      svg("text", { x: width, y: top + part * row + bar, "text-anchor": "end" }, drawn, exposed > 0 ? `waits ${inSeconds(exposed)}` : "no wait");
    });
  };

  const remarkOf = ({ hidden_share: hidden, exposed_s: exposed, planned_hidden_share: share, planned_exposed_s: late }) => {
    const planned = share === null ? "" : `; planned: ${inPercent(share)} and ${inSeconds(late)}`;
    return hidden === null ? "" : `${inPercent(hidden)} of the communication hidden, ${inSeconds(exposed)} exposed in a period${planned}`;
  };

  const drawGroup = (group) => {
    const period = periodOf(group);
    const box = element("div", { class: "schedule" });
    element("small", {}, element("h3", {}, box, `${group.name} `), remarkOf(group.layers));
    document.getElementById("schedules").append(box);
    picture(element("div", {}, box), `Schedule of ${group.name}`, (drawn, width) => {
      const left = 12 + 7 * Math.max(...group.layers.names.map((name) => name.length));
      const top = 34;
      const height = top + group.layers.names.length * row + 4;
      const at = (seconds) => left + (width - left - 88) * (seconds - period.begins[0]) / (period.end - period.begins[0]);
      svg("text", { x: 0, y: 12 }, drawn, "step");
      period.begins.forEach((begin, i) => {
        svg("line", { x1: at(begin), x2: at(begin), y1: 0, y2: height, class: "axis" }, drawn);
        if (i < period.length) svg("text", { x: at(begin) + 3, y: 12 }, drawn, i + 1);
      });
      drawRows(drawn, group, period, at, width, top);
      return height;
    });
  };

  return {
    draw() {
      const groups = data.groups.filter((group) => group.layers && group.timeline.length);
      document.getElementById("schedule").hidden = !groups.length;
      groups.forEach(drawGroup);
    },
  };
})();
