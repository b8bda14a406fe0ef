// The moment that is shown: the last one, live, or any other of the run.

const PLAY_S = 30;  // a whole run, whatever its length

const view = {
  query: null,
  moment: null,  // a place; null means the last, live
  isLive: true,
  isPlaying: false,
  span: 0,
  listeners: [],
  isScheduled: false,

  get place() {
    const last = this.query.length - 1;
    return this.moment === null ? last : Math.min(this.moment, last);
  },

  // What part of the time is shown: whole, or the last seconds before the moment.
  range(series, place) {
    const end = series.x[place], first = series.x[0];
    if (this.span > 0) return [Math.max(first, end - this.span), end];
    return [first, this.moment === null ? end : series.x.at(-1)];
  },

  move(place) {
    const last = this.query.length - 1;
    this.moment = place >= last ? null : Math.max(0, place);
    this.changed();
  },

  changed() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => {
      this.isScheduled = false;
      for (const listener of this.listeners) listener();
    });
  },

  start() {
    const slider = element('moment');
    slider.addEventListener('input', () => { this.halt(); this.move(Number(slider.value)); });
    element('follow').addEventListener('click', () => { this.halt(); this.moment = null; this.changed(); });
    element('play').addEventListener('click', () => this.isPlaying ? this.halt() : this.play());
    element('span').addEventListener('change', () => { this.span = Number(element('span').value); this.changed(); });
  },

  play() {
    const last = this.query.length - 1;
    if (last < 1) return;
    let at = this.moment === null || this.moment >= last ? 0 : this.moment, before = null;
    const isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.isPlaying = true;
    this.move(Math.min(at, last - 1));
    const step = now => {
      if (!this.isPlaying) return;
      if (before === null || now - before > (isCalm ? 500 : 30)) {
        at += before === null ? 0 : last * (now - before) / 1000 / PLAY_S;
        before = now;
        if (at >= last) { this.halt(); this.moment = null; this.changed(); return; }
        this.move(Math.floor(at));
      }
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  },

  halt() {
    this.isPlaying = false;
    this.changed();
  },

  update() {
    const query = this.query, series = seriesOf(query), place = this.place, slider = element('moment');
    slider.max = String(Math.max(0, query.length - 1));
    slider.value = String(place);
    const text = `${clock(series.x[place], series.isClock)} · batch ${count(query.at('batch', place))}`;
    slider.setAttribute('aria-valuetext', text);
    setText(element('moment-text'), text);
    const isLast = this.moment === null, isOver = query.ended !== null || !this.isLive;
    setText(element('follow'), isOver ? 'End' : 'Live');
    element('follow').setAttribute('aria-pressed', String(isLast && !this.isPlaying));
    element('play').setAttribute('aria-pressed', String(this.isPlaying));
    element('play').setAttribute('aria-label', this.isPlaying ? 'Pause' : 'Play the run');
  },
};
