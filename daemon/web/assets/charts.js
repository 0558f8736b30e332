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

// A series is three lines: its values, and the ends of their intervals with what is between them filled.
function lines(series, place) {
  const key = place.querySelector(`.part-${series.part}`);
  const stroke = colour("--part", key);
  const end = { class: "end", stroke: "transparent", points: { show: false } };
  const words = (_plot, _value, _series, index) => (index === null ? "" : series.words[index]);
  return [
    { label: series.name, stroke, width: 1.5, points: { show: true, size: 6, fill: stroke }, value: words },
    end,
    end,
  ];
}

function draw(figure) {
  const chart = JSON.parse(figure.dataset.chart);
  const place = figure.querySelector(".chart");
  const [ink, line] = [colour("--ink", figure), colour("--line", figure)];
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const name = (_plot, _value, _series, index) => (index === null ? "" : chart.names[index]);
  const plot = new uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      scales: { x: { time: false } },
      axes: [
        { ...axis, label: chart.across, incrs: [1, 2, 5, 10, 20, 50, 100] },
        { ...axis, label: chart.unit, size: 70 },
      ],
      series: [{ label: chart.across, value: name }, ...chart.series.flatMap((series) => lines(series, figure))],
      bands: chart.series.map((series, index) => ({
        series: [3 * index + 3, 3 * index + 2],
        fill: colour("--part", figure.querySelector(`.part-${series.part}`)).replace("rgb(", "rgba(").replace(")", ", 0.2)"),
      })),
    },
    [chart.at, ...chart.series.flatMap((series) => [series.values, series.low, series.high])],
    place,
  );
  drawn.push({ figure, plot });
}

// With the keyboard, the arrows lead from layer to layer.
function step(event) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const plot = drawn.find((one) => one.figure === event.currentTarget.closest("figure"))?.plot;
  if (!by || !plot) return;
  event.preventDefault();
  const at = plot.data[0];
  const next = plot.cursor.idx === null ? 0 : Math.min(at.length - 1, Math.max(0, plot.cursor.idx + by));
  plot.setCursor({ left: plot.valToPos(at[next], "x"), top: 0 });
}

function drawAll() {
  for (const { plot } of drawn.splice(0)) plot.destroy();
  document.querySelectorAll("figure[data-chart]").forEach(draw);
}

drawAll();
document.querySelectorAll("figure[data-chart] .chart").forEach((place) => place.addEventListener("keydown", step));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
addEventListener("resize", () => {
  for (const { figure, plot } of drawn) plot.setSize({ width: figure.querySelector(".chart").clientWidth, height: HEIGHT });
});
