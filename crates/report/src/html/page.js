"use strict";

// The page's behaviour: numbers as the report writes them, unpacking of samples, and charts that share one cursor.
// Text from the document only ever becomes text nodes.
const linerate = (() => {
  // ---- Numbers, as crates/units writes them: three significant digits, a space, the unit.

  // Halves go to the even digit, as elsewhere in the report; toFixed rounds them up. A binary number is a half of a
  // digit only if it is a whole multiple of that half.
  function fixed(number, digits) {
    const power = 10 ** digits;
    const scaled = number * power;
    if (Number.isInteger(number * 2 ** (digits + 1)) && scaled % 1 === 0.5) {
      return (2 * Math.round(scaled / 2) / power).toFixed(digits);
    }
    return number.toFixed(digits);
  }

  function threeDigits(number) {
    return fixed(number, number < 9.995 ? 2 : number < 99.95 ? 1 : 0);
  }

  function scaled(number, prefixes, unit) {
    let power = 0;
    while (number >= 999.5 && power + 1 < prefixes.length) {
      number /= 1000;
      power += 1;
    }
    return `${threeDigits(number)} ${prefixes[power]}${unit}`;
  }

  const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];

  function duration(nanoseconds) {
    const seconds = nanoseconds / 1e9;
    if (nanoseconds === 0) return "0 s";
    if (nanoseconds < 1000) return `${nanoseconds} ns`;
    if (seconds < 9.95e-6) return `${fixed(seconds * 1e6, 1)} µs`;
    if (seconds < 999.5e-6) return `${fixed(seconds * 1e6, 0)} µs`;
    if (seconds < 0.9995) return `${threeDigits(seconds * 1e3)} ms`;
    if (seconds < 59.95) return `${threeDigits(seconds)} s`;
    const whole = Math.floor(seconds) + (seconds % 1 >= 0.4995 ? 1 : 0);
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    const minutes = Math.floor(seconds / 60) + (Math.floor(seconds) % 60 >= 30 ? 1 : 0);
    return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  }

  function percent(share) {
    const number = share * 100;
    if (number === 0) return "0 %";
    if (number < 0.0001) return `${number.toExponential(2)} %`;
    if (number >= 0.995) return `${threeDigits(number)} %`;
    const decimals = 3 + [0.1, 0.01, 0.001, 0.0001].filter((limit) => number < limit).length;
    return `${fixed(number, decimals).replace(/0+$/, "")} %`;
  }

  function plain(number) {
    if (Number.isInteger(number) || number >= 999.5) {
      const digits = fixed(number, 0);
      return digits.length <= 4 ? digits : digits.replace(/\B(?=(\d{3})+$)/g, "\u202f");
    }
    return fixed(number, number < 9.995 ? 2 : number < 99.95 ? 1 : 0);
  }

  function counted(number, noun) {
    return `${plain(number)} ${noun}${number === 1 ? "" : "s"}`;
  }

  const UNITS = {
    "bit/s": (n) => (n === 0 ? "0 bit/s" : scaled(n, PREFIXES, "bit/s")),
    "B": (n) => (n < 9999.5 ? `${fixed(n, 0)} B` : scaled(n, PREFIXES, "B")),
    "ns": (n) => duration(Math.round(n)),
    "share": percent,
    "packets": (n) => counted(n, "packet"),
    "segments": (n) => counted(n, "segment"),
    "round-trips/min": (n) => `${plain(n)} RPM`,
    "1": plain,
  };

  function shown(value, unit) {
    if (!Number.isFinite(value)) return "unknown";
    return (value < 0 ? "-" : "") + UNITS[unit](Math.abs(value));
  }

  // An axis has one scale, so that its numbers can be short: factor and unit name for the largest value.
  function axisUnit(unit, largest) {
    const steps = {
      "bit/s": PREFIXES.map((prefix, power) => [1000 ** power, `${prefix}bit/s`]),
      "B": PREFIXES.map((prefix, power) => [1000 ** power, `${prefix}B`]),
      "ns": [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]],
      "share": [[0.01, "%"]],
      "packets": [[1, "packets"]],
      "segments": [[1, "segments"]],
      "round-trips/min": [[1, "RPM"]],
      "1": [[1, ""]],
    }[unit];
    return steps.filter(([factor]) => 2 * factor <= largest).pop() || steps[0];
  }

  // ---- Samples, as packed by pack.rs.

  function bytes(text) {
    const binary = atob(text);
    const result = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i += 1) result[i] = binary.charCodeAt(i);
    return result;
  }

  function numbers(text) {
    const packed = bytes(text);
    const result = [];
    let number = 0;
    let power = 1;
    for (const byte of packed) {
      number += (byte & 0x7f) * power;
      power *= 128;
      if (byte < 0x80) {
        result.push(number);
        number = 0;
        power = 1;
      }
    }
    return result;
  }

  function times(text) {
    let sum = 0;
    return numbers(text).map((step) => (sum += step));
  }

  function values(packed) {
    if (packed.real !== undefined) {
      return Array.from(new Float64Array(bytes(packed.real).buffer), (value) => (Number.isNaN(value) ? null : value));
    }
    let last = 0;
    return numbers(packed.whole).map((code) => {
      if (code === 0) return null;
      const zigzag = code - 1;
      last += zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
      return last;
    });
  }

  // Series of different times on one axis: `undefined` where a series has no sample, which is no gap.
  function aligned(series) {
    const places = new Float64Array([...new Set(series.flatMap((one) => one.x))]).sort();
    const at = new Map();
    places.forEach((x, index) => at.set(x, index));
    const columns = series.map((one) => {
      const column = new Array(places.length);
      one.x.forEach((x, index) => { column[at.get(x)] = one.y[index]; });
      return column;
    });
    return [Array.from(places), ...columns];
  }

  // Index of the sample that is nearest to `index`.
  function nearest(column, places, index, x) {
    if (column[index] !== undefined) return index;
    let left = index;
    let right = index;
    while (left >= 0 && column[left] === undefined) left -= 1;
    while (right < column.length && column[right] === undefined) right += 1;
    if (left < 0) return right < column.length ? right : null;
    if (right >= column.length) return left;
    return x - places[left] <= places[right] - x ? left : right;
  }

  // ---- Elements.

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function token(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  // Series differ by colour and by dashes, areas by colour and pattern, as in the pictures.
  const COLOURS = 8;
  const DASHES = [[], [9, 4], [2, 3], [9, 3, 2, 3], [15, 4], [5, 3], [2, 6], [12, 3, 2, 3, 2, 3]];
  const colour = (index) => token(`--series-${(index % COLOURS) + 1}`);
  const dash = (index) => DASHES[index % COLOURS];

  function hatch(plot, index) {
    const tile = element("canvas");
    tile.width = tile.height = 8;
    const context = tile.getContext("2d");
    context.fillStyle = colour(index);
    context.fillRect(0, 0, 8, 8);
    context.strokeStyle = token("--surface");
    context.globalAlpha = 0.6;
    context.lineWidth = 1.2;
    const lines = document.querySelector(`#look-${(index % COLOURS) + 1} path`).getAttribute("d");
    if (lines) context.stroke(new Path2D(lines));
    return plot.ctx.createPattern(tile, "repeat");
  }

  // ---- Charts.

  const charts = [];
  let active = null;

  // The mark of a series in legends and tooltips: the one of the picture's legend.
  function swatch(chart, index) {
    return chart.figure.querySelectorAll(".legend.static .swatch")[index].cloneNode(true);
  }

  // Shows a chart's value under the cursor in a line of the legend or the tooltip.
  function write(data, reading) {
    data.textContent = reading ? reading.text : "";
    if (reading) {
      data.value = String(reading.value);
      data.dataset.unit = reading.unit;
      data.dataset.at = String(reading.at);
    } else {
      data.removeAttribute("value");
      delete data.dataset.unit;
      delete data.dataset.at;
    }
  }

  function legend(chart) {
    const list = element("ul", "legend");
    chart.values = chart.spec.names.map((name, index) => {
      const item = element("li");
      const button = element("button");
      button.type = "button";
      button.setAttribute("aria-pressed", String(chart.spec.series[chart.spec.place(index) - 1].show !== false));
      const data = element("data", "", "");
      button.append(swatch(chart, index), element("span", "", name), data);
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(on));
        for (const place of [chart.spec.place(index), chart.spec.curve?.(index)]) {
          if (place) chart.plot.setSeries(place, { show: on });
        }
      });
      item.append(button);
      list.append(item);
      return data;
    });
    return list;
  }

  function tooltip(chart) {
    const box = element("div", "tooltip");
    box.hidden = true;
    box.setAttribute("aria-hidden", "true");
    chart.tipHead = element("p");
    box.append(chart.tipHead);
    chart.tipValues = chart.spec.names.map((name, index) => {
      const row = element("div");
      const data = element("data");
      row.append(swatch(chart, index), element("span", "", name), data);
      box.append(row);
      return data;
    });
    return box;
  }

  function follow(chart) {
    const { plot, spec } = chart;
    const { left, idx } = plot.cursor;
    const inside = idx !== null && idx !== undefined && left >= 0;
    const samples = spec.names.map((_, index) => {
      const place = spec.place(index);
      return inside && plot.series[place].show ? spec.reading(plot, index, plot.cursor.idxs[place]) : null;
    });
    chart.values.forEach((data, index) => write(data, inside ? samples[index] : null));
    chart.tip.hidden = !(inside && active === chart);
    if (chart.tip.hidden) return;
    chart.tipHead.textContent = spec.head(plot, plot.data[0][idx]);
    chart.tipValues.forEach((data, index) => {
      data.parentElement.hidden = !plot.series[spec.place(index)].show;
      write(data, samples[index]);
    });
    const offset = plot.over.offsetLeft + left;
    const room = chart.place.clientWidth;
    const width = chart.tip.offsetWidth;
    const flipped = offset + 14 + width > room ? offset - 14 - width : offset + 14;
    chart.tip.style.left = `${Math.max(0, Math.min(flipped, room - width))}px`;
  }

  // A zoom of one chart applies to all charts of the same run over time.
  let zooming = false;
  function zoom(chart) {
    const { min, max } = chart.plot.scales.x;
    chart.reset.hidden = !chart.ready || (min <= chart.range[0] && max >= chart.range[1]);
    if (zooming || !chart.ready || chart.spec.group === null) return;
    zooming = true;
    for (const other of charts) {
      if (other !== chart && other.ready && other.spec.group === chart.spec.group) other.plot.setScale("x", { min, max });
    }
    zooming = false;
  }

  function setRange(chart, min, max) {
    const [first, last] = chart.range;
    chart.plot.setScale("x", { min: Math.max(first, min), max: Math.min(last, max) });
  }

  // Moves the cursor by `pixels`, or to the next sample where that is farther.
  function move(chart, pixels) {
    const { plot } = chart;
    const xs = plot.data[0];
    const width = plot.over.clientWidth;
    const from = plot.cursor.left >= 0 ? plot.cursor.left : pixels > 0 ? -1 : width;
    const goal = from + pixels;
    let index = plot.posToIdx(Math.max(0, Math.min(goal, width)));
    const position = (i) => Math.round(plot.valToPos(xs[i], "x"));
    while (pixels > 0 && index + 1 < xs.length && position(index) <= from) index += 1;
    while (pixels < 0 && index > 0 && position(index) >= from) index -= 1;
    place(chart, index);
  }

  // Moves the cursor of all charts of the run, which are equally wide, to one position.
  function cursor(chart, left) {
    for (const other of charts) {
      if (other !== chart && (other.spec.group === null || other.spec.group !== chart.spec.group)) continue;
      other.plot.setCursor({ left, top: left < 0 ? left : other.plot.over.clientHeight / 2 });
    }
  }

  function place(chart, index) {
    const { plot, spec } = chart;
    const left = Math.round(plot.valToPos(plot.data[0][index], "x"));
    if (left < 0 || left > plot.over.clientWidth) return;
    cursor(chart, left);
    const values = spec.names.map((name, i) => {
      const reading = plot.series[spec.place(i)].show ? spec.reading(plot, i, plot.cursor.idxs[spec.place(i)]) : null;
      return reading ? `${name} ${reading.text}` : null;
    });
    chart.live.textContent = [spec.head(plot, plot.data[0][index]), ...values.filter(Boolean)].join(", ");
  }

  function pressed(chart, event) {
    const { plot } = chart;
    const { min, max } = plot.scales.x;
    const step = event.shiftKey ? 50 : 1;
    const centre = plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") : (min + max) / 2;
    const zoomBy = (factor) => setRange(chart, centre - (centre - min) * factor, centre + (max - centre) * factor);
    const keys = {
      ArrowRight: () => move(chart, step),
      ArrowLeft: () => move(chart, -step),
      PageDown: () => move(chart, plot.over.clientWidth / 10),
      PageUp: () => move(chart, -plot.over.clientWidth / 10),
      Home: () => place(chart, plot.valToIdx(min)),
      End: () => place(chart, plot.valToIdx(max)),
      "+": () => zoomBy(0.5),
      "-": () => zoomBy(2),
      "0": () => setRange(chart, ...chart.range),
      Escape: () => cursor(chart, -10),
    };
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    active = chart;
    action();
  }

  function size(chart) {
    return { width: Math.max(chart.place.clientWidth, 240), height: chart.spec.height };
  }

  function axis(extra) {
    const line = { stroke: () => token("--line"), width: 1 };
    return { stroke: () => token("--muted"), grid: line, ticks: { show: false }, font: "12px system-ui, sans-serif", ...extra };
  }

  // Draws `spec` into `figure`; the plots next to this file make the specifications.
  function draw(figure, spec) {
    const place = figure.querySelector(".place");
    place.hidden = false;
    const chart = { figure, place, spec, ready: false };
    figure.querySelector(".unit").textContent = spec.unitName;
    const xs = spec.data[0];
    chart.range = spec.extent ?? [xs[0], xs[xs.length - 1]];
    const options = {
      ...size({ place, spec }),
      legend: { show: false },
      padding: [14, 20, 0, 0],
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: true },
        points: { size: 7 },
        bind: { dblclick: () => () => { setRange(chart, ...chart.range); return null; } },
        dataIdx: (plot, series, index, x) => (series === 0 ? index : nearest(plot.data[series], plot.data[0], index, x)),
        ...(spec.group === null ? {} : {
          sync: {
            key: spec.group,
            setSeries: false,
            scales: ["x", null],
            filters: { pub: (type) => type === "mousemove" || type === "mouseleave" },
          },
        }),
      },
      scales: {
        x: { time: false, min: chart.range[0], max: chart.range[1], ...spec.x },
        y: { range: (plot, low, high) => spec.range(low, high) },
      },
      axes: [
        axis({ size: 30, values: (plot, splits) => splits.map(spec.xLabel), ...spec.xAxis }),
        axis({ size: 52, values: (plot, splits) => splits.map(spec.yLabel), ...spec.yAxis }),
      ],
      series: [{}, ...spec.series],
      bands: spec.bands,
      hooks: {
        drawClear: [spec.background],
        setCursor: [(plot) => { if (chart.plot) follow(chart); }],
        setScale: [(plot, key) => { if (chart.plot && key === "x") zoom(chart); }],
      },
    };
    chart.tip = tooltip(chart);
    chart.live = element("output", "hidden");
    chart.reset = element("button", "reset", "Show all");
    chart.reset.type = "button";
    chart.reset.hidden = true;
    chart.reset.addEventListener("click", () => setRange(chart, ...chart.range));
    const entries = legend(chart);
    figure.classList.add("drawn");
    chart.plot = new uPlot(options, spec.data, place);
    place.append(chart.tip, chart.reset);
    place.after(entries, chart.live);
    place.tabIndex = 0;
    place.setAttribute("role", "application");
    place.setAttribute("aria-roledescription", "interactive chart");
    place.setAttribute("aria-label", `${figure.querySelector(".summary").textContent} Arrow keys move the cursor, with \
Shift in larger steps; plus and minus zoom, 0 shows all.`);
    place.addEventListener("keydown", (event) => pressed(chart, event));
    place.addEventListener("pointerenter", () => { active = chart; });
    place.addEventListener("focusout", () => { if (active === chart) { active = null; follow(chart); } });
    place.addEventListener("pointerleave", () => { if (active === chart && document.activeElement !== place) active = null; follow(chart); });
    new ResizeObserver(() => {
      const wanted = size(chart);
      if (wanted.width !== chart.plot.width) chart.plot.setSize(wanted);
    }).observe(place);
    chart.ready = true;
    charts.push(chart);
  }

  // ---- The page.

  const plots = {};
  const waiting = new Set();

  function build(figure) {
    if (!waiting.delete(figure)) return;
    const data = JSON.parse(figure.querySelector("script").textContent);
    const spec = plots[figure.dataset.plot](data, figure);
    if (spec) draw(figure, spec);
  }

  function buildAll() {
    [...waiting].forEach(build);
  }

  function theme() {
    const button = document.querySelector("button.theme");
    const names = ["system", "light", "dark"];
    const set = (name) => {
      if (name === "system") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = name;
      button.textContent = `Theme: ${name}`;
      redraw();
    };
    button.hidden = false;
    button.addEventListener("click", () => {
      const current = names.indexOf(document.documentElement.dataset.theme ?? "system");
      set(names[(current + 1) % names.length]);
    });
  }

  function redraw() {
    charts.forEach(({ plot }) => plot.redraw(false, true));
  }

  // First the text and the pictures are painted, then the visible charts are drawn, then the others when the page is
  // idle. What is printed are the pictures.
  function start() {
    document.documentElement.classList.add("script");
    theme();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    const figures = [...document.querySelectorAll("figure.chart")].filter((figure) => figure.querySelector(".place"));
    figures.forEach((figure) => waiting.add(figure));
    requestAnimationFrame(() => setTimeout(() => {
      const seen = new IntersectionObserver((entries) => {
        entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
          seen.unobserve(entry.target);
          build(entry.target);
        });
      }, { rootMargin: "200px" });
      figures.forEach((figure) => seen.observe(figure));
      const idle = globalThis.requestIdleCallback ?? ((run) => setTimeout(run, 50));
      const next = () => {
        const [figure] = waiting;
        if (figure) {
          build(figure);
          idle(next);
        }
      };
      idle(next);
    }));
  }

  return { plots, charts, start, buildAll, shown, axisUnit, times, values, aligned, colour, dash, hatch, token };
})();
