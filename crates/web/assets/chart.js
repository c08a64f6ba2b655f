// The graph: rates above, round trips below, over one time axis. Download is a solid line, upload a dashed one, so that it can
// be read without colours.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 72, right: 8, top: 26 };
const PANEL = { rate: 150, delay: 110, gap: 30, axis: 22 };

function element(parent, name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// The smallest of 1, 2, 5 times a power of ten that is not below `value`.
function nice(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= value * 0.999);
}

function rateText(rate) {
  const units = [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"]];
  const [factor, unit] = units.find(([factor]) => rate >= factor) ?? [1, "bit/s"];
  return `${Number((rate / factor).toPrecision(3))} ${unit}`;
}

function timeText(milliseconds) {
  return milliseconds >= 1000 ? `${Number((milliseconds / 1000).toPrecision(3))} s` : `${Number(milliseconds.toPrecision(3))} ms`;
}

// Draws the data into the place: `rates` has points [seconds, bit/s] per direction, `pings` [seconds, milliseconds].
function drawGraph(place, data) {
  const width = Math.max(280, place.clientWidth);
  const height = MARGIN.top + PANEL.rate + PANEL.gap + PANEL.delay + PANEL.axis;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", data.summary);
  const end = Math.max(5, data.end);
  const x = (seconds) => MARGIN.left + (seconds / end) * (width - MARGIN.left - MARGIN.right);
  const all = [...data.rates.down, ...data.rates.up];
  panel(svg, { top: MARGIN.top, height: PANEL.rate, width, title: "Rate", most: nice(Math.max(0, ...all.map(([, rate]) => rate))), text: rateText }, (y) => {
    for (const direction of ["down", "up"]) {
      const points = data.rates[direction].map(([at, rate]) => `${x(at).toFixed(1)},${y(rate).toFixed(1)}`);
      if (points.length > 1) element(svg, "polyline", { class: direction, points: points.join(" ") });
    }
  });
  const top = MARGIN.top + PANEL.rate + PANEL.gap;
  panel(svg, { top, height: PANEL.delay, width, title: "Round trip", most: nice(Math.max(0, ...data.pings.map(([, time]) => time))), text: timeText }, (y) => {
    for (const [at, time] of data.pings) element(svg, "circle", { class: "ping", cx: x(at).toFixed(1), cy: y(time).toFixed(1), r: 2 });
  });
  for (const { name, at } of data.phases) {
    element(svg, "line", { class: "axis border", x1: x(at), x2: x(at), y1: MARGIN.top, y2: top + PANEL.delay });
    element(svg, "text", { x: x(at) + 4, y: MARGIN.top - 7 }, name);
  }
  const step = nice(end / Math.max(2, Math.floor(width / 90)));
  for (let second = 0; second <= end; second += step) {
    const anchor = second === 0 ? "start" : "middle";
    if (x(second) < width - 12) element(svg, "text", { x: x(second), y: height - 4, "text-anchor": anchor }, `${second} s`);
  }
  place.replaceChildren(svg);
}

function panel(svg, { top, height, width, title, most, text }, draw) {
  element(svg, "text", { class: "title", x: 0, y: top - 10 }, title);
  for (const share of [0, 0.5, 1]) {
    const y = top + height * (1 - share);
    element(svg, "line", { class: "axis", x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y });
    const label = share === 0 ? "0" : text(most * share);
    element(svg, "text", { x: MARGIN.left - 6, y: y + 4, "text-anchor": "end" }, label);
  }
  draw((value) => top + height * (1 - Math.min(1, value / most)));
}
