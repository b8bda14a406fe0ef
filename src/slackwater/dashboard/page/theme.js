// Light, dark, or as the system has it.

const theme = {
  chosen: 'auto',
  listeners: [],
  system: matchMedia('(prefers-color-scheme: dark)'),
  colours: {},

  start() {
    try { this.chosen = localStorage.getItem('slackwater-theme') || 'auto'; } catch { /* not allowed */ }
    this.system.addEventListener('change', () => this.apply());
    element('theme').addEventListener('click', () => {
      const all = ['auto', 'light', 'dark'];
      this.chosen = all[(all.indexOf(this.chosen) + 1) % 3];
      try { localStorage.setItem('slackwater-theme', this.chosen); } catch { /* not allowed */ }
      this.apply();
    });
    this.apply();
  },

  apply() {
    const isDark = this.chosen === 'dark' || (this.chosen === 'auto' && this.system.matches);
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
    setText(element('theme'), `Theme: ${this.chosen}`);
    const style = getComputedStyle(document.documentElement);
    for (const name of ['card', 'ink', 'muted', 'line', 'grid', 'accent', 'accent-soft', 'target', 'bad', 's0', 's1', 's2', 's3', 's4', 's5', 's6', 's7']) {
      this.colours[name] = style.getPropertyValue(`--${name}`).trim();
    }
    for (const listener of this.listeners) listener();
  },
};

const colour = name => () => theme.colours[name];
const cssOf = name => `var(--${name})`;
const ofStream = n => `s${n % 8}`;
