// The page: loads the lines so far, then new lines, and shows them.

const app = {
  queries: new Map(),
  panels: [],
  source: null,
  isLost: false,

  async start() {
    theme.start();
    if (location.search) history.replaceState(null, '', location.pathname);  // the token is a cookie now
    controls.start();
    view.start();
    view.listeners.push(() => this.render());
    this.cards();
    element('queries').addEventListener('change', () => this.show(this.queries.get(element('queries').value)));
    await this.load();
  },

  cards() {
    const watcher = new IntersectionObserver(entries => {
      for (const entry of entries) {
        const panel = this.panels.find(one => one.card === entry.target);
        panel.isSeen = entry.isIntersecting;
        if (panel.isSeen && panel.isStale) view.changed();
      }
    }, {rootMargin: '200px'});
    document.querySelectorAll('.card').forEach((card, n) => {
      const title = card.querySelector('h2'), why = card.querySelector('.why');
      title.id = `card-${n}`;
      why.id = `why-${n}`;
      why.hidden = true;
      card.setAttribute('aria-labelledby', title.id);
      const help = make('button', {type: 'button', class: 'help', 'aria-expanded': 'false', 'aria-controls': why.id, 'aria-label': `What is this: ${title.textContent}`}, '?');
      help.addEventListener('click', () => {
        why.hidden = !why.hidden;
        help.setAttribute('aria-expanded', String(!why.hidden));
      });
      title.after(help);
      const kind = card.dataset.panel;
      if (kind === 'control') return;
      card.hidden = true;
      const panel = kind === 'early' ? new EarlyPanel(card) : drawers[kind] ? new DrawnPanel(card, ...drawers[kind]) : new TimePanel(card, describers[kind]);
      this.panels.push(panel);
      watcher.observe(card);
    });
  },

  async load() {
    try {
      const answer = await fetch('lines.json');
      if (!answer.ok) throw new Error(await answer.text());
      const known = await answer.json(), shown = view.query?.key;
      this.queries = new Map(known.queries.map(one => [one.key, Query.from(one)]));
      Object.assign(controls, {can: known.control.can, why: known.control.why, query: known.control.query ?? null});
      view.isLive = known.live;
      this.isLost = false;
      this.list();
      this.show(this.queries.get(shown) || this.best());
      if (known.live) this.listen(`${known.serving}-${known.last}`);
    } catch {
      this.isLost = true;
      this.render();
      setTimeout(() => this.load(), 3000);
    }
  },

  listen(after) {
    this.source?.close();
    this.source = new EventSource(`events?after=${after}`);
    this.source.addEventListener('line', event => this.take(Number(event.lastEventId.split('-')[1]), JSON.parse(event.data)));
    this.source.addEventListener('reset', () => { this.source.close(); this.load(); });
    this.source.addEventListener('open', () => { this.isLost = false; view.changed(); });
    this.source.addEventListener('error', () => {
      this.isLost = true;
      if (this.source.readyState === EventSource.CLOSED) setTimeout(() => this.load(), 3000);
      view.changed();
    });
  },

  take(number, line) {
    const key = String(line.id || line.name || 'query');
    if (!this.queries.has(key)) {
      this.queries.set(key, new Query(key, String(line.name || key)));
      this.list();
    }
    const query = this.queries.get(key);
    query.take(number, line);
    if (!view.query || (!view.query.length && query.length)) this.show(query);
    if (query === view.query) view.changed();
  },

  // The query with the most to show.
  best() {
    const all = [...this.queries.values()];
    return all.find(query => query.columns.has('slack')) || all.find(query => query.length) || all[0] || null;
  },

  list() {
    const all = [...this.queries.values()];
    element('pick').hidden = all.length < 2;
    element('title').hidden = all.length > 1;
    element('queries').replaceChildren(...all.map((query, n) => {
      const twins = all.filter(other => other.name === query.name);
      return make('option', {value: query.key}, twins.length > 1 ? `${query.name} (${1 + twins.indexOf(query)})` : query.name);
    }));
    if (view.query) element('queries').value = view.query.key;
  },

  show(query) {
    view.query = query;
    view.moment = null;
    view.halt();
    controls.proposal = controls.shown = controls.waiting = null;
    if (query) element('queries').value = query.key;
    view.changed();
  },

  render() {
    const query = view.query, hasLines = Boolean(query?.length);
    this.status(query);
    element('empty').hidden = hasLines;
    document.querySelector('.grid').hidden = element('tiles').hidden = document.querySelector('.timeline').hidden = !hasLines;
    if (query) {
      setText(element('title'), query.name);
      document.title = `${query.name} · Slackwater`;
    }
    if (!hasLines) return;
    const place = view.place;
    view.update();
    summary(query, place);
    controls.update(query, place);
    for (const panel of this.panels) {
      panel.card.hidden = !panel.has(query, place);
      if (panel.card.hidden) continue;
      panel.isStale = !panel.isSeen;
      if (panel.isSeen) panel.update(query, place);
    }
  },

  status(query) {
    const ended = query?.ended;
    const [is, text] = this.isLost && !ended ? ['lost', 'connection lost, trying again']
      : ended ? [ended.exception ? 'failed' : 'ended', ended.exception ? 'failed' : 'ended']
      : !view.isLive ? ['ended', 'recorded'] : query?.length ? ['live', 'live'] : ['waiting', 'waiting'];
    element('status').dataset.is = is;
    setText(element('status').lastElementChild, text);
    element('status').title = ended?.exception ? String(ended.exception).split('\n')[0] : '';
  },
};

// The last window that is not exact yet, in words.
function earlyWords(query, place) {
  const before = query.earlyWindows.slice(0, placeOf(query.earlyWindows, query.numbers[place], item => item[0]) + 1);
  const row = before.map(item => item[1]).reverse().find(one => !one.exact && Object.values(one.values)[0]?.low != null);
  if (!row) return [];
  const [[name, {value, low, high}]] = Object.entries(row.values);
  return [`The last early ${name}: `, make('b', {}, figure(value)), `, between ${figure(low)} and ${figure(high)}.`];
}

// The sentence and the figures on top.
function summary(query, place) {
  const series = seriesOf(query), measured = query.last('charts.recall', place), recall = measured ?? query.last('recall', place);
  const target = query.last('target', place), slack = query.last('slack', place), k = slack === null ? null : slack / query.perMs;
  const late = query.last('late_kept', place), dropped = query.last('late_dropped', place), arrivals = query.last('arrivals', place);
  const missed = query.last('missed', place);
  const lede = [];
  if (recall !== null) {
    // the recall since the start is not the recall over the period of the target
    const strong = make('b', target !== null && measured !== null && recall < target ? {class: 'low'} : {}, percent(recall));
    lede.push(strong, measured === null ? ' of the results so far were in time' : ' of the results are in time', target === null ? '.' : `; the target is ${percent(target)}.`);
  }
  const right = query.last('right_rows', place), wanted = query.last('right_target', place);
  if (right !== null) {
    const strong = make('b', wanted !== null && right < wanted ? {class: 'low'} : {}, percent(right));
    lede.push(lede.length ? ' ' : '', strong, ' of the rows that had to be decided were right so far', wanted === null ? '.' : `; the target is ${percent(wanted)}.`);
  }
  const early = query.spec.kind === 'aggregate';
  if (early) lede.push(...earlyWords(query, place));
  if (k !== null && !early) lede.push(k > 0 ? ' Events wait ' : ' Events do not wait at all', k > 0 ? make('b', {}, duration(k)) : '', k > 0 ? ' to be put in order.' : '.');
  if (!lede.length) lede.push(`${count(query.at('rows', place))} rows in this micro-batch.`);
  if (element('lede').dataset.was !== lede.map(part => part.textContent ?? part).join('')) {
    element('lede').replaceChildren(...lede);
    element('lede').dataset.was = element('lede').textContent;
  }
  const lateShare = late === null || !arrivals ? null : (late + dropped) / arrivals;
  const tiles = [
    ['Recall', percent(recall), recall], ['Target', percent(target), target], ['Slack K', duration(k), early ? null : k],
    ['Latency', duration(series.latency?.[place]), series.latency?.[place]],
    ['Right rows', percent(right), right, wanted === null ? '' : `target ${percent(wanted)}`],
    ['Taken back', compact(query.last('withdrawn_rows', place)), right === null ? null : query.last('withdrawn_rows', place)],
    ['Rows in', compact(arrivals), arrivals, isNumber(series.rows?.[place]) ? `${compact(series.rows[place])}/s` : ''],
    ['Results', compact(query.last('produced', place)), query.last('produced', place)],
    ['Late events', compact(late === null ? null : late + dropped), late, lateShare === null ? '' : percent(lateShare, lateShare < 0.01 ? 2 : 1)],
    ['Missed', compact(missed), missed > 0 ? missed : null],
    ['State', bytes(query.last('state_bytes', place)), query.last('state_bytes', place) || null],
  ].filter(tile => isNumber(tile[2]));
  const box = element('tiles'), names = tiles.map(tile => tile[0]).join();
  if (box.dataset.names !== names) {
    box.dataset.names = names;
    box.replaceChildren(...tiles.map(([name]) => make('div', {}, make('dt', {}, name), make('dd', {}, make('span'), ' ', make('small')))));
  }
  tiles.forEach(([, text, , more], n) => {
    const [main, , small] = box.children[n].lastElementChild.childNodes;
    setText(main, text);
    setText(small, more || '');
  });
}

app.start();
