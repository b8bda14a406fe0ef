// Commands: the requested target, what the curve expects of it, and what the query took.

const controls = {
  can: false,
  why: '',
  query: null,
  proposal: null,  // the share of the slider, if it differs from the target
  waiting: null,

  start() {
    const slider = element('recall-slider'), number = element('recall-number');
    const propose = value => {
      this.proposal = Number(value) / 100;
      this.expect();
      view.changed();
    };
    slider.addEventListener('input', () => { number.value = slider.value; propose(slider.value); });
    number.addEventListener('input', () => { slider.value = number.value; propose(number.value); });
    element('control').addEventListener('submit', event => { event.preventDefault(); this.send(); });
  },

  proposed() { return this.proposal > 0 && this.proposal <= 1 ? this.proposal : null; },

  async send() {
    const isRecall = !element('field-recall').hidden;
    const percentage = Number(element('recall-number').value);
    if (isRecall && !(percentage > 0 && percentage <= 100)) {
      this.showStatus('The target must be above 0 and at most 100 %.', true);
      element('recall-number').focus();
      return;
    }
    const settings = isRecall ? {recall: Number((percentage / 100).toPrecision(8))} : {slack: element('slack-text').value.trim()};
    element('apply').disabled = true;
    try {
      const answer = await fetch('control', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(settings)});
      if (!answer.ok) throw new Error((await answer.text()).trim() || `the server answered ${answer.status}`);
      this.waiting = {...settings, words: isRecall ? percent(settings.recall) : `K ${settings.slack}`, from: view.query?.series?.changes.length || 0};
      this.showStatus(`Sent ${this.waiting.words}. It takes effect at the next micro-batch.`);
    } catch (error) {
      this.showStatus(error instanceof TypeError ? 'The server cannot be reached.' : error.message, true);
    } finally {
      element('apply').disabled = false;
    }
  },

  showStatus(text, isBad = false) {
    setText(element('command-status'), text);
    element('command-status').dataset.is = isBad ? 'bad' : 'good';
  },

  // What the curve expects of the proposal.
  expect() {
    const query = view.query, share = query && (this.proposed() ?? query.last('target', view.place));
    const curve = query && share !== null ? query.drawn('curve', view.place) : null;
    let text = '';
    if (curve?.length) {
      const point = curve.find(([, recall]) => recall >= share);
      text = point
        ? `About ${duration((point[2] ?? point[0]) / query.perMs)} of latency, at the current delays.`
        : `More than ${duration(curve.at(-1)[0] / query.perMs)} of waiting, at the current delays.`;
    }
    setText(element('expect'), text);
  },

  update(query, place) {
    const target = query.last('target', place), series = seriesOf(query);
    const isOver = query.ended !== null;
    const isOurs = this.can && (this.query === null || this.query === query.name);
    const isEarly = query.spec.kind === 'aggregate';
    const isPossible = isOurs && !isOver && !isEarly && query.spec.control !== false;
    const isRecall = target !== null || query.spec.goal?.kind === 'Recall';
    element('control').hidden = !isPossible;
    element('field-recall').hidden = !isRecall;
    element('field-slack').hidden = isRecall;
    element('no-control').hidden = isPossible;
    const why = isEarly ? 'Early results have a deadline, which cannot be changed during the run.' : isOurs && isOver ? 'The run has ended; its target can no longer be changed.' : this.can && !isOurs ? 'This query takes no commands.' : this.why;
    setText(element('no-control'), why);
    const isUntouched = this.proposal === null && document.activeElement !== element('recall-number');
    if (target !== null && isUntouched) {  // it follows the target, but not under the hands of a person who types
      element('recall-slider').value = element('recall-number').value = Number((100 * target).toFixed(4));
    }
    this.expect();
    const done = series.changes.filter(change => change.place <= place);
    if (this.waiting && series.changes.length > this.waiting.from) this.taken(query, series.changes.at(-1));
    this.announce(query, series);
    this.list(query, series, done);
  },

  // A change from another place than this page.
  announce(query, series) {
    const known = this.counted?.query === query ? this.counted.changes : series.changes.length;
    if (series.changes.length > known && !this.isAnnounced) {
      const change = series.changes.at(-1);
      this.showStatus(`${change.text} at batch ${query.at('batch', change.place)}.`, change.isRefused);
    }
    this.isAnnounced = false;
    this.counted = {query, changes: series.changes.length};
  },

  taken(query, change) {
    const batch = query.at('batch', change.place);
    if (change.isRefused) this.showStatus(`The query refused it at batch ${batch}.`, true);
    else this.showStatus(`${this.waiting.words} since batch ${batch}.`);
    if (Math.abs(this.proposal - this.waiting.recall) < 1e-9) this.proposal = null;
    this.waiting = null;
    this.isAnnounced = true;
  },

  list(query, series, done) {
    const shown = `${query.key} ${done.length}`;
    element('changes-title').hidden = done.length === 0;
    if (shown === this.shown) return;
    this.shown = shown;
    const items = done.slice(-50).reverse().map(change => make('li', {}, make('span', {}, change.text),
      make('span', {}, `batch ${count(query.at('batch', change.place))} · ${clock(series.x[change.place], series.isClock)}`)));
    element('changes').replaceChildren(...items);
  },
};
