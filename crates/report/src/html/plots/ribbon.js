// Shares of time, stacked: the topmost is drawn first, and each lower one over it.
linerate.plots.ribbon = (data, figure) => {
  const series = linerate.timeAxis.series(data);
  const columns = linerate.aligned(series);
  const count = series.length;
  if (columns[0].length === 0) return null;
  // A state without a sample at a time keeps its last share; a gap is where no state has one.
  const shares = columns.slice(1).map((column) => {
    let last = null;
    return Array.from(column, (value) => (last = value === undefined ? last : value));
  });
  const sums = shares.map((_, index) => columns[0].map((__, at) => {
    if (shares.every((share) => share[at] === null)) return null;
    let sum = 0;
    for (let below = 0; below <= index; below += 1) sum += shares[below][at] ?? 0;
    return sum;
  }));
  return {
    data: [columns[0], ...sums.slice().reverse()],
    names: series.map((one) => one.name),
    place: (index) => count - index,
    unitName: "% of the time",
    group: linerate.timeAxis.group(figure),
    extent: linerate.timeAxis.extent(figure),
    height: 150,
    x: {},
    range: () => [0, 1],
    xLabel: linerate.timeAxis.label,
    yLabel: (value) => `${Math.round(value * 100)}`,
    yAxis: { splits: () => [0, 0.5, 1] },
    head: (plot, seconds) => linerate.timeAxis.head(seconds),
    reading: (plot, index, place) => {
      const value = place === null ? null : columns[index + 1][place];
      if (value === null || value === undefined) return null;
      return { value, unit: data.unit, text: linerate.shown(value, data.unit), at: Math.round(plot.data[0][place] * 1e9) };
    },
    series: series.map((_, place) => ({
      stroke: () => linerate.colour(count - 1 - place),
      fill: (plot) => linerate.hatch(plot, count - 1 - place),
      width: 0,
      points: { show: false },
    })),
    background: linerate.timeAxis.background(data.phases),
  };
};
