// Early answers: value and interval of each window, and the exact value where it is known.

class EarlyPanel {
  constructor(card) {
    this.card = card;
    this.host = card.querySelector('.plot');
    this.chooser = element('early-choose');
    this.chosen = {};
    theme.listeners.push(() => this.chart?.plot.redraw(false));
  }

  has(query, place) { return query.earlyWindows.length > 0 && query.earlyWindows[0][0] <= query.numbers[place]; }

  update(query, place) {
    const rows = query.earlyWindows.slice(0, placeOf(query.earlyWindows, query.numbers[place], item => item[0]) + 1).map(item => item[1]);
    const groups = [...new Set(rows.map(row => JSON.stringify(row.group ?? {})))].sort();
    const names = [...new Set(rows.flatMap(row => Object.keys(row.values)))];
    this.choose('Group', 'group', groups, text => Object.values(JSON.parse(text)).join(', ') || 'all');
    this.choose('Value', 'name', names, text => text);
    const {group, name} = this.chosen, windows = new Map();
    for (const row of rows) {
      const value = row.values[name];
      if (!value || JSON.stringify(row.group ?? {}) !== group) continue;
      const window = windows.get(row.end) || {};
      if (row.exact) window.exact = value.value; else Object.assign(window, value);
      windows.set(row.end, window);
    }
    const ends = [...windows.keys()].sort((a, b) => a - b);
    const of = key => ends.map(end => windows.get(end)[key] ?? null);
    const isClock = ends.at(-1) / query.perMs > 3e11, x = ends.map(end => end / query.perMs / 1000);
    const shape = `${query.key} ${isClock} ${name}`;
    if (shape !== this.shape) {
      this.chart?.close();
      this.chart = this.build(name, isClock);
      this.shape = shape;
    }
    this.chart.set([x, of('high'), of('low'), of('observed'), of('value'), of('exact')], [x[0], x.at(-1)]);
  }

  build(name, isClock) {
    return new Chart(this.host, [
      {label: 'high', colour: 'accent-soft', width: 1, spanGaps: false},
      {label: 'low', colour: 'accent-soft', width: 1, spanGaps: false},
      {label: 'observed', colour: 'muted', width: 1.25, dash: [2, 3]},
      {label: name, colour: 'accent', width: 2},
      {label: 'exact', colour: 'target', isDots: true},
    ], {
      bands: [{series: [1, 2], fill: colour('accent-soft')}],
      range: (_, low, high) => low == null ? [0, 1] : [low - (high - low) * 0.1 - 1e-9, high + (high - low) * 0.1 + 1e-9],
      xText: at => clock(at, isClock), yText: figure,
    });
  }

  choose(label, key, values, text) {
    if (!values.includes(this.chosen[key])) this.chosen[key] = values[0];
    const shown = `${label} ${values.join(' ')}`;
    let holder = this.chooser.querySelector(`[data-key="${key}"]`);
    if (values.length < 2) { holder?.remove(); return; }
    if (holder?.dataset.shown === shown) return;
    const list = make('select', {}, ...values.map(value => make('option', {value}, text(value))));
    list.value = this.chosen[key];
    list.addEventListener('change', () => { this.chosen[key] = list.value; view.changed(); });
    holder?.remove();
    holder = make('label', {'data-key': key, 'data-shown': shown}, label, list);
    this.chooser.append(holder);
  }
}
