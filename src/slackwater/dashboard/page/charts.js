// Charts over time, by uPlot. The chart is rebuilt only if the set of lines changes.

const FONT = '12px Inter, system-ui, sans-serif';
const stepped = uPlot.paths.stepped({align: 1});

class Chart {
  constructor(host, lines, options) {
    this.host = host;
    this.range = [0, 1];
    this.marks = [];
    this.hasWords = Boolean(options.hasWords);
    const axis = {stroke: colour('muted'), font: FONT, grid: {stroke: colour('grid'), width: 1}, ticks: {show: false}, border: {show: false}};
    const legendOfLast = chart => {
      const last = (chart.data?.[0].length || 0) - 1;
      if (chart.legend.idx == null && last >= 0) chart.setLegend({idx: last});
    };
    this.plot = new uPlot({
      width: 300, height: 100,
      padding: [10, 8, 0, 0],
      cursor: {drag: {x: false, y: false}, sync: options.sync ? {key: options.sync} : undefined, points: {size: 7}, focus: {prox: -1}},
      legend: {live: true, markers: {width: 2.5}},
      scales: {
        x: {time: options.time !== false, range: () => this.range},
        y: {range: options.range || ((_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.12 : 1])},
      },
      axes: [
        {...axis, space: 72, gap: 9, size: 27, values: (_, splits) => splits.map(options.xText)},
        {...axis, space: 34, gap: 6, size: 52, values: (_, splits) => splits.map(options.yText)},
      ],
      series: [
        {value: (_, at) => at == null ? '' : options.xText(at)},
        ...lines.map(line => ({
          label: line.label,
          stroke: colour(line.colour),
          width: line.width ?? 1.75,
          dash: line.dash,
          fill: line.fill ? colour(line.fill) : undefined,
          paths: line.isStep ? stepped : line.isDots ? () => null : undefined,
          points: line.isDots ? {show: true, size: 6, width: 1.5, fill: colour('card'), stroke: colour(line.colour)} : {show: false},
          spanGaps: line.spanGaps ?? true,
          value: (_, value) => value == null ? NONE : line.text ? line.text(value) : options.yText(value),
        })),
      ],
      bands: options.bands,
      hooks: {draw: [chart => this.drawMarks(chart)], setLegend: [legendOfLast]},
    }, null, host);
    host.querySelectorAll('.u-series .u-marker').forEach((marker, n) => {
      if (n) marker.style.borderColor = cssOf(lines[n - 1].colour);  // follows the theme
    });
    this.observer = new ResizeObserver(() => this.fit());
    this.observer.observe(host);
    this.fit();
  }

  fit() {
    const legend = this.host.querySelector('.u-legend');
    const width = this.host.clientWidth, height = Math.max(60, this.host.clientHeight - (legend?.offsetHeight || 0) - 2);
    if (width > 0 && (width !== this.plot.width || height !== this.plot.height)) this.plot.setSize({width, height});
  }

  set(data, range, marks = []) {
    this.range = range[1] > range[0] ? range : [range[0] - 1, range[0] + 1];
    this.marks = marks;
    this.plot.setData(data);
    if (this.plot.cursor.left < 0 || this.plot.cursor.left == null) this.plot.setLegend({idx: data[0].length - 1});
  }

  // A vertical line with a word for each change of the settings.
  drawMarks(chart) {
    const {ctx, bbox} = chart, ratio = devicePixelRatio;
    ctx.save();
    ctx.textAlign = 'left';
    ctx.textBaseline = 'alphabetic';
    ctx.font = `${11 * ratio}px Inter, system-ui, sans-serif`;
    let free = -Infinity;
    for (const mark of this.marks) {
      if (mark.x < this.range[0] || mark.x > this.range[1]) continue;
      const x = Math.round(chart.valToPos(mark.x, 'x', true)) + 0.5;
      ctx.strokeStyle = ctx.fillStyle = theme.colours[mark.isRefused ? 'bad' : 'target'];
      ctx.lineWidth = ratio;
      ctx.setLineDash([3 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (!this.hasWords) continue;
      const wide = ctx.measureText(mark.text).width;
      const isLeft = x + wide + 6 * ratio > bbox.left + bbox.width;
      const from = isLeft ? x - wide - 5 * ratio : x + 5 * ratio;
      if (from < free) continue;  // it would cover the word before
      ctx.fillText(mark.text, from, bbox.top + bbox.height - 5 * ratio);
      free = from + wide + 4 * ratio;
    }
    ctx.restore();
  }

  close() {
    this.observer.disconnect();
    this.plot.destroy();
  }
}

// A card with a chart over time. `describe(query, series)` returns its lines, or null if there are none.
class TimePanel {
  constructor(card, describe) {
    this.card = card;
    this.host = card.querySelector('.plot');
    this.describe = describe;
    this.host.addEventListener('click', () => {
      const at = this.chart?.plot.cursor.idx;
      if (at != null) view.move(this.first + at);
    });
    theme.listeners.push(() => this.chart?.plot.redraw(false));
  }

  has(query) {
    this.described = this.describe(query, seriesOf(query));
    return this.described !== null;
  }

  update(query, place) {
    const series = seriesOf(query), {lines, ...options} = this.described;
    const shape = `${query.key} ${series.isClock} ${lines.map(line => line.label)}`;
    if (shape !== this.shape) {
      this.chart?.close();
      this.chart = new Chart(this.host, lines, {...options, sync: 'time', xText: at => clock(at, series.isClock)});
      this.shape = shape;
    }
    const end = series.x[place], [left, right] = view.range(series, place);
    this.first = Math.max(0, placeOf(series.x, left) - 1);
    const cut = column => column.slice(this.first, place + 1);
    const marks = series.changes.filter(change => series.x[change.place] <= end).map(change => ({...change, x: series.x[change.place]}));
    this.chart.set([cut(series.x), ...lines.map(line => cut(line.data))], [left, right], marks);
  }
}
