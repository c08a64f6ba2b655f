// Quantities over time. The x axis is in seconds, which represent nanoseconds exactly for longer than any run lasts.
linerate.timeAxis = {
  label: (seconds) => {
    if (Math.abs(seconds) < 120) return `${+seconds.toPrecision(6)} s`;
    const whole = Math.floor(seconds);
    return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
  },
  head: (seconds) => {
    const minutes = Math.floor(seconds / 60);
    const rest = (seconds - 60 * minutes).toFixed(3);
    return minutes > 0 ? `${minutes} min ${rest} s` : `${rest} s`;
  },
  // Every other phase is shaded, and named where it begins.
  background: (phases) => (plot) => {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, 0, bbox.width, bbox.top + bbox.height);
    ctx.clip();
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    phases.forEach((phase, index) => {
      const left = plot.valToPos(phase.start / 1e9, "x", true);
      const right = plot.valToPos(phase.end / 1e9, "x", true);
      if (index % 2 === 1) {
        ctx.fillStyle = linerate.token("--shade");
        ctx.fillRect(left, bbox.top, right - left, bbox.height);
      }
      const begin = Math.max(left, bbox.left) + 4 * ratio;
      if (right - begin > ctx.measureText(phase.name).width) {
        ctx.fillStyle = linerate.token("--muted");
        ctx.fillText(phase.name, begin, bbox.top - 2 * ratio);
      }
    });
    ctx.restore();
  },
  // Series as the packed data has them, each with its own times.
  series: (data) => {
    const clocks = data.clocks.map((text) => linerate.times(text).map((time) => time / 1e9));
    const timed = (one) => ({ x: clocks[one.clock], y: linerate.values(one.values) });
    return data.series.map((one) => ({ name: one.name, ...timed(one), curve: one.curve && timed(one.curve) }));
  },
  group: (figure) => figure.closest("article").id,
  // All charts of a run have one time axis, from its beginning to its last sample.
  extent: (figure) => [0, Number(figure.closest("article").dataset.end) / 1e9],
};

linerate.plots.lines = (data, figure) => {
  const series = linerate.timeAxis.series(data);
  // The curves are drawn after the samples of all series.
  const curves = series.filter((one) => one.curve).map((one) => one.curve);
  const curve = (index) => series[index].curve && 1 + series.length + curves.indexOf(series[index].curve);
  const columns = linerate.aligned([...series, ...curves]);
  if (columns[0].length === 0) return null;
  const largest = series.reduce((top, one) => one.y.reduce((high, value) => Math.max(high, Math.abs(value ?? 0)), top), 0);
  const [factor, unitName] = linerate.axisUnit(data.unit, largest);
  // From 0, but for times that differ little: an idle path's round trips vary by a few percent.
  const range = (low, high) => {
    const room = (high - low) * 0.1;
    if (data.unit === "ns" && low > high / 2 && room > 0) return [low - room, high + room];
    return [Math.min(0, low ?? 0), high > 0 ? high * 1.06 : 1];
  };
  return {
    data: columns,
    names: series.map((one) => one.name),
    place: (index) => index + 1,
    curve,
    unitName,
    group: linerate.timeAxis.group(figure),
    extent: linerate.timeAxis.extent(figure),
    height: 240,
    x: {},
    range,
    xLabel: linerate.timeAxis.label,
    yLabel: (value) => `${+(value / factor).toPrecision(6)}`,
    head: (plot, seconds) => linerate.timeAxis.head(seconds),
    reading: (plot, index, place) => {
      const value = place === null ? null : plot.data[index + 1][place];
      if (value === null || value === undefined) return null;
      return { value, unit: data.unit, text: linerate.shown(value, data.unit), at: Math.round(plot.data[0][place] * 1e9) };
    },
    series: [
      ...series.map((one, index) => ({
        stroke: () => linerate.colour(index),
        alpha: one.curve ? 0.45 : 1,
        dash: one.curve ? [] : linerate.dash(index),
        width: one.curve ? 0.8 : 1.4,
        points: { show: one.y.length <= 60, size: 4 },
      })),
      ...series.flatMap((one, index) => (one.curve ? [{
        stroke: () => linerate.colour(index),
        dash: linerate.dash(index),
        width: 2,
        points: { show: false },
      }] : [])),
    ],
    background: linerate.timeAxis.background(data.phases),
  };
};
