// Draws the report from the JSON in #data. When it has drawn, the page says what is on it:
// data-drawn="5 charts", data-blank, data-timelines, data-schedules, data-bars, data-overflow and data-errors of its body.
"use strict";

(() => {
  const { charts } = report.curves;

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
    const told = document.body.dataset;
    told.blank = charts.filter((chart) => isBlank(chart.canvas)).length;
    told.timelines = [...document.querySelectorAll(".timeline")].filter((line) => line.querySelector("rect")).length;
    told.schedules = [...document.querySelectorAll(".schedule")].filter((one) => one.querySelector("rect.send")).length;
    told.exposed = document.querySelectorAll(".schedule rect.exposed").length;
    told.bars = document.querySelectorAll("#parts rect").length;
    told.course = document.querySelectorAll("#course-picture path").length;
    told.cells = document.querySelectorAll("#map .cell").length;
    told.overflow = Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth);
    told.drawn = `${charts.length} charts`;
  };

  let errors = 0;
  window.addEventListener("error", () => { document.body.dataset.errors = ++errors; });
  document.body.dataset.errors = 0;
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  report.curves.draw();
  report.why.draw();
  report.schedule.draw();
  report.timeline.draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", report.curves.drawAll);
  // A timer, because frames are not drawn where nobody looks: in a hidden tab, or in a test.
  setTimeout(tellWhatIsDrawn);
})();
