// Cumulative distributions: the share of samples at or below each value.
linerate.plots.distribution = (data) => {
  const curves = data.curves.map((curve) => ({
    name: curve.name,
    x: linerate.values(curve.values),
    y: linerate.values(curve.shares),
  }));
  const columns = linerate.aligned(curves);
  const xs = columns[0];
  if (xs.length === 0) return null;
  const [smallest, largest] = [xs[0], xs[xs.length - 1]];
  const [factor, unitName] = linerate.axisUnit(data.unit, largest);
  // Idle and loaded paths are orders of magnitude apart; then equal factors have equal distances.
  const wide = smallest > 0 && largest / smallest > 20;
  const label = (value) => (value === null || value === undefined ? "" : `${+(value / factor).toPrecision(3)}`);
  // 1, 2, 5 of each power of ten; without the 2 and the 5 where that is many.
  const steps = (plot, axis, low, high) => {
    const all = [];
    for (let power = Math.floor(Math.log10(low / factor)); power <= Math.log10(high / factor); power += 1) {
      for (const digit of high / low > 3000 ? [1] : [1, 2, 5]) all.push(digit * 10 ** power * factor);
    }
    return all.filter((value) => value >= low && value <= high);
  };
  return {
    data: columns,
    names: curves.map((curve) => curve.name),
    place: (index) => index + 1,
    unitName: `share of samples (%) against ${unitName}`,
    group: null,
    height: 240,
    x: wide ? { distr: 3, range: (plot, low, high) => [low, high] } : {},
    extent: wide ? [smallest / 1.2, largest * 1.2] : [smallest, largest],
    xAxis: wide ? { splits: steps, filter: (plot, splits) => splits } : { space: 44 },
    range: () => [0, 1],
    xLabel: label,
    yLabel: (value) => `${Math.round(value * 100)}`,
    yAxis: { splits: () => [0, 0.25, 0.5, 0.75, 1] },
    head: (plot, value) => `near ${linerate.shown(value, data.unit)}`,
    reading: (plot, index, place) => {
      const share = place === null ? null : plot.data[index + 1][place];
      if (share === null || share === undefined) return null;
      const value = plot.data[0][place];
      const text = `${linerate.shown(share, "share")} ≤ ${linerate.shown(value, data.unit)}`;
      return { value, unit: data.unit, text, at: share };
    },
    series: curves.map((_, index) => ({
      stroke: () => linerate.colour(data.curves[index].colour),
      dash: linerate.dash(data.curves[index].colour),
      width: data.curves[index].dashed ? 1 : 2.2,
      points: { show: false },
    })),
    background: () => {},
  };
};
