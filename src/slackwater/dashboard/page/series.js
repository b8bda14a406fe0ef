// What is drawn over time: one function per card.

const known = data => Boolean(data) && data.some(value => value !== null);
const lineIf = (data, line) => known(data) ? [{...line, data}] : [];

// A recall close to 1 needs the space; leave a little below the lowest.
function recallRange(_, low, high) {
  if (low == null) return [0, 1];
  const room = Math.max(0.004, (1 - low) * 0.18);
  return [Math.max(0, low - room), Math.min(1.0, Math.max(high + room, 1))];
}

const describers = {
  recall(query, series) {
    const hasMeasured = known(series.measured);
    const lines = [
      ...lineIf(series.measured, {label: 'recall', colour: 'accent', width: 2, text: percent}),
      ...lineIf(series.recall, hasMeasured
        ? {label: 'since the start', colour: 'muted', width: 1.25, dash: [2, 3], text: percent}
        : {label: 'recall since the start', colour: 'accent', width: 2, text: percent}),
      ...lineIf(series.target, {label: 'target', colour: 'target', isStep: true, width: 1.5, dash: [6, 4], text: percent}),
    ];
    const isRecall = lines.some(line => line.label !== 'target');
    lines.push(
      ...lineIf(series.right, {label: 'right rows', colour: 's1', width: 2, text: percent}),
      ...lineIf(series.rightTarget, {label: 'target of right rows', colour: 's1', isStep: true, width: 1.5, dash: [6, 4], text: percent}),
    );
    return isRecall || known(series.right) ? {lines, hasWords: true, range: recallRange, yText: value => percent(value, 1)} : null;
  },

  slack(query, series) {
    if (query.spec.kind === 'aggregate') return null;  // a deadline, not a slack, decides when it emits
    const lines = [
      ...lineIf(series.slack, {label: 'K', colour: 'accent', fill: 'accent-soft', isStep: true}),
      ...lineIf(series.latency, {label: 'latency', colour: 's0', width: 1.5}),
    ];
    return lines.length ? {lines, hasWords: true, yText: duration} : null;
  },

  rates(query, series) {
    const lines = [
      ...lineIf(series.rows, {label: 'rows/s', colour: 's0', width: 1.25}),
      ...lineIf(series.results, {label: 'results/s', colour: 'accent', width: 1.25}),
    ];
    return lines.length ? {lines, yText: compact} : null;
  },

  late(query, series) {
    const lines = query.streams.flatMap((name, n) => lineIf(series.late[n], {label: name, colour: ofStream(n), width: 1.5}));
    return lines.length ? {lines, range: (_, low, high) => [0, Math.max(1.12 * (high ?? 0), 0.01)], yText: value => percent(value, value < 0.01 ? 2 : 1)} : null;
  },

  state(query, series) {
    const lines = [
      ...lineIf(series.stored, {label: 'in windows', colour: 'accent', fill: 'accent-soft'}),
      ...lineIf(series.buffered, {label: 'waiting', colour: 's0'}),
    ];
    return lines.length ? {lines, yText: compact} : null;
  },

  // Only where something was shed: elsewhere the throttle is always 1.
  throttle(query, series) {
    const isShed = series.throttle?.some(value => value !== null && value < 1) || series.shed?.some(value => value > 0);
    if (!isShed) return null;
    const lines = lineIf(series.throttle, {label: 'work that is done', colour: 'accent', fill: 'accent-soft', isStep: true});
    return {lines, range: () => [0, 1.05], yText: value => percent(value, 0)};
  },
};
