// Drawings of one moment: the curve, the delays, the leads, the harvest, the accounting.

const FATES = [
  ['in_order', 'in order', 'accent'], ['late_kept', 'late, kept', 's1'], ['late_dropped', 'late, dropped', 's4'],
  ['buffered', 'waiting', 's0'], ['shed', 'shed', 's2'], ['rejected', 'rejected', 's5'],
];

const size = (host, least = 260) => Math.max(least, Math.round(host.clientWidth));

// One axis from 0 to hours: linear near 0, logarithmic further out.
function timeScale(longest, left, right) {
  const bend = Math.max(longest / 60, 1e-9), top = Math.asinh(Math.max(longest, bend) / bend);
  const at = ms => left + (right - left) * Math.asinh(ms / bend) / top;
  const nice = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5];
  const ticks = [];
  for (const ms of nice) {
    if (ms <= longest && (!ticks.length || at(ms) - at(ticks.at(-1)) > 52)) ticks.push(ms);
  }
  return {at, ticks};
}

function drawCurve(host, query, place) {
  const curve = query.drawn('curve', place), chosen = query.drawn('chosen', place);
  const target = query.last('target', place), wide = size(host), high = 236;
  const [left, right, top, bottom] = [46, wide - 12, 10, high - 40];
  const points = curve.map(([k, recall, latency]) => ({k: k / query.perMs, recall, ms: (latency ?? k) / query.perMs}));
  const shown = points.map(point => point.recall).concat(target ?? []);
  const low = Math.max(0, Math.min(...shown) - 0.02);
  const x = timeScale(Math.max(...points.map(point => point.ms), 1), left, right);
  const y = recall => bottom - (bottom - top) * (recall - low) / Math.max(1 - low, 1e-6);
  const svg = make('svg', {viewBox: `0 0 ${wide} ${high}`, role: 'img', 'aria-label': curveInWords(query, chosen, target)});
  const step = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find(one => (1 - low) / one <= 5) || 0.5;
  for (let recall = 1; recall >= low - 1e-9; recall -= step) {
    svg.append(make('line', {x1: left, x2: right, y1: y(recall), y2: y(recall), stroke: cssOf('grid')}));
    svg.append(make('text', {x: left - 8, y: y(recall) + 4, 'text-anchor': 'end'}, percent(recall + 1e-9, step < 0.01 ? 1 : 0)));
  }
  for (const ms of x.ticks) {
    svg.append(make('text', {x: x.at(ms), y: bottom + 18, 'text-anchor': 'middle'}, duration(ms)));
  }
  svg.append(make('text', {x: (left + right) / 2, y: high - 3, 'text-anchor': 'middle'}, 'latency of a result'));
  if (target !== null) {
    svg.append(make('line', {x1: left, x2: right, y1: y(target), y2: y(target), stroke: cssOf('target'), 'stroke-width': 1.5, 'stroke-dasharray': '6 4'}));
    svg.append(make('text', {x: left + 4, y: y(target) + 15, class: 'target'}, `target ${percent(target)}`));
  }
  const path = points.map(point => `${x.at(point.ms).toFixed(1)},${y(point.recall).toFixed(1)}`).join(' ');
  svg.append(make('polyline', {points: path, fill: 'none', stroke: cssOf('accent'), 'stroke-width': 2, 'stroke-linejoin': 'round'}));
  for (const point of points) svg.append(make('circle', {cx: x.at(point.ms), cy: y(point.recall), r: 2.2, fill: cssOf('accent')}, make('title', {}, `K ${duration(point.k)}: ${percent(point.recall)}, ${duration(point.ms)}`)));
  const ghost = controls.proposed();
  const would = ghost !== null && Math.abs(ghost - target) > 1e-9 ? pointFor(points, ghost) : null;
  if (would) svg.append(make('circle', {cx: x.at(would.ms), cy: y(would.recall), r: 6, fill: 'none', stroke: cssOf('target'), 'stroke-width': 2}));
  if (chosen) {
    const ms = (chosen[2] ?? chosen[0]) / query.perMs, cx = x.at(ms), isLeft = cx > right - 60;
    svg.append(make('circle', {cx, cy: y(chosen[1]), r: 6.5, fill: cssOf('accent'), stroke: cssOf('card'), 'stroke-width': 2.5}));
    svg.append(make('text', {x: isLeft ? right : cx + 8, y: Math.min(bottom - 6, y(chosen[1]) + 22), 'text-anchor': isLeft ? 'end' : 'start', class: 'strong'}, `K ${duration(chosen[0] / query.perMs)}`));
  }
  const why = query.drawn('slack_reason', place);
  host.replaceChildren(svg, ...(why?.length ? [make('p', {class: 'note'}, `Why: ${why.join('; ')}.`)] : []));
}

const pointFor = (points, recall) => points.find(point => point.recall >= recall) || null;

function curveInWords(query, chosen, target) {
  const targetText = target === null ? '' : ` The target is ${percent(target)}.`;
  if (!chosen) return `Recall against latency.${targetText}`;
  return `Recall against latency. Chosen: K ${duration(chosen[0] / query.perMs)}, expected recall ${percent(chosen[1])}.${targetText}`;
}

function drawDelays(host, query, place) {
  const delays = query.drawn('delays', place), slack = query.last('slack', place);
  const names = Object.keys(delays), wide = size(host), row = 74, left = 0;
  const high = names.length * row + 26, scaleEdges = Object.values(delays).flatMap(one => one.edges);
  const longest = Math.max(...scaleEdges, slack || 0) / query.perMs * 1.15 || 1;
  const x = timeScale(longest, left, wide - 8);
  const k = slack === null ? null : slack / query.perMs;
  const words = [];
  const svg = make('svg', {viewBox: `0 0 ${wide} ${high}`, role: 'img'});
  names.forEach((name, n) => {
    const {edges, counts} = delays[name], all = counts.reduce((a, b) => a + b, 0) || 1;
    const most = Math.max(...counts.slice(1), 1), base = n * row + row - 6, top = n * row + 22;
    const stream = Math.max(0, query.streams.indexOf(name));
    const covered = edges.reduce((sum, edge, b) => sum + (edge / query.perMs <= (k ?? Infinity) ? counts[b] : 0), 0) / all;
    const shares = `${percent(counts[0] / all, 0)} without delay` + (k === null ? '' : `, ${percent(covered, 1)} within K`);
    words.push(`${name}: ${shares}`);
    svg.append(make('text', {x: 0, y: n * row + 13, class: 'strong'}, name));
    svg.append(make('text', {x: wide - 8, y: n * row + 13, 'text-anchor': 'end'}, shares));
    svg.append(make('line', {x1: left, x2: wide - 8, y1: base + 0.5, y2: base + 0.5, stroke: cssOf('line')}));
    for (let b = 1; b < edges.length; b += 1) {
      if (!counts[b]) continue;
      const from = x.at(edges[b] / query.perMs), to = b + 1 < edges.length ? x.at(edges[b + 1] / query.perMs) : from + 12;
      const tall = Math.max(1, (base - top) * counts[b] / most), isLate = k !== null && edges[b] / query.perMs > k;
      svg.append(make('rect', {x: from, y: base - tall, width: Math.max(1, Math.min(to, wide - 8) - from - 1), height: tall, rx: 1, fill: cssOf(ofStream(stream)), opacity: isLate ? 0.38 : 1}));
    }
  });
  for (const ms of x.ticks) {
    const at = x.at(ms);
    svg.append(make('text', {x: at, y: high - 5, 'text-anchor': at < 14 ? 'start' : at > wide - 30 ? 'end' : 'middle'}, duration(ms)));
  }
  if (k !== null) {
    names.forEach((_, n) => svg.append(make('line', {x1: x.at(k), x2: x.at(k), y1: n * row + 20, y2: n * row + row - 6, stroke: cssOf('target'), 'stroke-width': 1.5, 'stroke-dasharray': '4 3'})));
    const at = x.at(k), isLeft = at > wide - 70;
    svg.append(make('text', {x: at + (isLeft ? -5 : 5), y: 32, class: 'target', 'text-anchor': isLeft ? 'end' : 'start'}, `K ${duration(k)}`));
  }
  svg.setAttribute('aria-label', words.join('; '));
  host.replaceChildren(svg);
}

function drawLeads(host, query, place) {
  const leads = query.streams.map(name => query.last(`charts.leads.${name}`, place));
  const most = Math.max(...leads.map(lead => lead ?? 0), 1), rows = make('div', {class: 'rows'});
  query.streams.forEach((name, n) => {
    const lead = leads[n], state = query.at(`streams.${name}.state`, place);
    const bar = make('i', {css: {width: `${100 * (lead ?? 0) / most}%`, background: cssOf(ofStream(n))}});
    const about = state && state !== 'active' ? make('small', {}, ` ${state}`) : '';
    rows.append(make('span', {}, name, about), make('div', {class: 'track', 'aria-hidden': 'true'}, bar), make('span', {}, lead === null ? NONE : duration(lead / query.perMs)));
  });
  const slowest = query.streams[leads.indexOf(Math.min(...leads.filter(lead => lead !== null)))];
  const equal = leads.every(lead => lead === leads[0]);
  const remark = slowest === undefined || equal ? 'No stream is ahead of another.' : `${slowest} is the slowest; the others wait for it.`;
  host.replaceChildren(rows, make('p', {class: 'remark'}, remark));
}

function drawHarvest(host, query, place) {
  const map = make('div', {class: 'map'});
  for (const {direction, windows} of query.drawn('harvest', place)) {
    for (const {stream, fraction, basic} of windows) {
      const cells = make('div', {class: 'cells', role: 'img', 'aria-label': `${direction} looks into ${stream}, newest first: ${basic.map(share => percent(share, 0)).join(', ')}`});
      for (const share of basic) cells.append(make('i', {title: percent(share, 0), css: {'--share': Math.min(1, Math.max(0, share)).toFixed(3)}}));
      map.append(make('span', {}, `${direction} `, make('small', {}, `in ${stream}`)), cells, make('small', {}, percent(fraction, 0)));
    }
  }
  host.replaceChildren(map, make('p', {class: 'remark'}, 'Newest at the left. The figure is the share of the window that is searched.'));
}

function drawAccounting(host, query, place) {
  const fateOf = (name, fate) => {
    if (fate !== 'rejected') return query.last(`streams.${name}.${fate}`, place) ?? 0;
    let sum = 0;
    for (const path of query.columns.keys()) if (path.startsWith(`streams.${name}.rejected.`)) sum += query.last(path, place) ?? 0;
    return sum;
  };
  const rows = query.streams.map(name => ({name, all: query.last(`streams.${name}.arrivals`, place), fates: FATES.map(([fate]) => fateOf(name, fate))}));
  const used = FATES.filter((fate, n) => n < 3 || rows.some(row => row.fates[n] > 0));
  const bars = make('div', {class: 'rows'});
  for (const {name, all, fates} of rows) {
    const sum = fates.reduce((a, b) => a + b, 0), stack = make('div', {class: 'stack', 'aria-hidden': 'true'});
    fates.forEach((value, n) => { if (value > 0) stack.append(make('i', {title: `${FATES[n][1]}: ${percent(value / sum, 2)}`, css: {flex: `${value / sum} 0 0`, background: cssOf(FATES[n][2])}})); });
    bars.append(make('span', {}, name), stack, make('span', {class: sum === all ? 'yes' : 'no'}, sum === all ? '✓ balanced' : `✗ ${count(all - sum)} missing`));
  }
  const title = ([, words, name]) => [make('i', {css: {background: cssOf(name)}}), words];
  const cell = (row, fate) => make('td', {}, count(row.fates[FATES.indexOf(fate)]));
  const heads = (first, ...others) => make('thead', {}, make('tr', {}, make('th', {scope: 'col'}, first), ...others));
  const head = (...content) => make('th', {scope: 'col'}, ...content), side = (...content) => make('th', {scope: 'row'}, ...content);
  const table = make('table', {class: 'fates'});
  if (host.clientWidth < 560) {  // on a narrow page streams are columns
    table.append(heads('fate', ...rows.map(row => head(row.name))), make('tbody', {},
      make('tr', {}, side('arrivals'), ...rows.map(row => make('td', {}, count(row.all)))),
      ...used.map(fate => make('tr', {}, side(...title(fate)), ...rows.map(row => cell(row, fate))))));
  } else {
    table.append(heads('stream', head('arrivals'), ...used.map(fate => head(...title(fate)))), make('tbody', {},
      ...rows.map(row => make('tr', {}, side(row.name), make('td', {}, count(row.all)), ...used.map(fate => cell(row, fate))))));
  }
  host.replaceChildren(bars, make('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Fates of the arrivals'}, table));
}

class DrawnPanel {
  constructor(card, draw, has) {
    Object.assign(this, {card, draw, has});
    this.host = card.querySelector('.drawing');
    new ResizeObserver(() => { if (this.query && !this.card.hidden) this.update(this.query, this.place, true); }).observe(this.host);
  }

  update(query, place, isResized = false) {
    if (isResized && this.wide === this.host.clientWidth) return;
    Object.assign(this, {query, place, wide: this.host.clientWidth});
    this.draw(this.host, query, place);
  }
}

const drawers = {
  curve: [drawCurve, (query, place) => (query.drawn('curve', place)?.length || 0) > 1],
  delays: [drawDelays, (query, place) => Object.keys(query.drawn('delays', place) || {}).length > 0],
  leads: [drawLeads, (query, place) => query.streams.length > 1 && query.streams.some(name => query.last(`charts.leads.${name}`, place) !== null)],
  harvest: [drawHarvest, (query, place) => (query.drawn('harvest', place)?.length || 0) > 0],
  accounting: [drawAccounting, (query, place) => query.streams.some(name => query.last(`streams.${name}.arrivals`, place) !== null)],
};
