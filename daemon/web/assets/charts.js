// Draws the charts of a page. The numbers, and the words for them, are the lab's.
"use strict";

const HEIGHT = 300;
const drawn = [];

// What a colour of the page's styles is in this theme.
function colour(name, on) {
  const probe = document.createElement("span");
  probe.hidden = true;
  probe.style.color = `var(${name})`;
  on.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const faint = (stroke) => stroke.replace("rgb(", "rgba(").replace(")", ", 0.2)");

// How curves of each shape are drawn.
const SHAPES = {
  line: (fill) => ({ width: 1.5, points: { show: true, size: 6, fill } }),
  level: () => ({ width: 1.5, points: { show: false }, spanGaps: true }),
  points: (fill) => ({ paths: () => null, points: { show: true, size: 5, fill } }),
  bars: (fill) => ({ width: 1, fill: faint(fill), paths: uPlot.paths.bars({ size: [1, Infinity] }), points: { show: false } }),
  steps: (fill) => ({ width: 1.5, paths: uPlot.paths.stepped({ align: 1 }), points: { show: true, size: 6, fill }, spanGaps: true }),
};

// A series is three lines: its values, and the ends of their intervals with what is between them filled.
function lines(series, stroke) {
  const shape = SHAPES[series.shape](stroke);
  const end = { ...shape, class: "end", stroke: "transparent", fill: undefined, points: { show: false } };
  const words = (_plot, _value, _series, index) => (index === null ? "" : series.words[index]);
  return [{ label: series.name, stroke, ...shape, value: words }, end, end];
}

function draw(figure) {
  const chart = JSON.parse(figure.dataset.chart);
  const place = figure.querySelector(".chart");
  const [ink, line] = [colour("--ink", figure), colour("--line", figure)];
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const name = (_plot, _value, _series, index) => (index === null ? "" : chart.names[index]);
  const strokes = chart.series.map((series) => colour("--part", figure.querySelector(`.part-${series.part}`)));
  const hasBars = chart.series.some((series) => series.shape === "bars");
  const plot = new uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      scales: {
        x: { time: false, ...(chart.ends ? { range: chart.ends } : {}) },
        // Bars stand on zero.
        y: hasBars ? { range: { min: { pad: 0, soft: 0, mode: 1 }, max: { pad: 0.1, soft: 0, mode: 1 } } } : {},
      },
      axes: [
        { ...axis, label: chart.across, ...(chart.whole ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000] } : {}) },
        { ...axis, label: chart.unit, size: 70 },
      ],
      series: [{ label: chart.across, value: name }, ...chart.series.flatMap((series, index) => lines(series, strokes[index]))],
      bands: chart.series.map((_series, index) => ({ series: [3 * index + 3, 3 * index + 2], fill: faint(strokes[index]) })),
    },
    [chart.at, ...chart.series.flatMap((series) => [series.values, series.low, series.high])],
    place,
  );
  plot.over.addEventListener("click", () => follow(plot));
  drawn.push({ figure, plot, links: chart.links });
}

// Where a place is a page of its own, it leads there.
function follow(plot) {
  const link = drawn.find((one) => one.plot === plot)?.links[plot.cursor.idx];
  if (link) location.assign(link);
}

// With the keyboard, the arrows lead from place to place, and Enter to the page of one.
function key(event) {
  const figure = event.target.closest?.(".chart")?.closest("figure");
  const plot = drawn.find((one) => one.figure === figure)?.plot;
  if (!plot) return;
  if (event.key === "Enter") follow(plot);
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const at = plot.data[0];
  const { idx } = plot.cursor;
  const next = idx === null || idx === undefined ? 0 : Math.min(at.length - 1, Math.max(0, idx + by));
  plot.setCursor({ left: plot.valToPos(at[next], "x"), top: 0 });
}

function drawAll() {
  for (const { plot } of drawn.splice(0)) plot.destroy();
  document.querySelectorAll("figure[data-chart]").forEach(draw);
}

drawAll();
document.addEventListener("keydown", key);
// Another script says that it has put other charts in the place of these.
document.addEventListener("replaced", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
addEventListener("resize", () => {
  for (const { figure, plot } of drawn) plot.setSize({ width: figure.querySelector(".chart").clientWidth, height: HEIGHT });
});
