// The progress of one query: a column per number, in the shape that charts take.

const MOST_LINES = 7200;  // beyond it every other line of the older half goes
const MOST_DRAWINGS = 400;
const MOST_WINDOWS = 2000;
const NOT_COLUMNS = new Set(['event', 'id', 'run_id', 'name', 'timestamp', 'metrics', 'charts', 'commands']);
const DRAWN = ['delays', 'curve', 'chosen', 'slack_reason', 'harvest'];

// The same row as `row_of` in history.py makes.
function rowOf(line) {
  const row = {}, metrics = line.metrics || {};
  const flat = (values, prefix, skip) => {
    for (const [name, value] of Object.entries(values || {})) {
      if (skip && NOT_COLUMNS.has(name)) continue;
      if (value !== null && typeof value === 'object') { if (!Array.isArray(value)) flat(value, `${prefix}${name}.`); }
      else if (value !== null) row[prefix + name] = value;
    }
  };
  const time = Date.parse(line.timestamp);
  if (Number.isFinite(time)) row.time = time;
  flat(line, '', true);
  flat(metrics, '', true);
  flat(metrics.charts, 'charts.');
  return row;
}

// The last place whose value is not above `value`, or -1; `list` ascends.
function placeOf(list, value, of = item => item) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(list[middle]) <= value) low = middle + 1; else high = middle;
  }
  return low - 1;
}

class Query {
  constructor(key, name) {
    Object.assign(this, {key, name, started: null, ended: null, version: 0});
    Object.assign(this, {numbers: [], columns: new Map(), drawings: [], commands: [], earlyWindows: []});
  }

  static from(known) {
    const query = new Query(known.key, known.name);
    Object.assign(query, {started: known.started, ended: known.ended, numbers: known.numbers});
    Object.assign(query, {commands: known.commands, earlyWindows: known.windows});
    query.columns = new Map(Object.entries(known.columns));
    query.drawings = Object.entries(known.drawings).map(([number, drawn]) => [Number(number), drawn]);
    query.drawings.sort((a, b) => a[0] - b[0]);
    return query;
  }

  take(number, line) {
    this.version += 1;
    if (line.event === 'started') { this.started = line; this.ended = null; }
    else if (line.event === 'terminated') this.ended = line;
    else if (line.event === 'batch') this.batch(number, line);
  }

  batch(number, line) {
    const row = rowOf(line), metrics = line.metrics || {}, charts = metrics.charts || {};
    for (const path of Object.keys(row)) {
      if (!this.columns.has(path)) this.columns.set(path, new Array(this.numbers.length).fill(null));
    }
    for (const [path, column] of this.columns) column.push(row[path] ?? null);
    this.numbers.push(number);
    for (const command of metrics.commands || []) this.commands.push([number, command]);
    for (const early of charts.aggregates || []) this.earlyWindows.push([number, early]);
    if (this.earlyWindows.length > 2 * MOST_WINDOWS) this.earlyWindows.splice(0, MOST_WINDOWS);
    const drawn = Object.fromEntries(DRAWN.filter(name => charts[name]).map(name => [name, charts[name]]));
    if (Object.keys(drawn).length) this.drawings.push([number, drawn]);
    if (this.drawings.length > MOST_DRAWINGS) this.drawings = this.drawings.filter((_, n) => n % 2 || n > MOST_DRAWINGS / 2);
    if (this.numbers.length > MOST_LINES) this.thin();
  }

  thin() {
    const half = this.numbers.length >> 1, keep = (_, n) => n >= half || n % 2 === 0;
    this.numbers = this.numbers.filter(keep);
    for (const [path, column] of this.columns) this.columns.set(path, column.filter(keep));
  }

  get length() { return this.numbers.length; }
  column(path) { return this.columns.get(path) || null; }
  at(path, place) { return this.columns.get(path)?.[place] ?? null; }

  // The last known value of a number at or before a place.
  last(path, place) {
    const column = this.columns.get(path);
    for (let n = place; column && n >= 0 && n > place - 60; n -= 1) if (column[n] !== null) return column[n];
    return null;
  }

  // The last drawing at or before a place.
  drawn(name, place) {
    const number = this.numbers[place];
    for (let n = placeOf(this.drawings, number, item => item[0]); n >= 0; n -= 1) {
      if (this.drawings[n][1][name]) return this.drawings[n][1][name];
    }
    return null;
  }

  get spec() { return this.started?.query || {}; }
  get perMs() { return this.spec.unit === 'us' ? 1000 : 1; }

  get streams() {
    if (this.spec.streams?.length) return this.spec.streams;
    const found = new Set();
    for (const path of this.columns.keys()) {
      const [kind, ...rest] = path.split('.');
      if (kind === 'streams' && path.endsWith('.arrivals')) found.add(rest.slice(0, -1).join('.'));
    }
    return [...found];
  }
}

// ---- what is drawn over time, made of the columns once per change

function seriesOf(query) {
  if (query.series?.version === query.version) return query.series;
  const time = query.column('time'), now = query.column('charts.now'), length = query.length;
  const isClock = Boolean(time) || Boolean(now?.some(value => value / query.perMs > 3e11));
  const source = time || now;
  const x = new Array(length);
  let before = -Infinity;
  for (let n = 0; n < length; n += 1) {
    let at = source ? source[n] === null ? before : source[n] / (time ? 1 : query.perMs) / 1000 : n;
    if (!(at > before)) at = Number.isFinite(before) ? before + 1e-3 : 0;
    before = x[n] = at;
  }
  const scaled = (path, by) => {
    const column = query.column(path);
    return column ? column.map(value => value === null ? null : value / by) : null;
  };
  const rate = path => {
    const column = query.column(path);
    return column && column.map((value, n) => {
      if (!n || value === null || column[n - 1] === null || x[n] - x[n - 1] < 0.01) return null;
      return Math.max(0, (value - column[n - 1]) / (x[n] - x[n - 1]));
    });
  };
  const late = stream => {
    const kept = query.column(`streams.${stream}.late_kept`), dropped = query.column(`streams.${stream}.late_dropped`);
    const ordered = query.column(`streams.${stream}.in_order`);
    return ordered && kept && dropped && ordered.map((value, n) => {
      const from = Math.max(0, n - 5);  // over a few lines: one may have no rows
      const late = kept[n] + dropped[n] - kept[from] - dropped[from];
      const judged = value - ordered[from] + late;  // not those that came: at a flush, those that waited are judged
      return !n || value === null || !(judged > 0) ? null : Math.max(0, late / judged);
    });
  };
  query.series = {
    version: query.version, x, isClock,
    measured: query.column('charts.recall'), recall: query.column('recall'), target: query.column('target'),
    right: query.column('right_rows'), rightTarget: query.column('right_target'),
    slack: scaled('slack', query.perMs), latency: scaled('charts.latency', query.perMs),
    rows: rate('arrivals'), results: rate('produced'),
    late: query.streams.map(late),
    stored: query.column('stored'), buffered: query.column('buffered'),
    throttle: query.column('throttle'), missed: rate('missed'), shed: rate('shed'),
    changes: changesOf(query),
  };
  return query.series;
}

const fromTo = (before, now) => `recall ${before === null ? '' : `${percent(before)} → `}${percent(now)}`;

// Changes of the settings: from the commands in the log, or from the target itself.
function changesOf(query) {
  const changes = [];
  for (const [number, command] of query.commands) {
    const place = Math.max(0, placeOf(query.numbers, number)), set = command.set || command;
    if (isNumber(set.recall)) changes.push({place, text: fromTo(query.last('target', place - 1), set.recall), recall: set.recall});
    else if (set.slack !== undefined && set.slack !== null) {
      changes.push({place, text: `K ${isNumber(set.slack) ? duration(set.slack / query.perMs) : set.slack}`});
    } else changes.push({place, text: command.flush ? 'flush' : command.finished?.length ? `${command.finished} finished` : 'command'});
  }
  const target = query.column('target') || [];
  let was = null;
  target.forEach((value, place) => {
    if (value === null) return;
    if (was !== null && value !== was && !changes.some(change => change.recall === value && Math.abs(change.place - place) < 3)) {
      changes.push({place, text: fromTo(was, value), recall: value});
    }
    was = value;
  });
  (query.column('refused_commands') || []).forEach((value, place) => {
    if (value) changes.push({place, text: `${value} refused`, isRefused: true});
  });
  return changes.sort((a, b) => a.place - b.place);
}
