// Numbers for people. Shares are cut off, not rounded: 99.996 % is not 100 %.

const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const short = new Intl.NumberFormat('en', {notation: 'compact', maximumFractionDigits: 1});
const NONE = '–';

const isNumber = value => typeof value === 'number' && Number.isFinite(value);
const count = value => isNumber(value) ? whole.format(value) : NONE;
const compact = value => !isNumber(value) ? NONE : Math.abs(value) < 1e4 ? figure(value) : short.format(value);

function figure(value) {
  if (!isNumber(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 1e5) return short.format(value);
  return size >= 100 || Number.isInteger(value) ? whole.format(value) : String(Number(value.toPrecision(3)));
}

function percent(share, digits = share >= 0.9995 ? 3 : share >= 0.99 ? 2 : 1) {
  if (!isNumber(share)) return NONE;
  const scale = 10 ** digits;
  const cut = Math.floor(share * 100 * scale + 1e-6) / scale;
  return `${Number(cut.toFixed(digits))} %`;
}

// A time in milliseconds.
function duration(ms) {
  if (!isNumber(ms)) return NONE;
  const size = Math.abs(ms);
  if (size < 1) return ms === 0 ? '0 s' : `${Number((1000 * ms).toPrecision(3))} µs`;
  if (size < 999.5) return `${Number(ms.toPrecision(3))} ms`;
  if (size < 119_500) return `${Number((ms / 1000).toPrecision(size < 9_995 ? 2 : 3))} s`;
  if (size < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return `${Number((ms / 3_600_000).toPrecision(3))} h`;
}

function bytes(value) {
  if (!isNumber(value)) return NONE;
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  for (; value >= 1000 && unit < 4; unit += 1) value /= 1000;
  return `${Number(value.toPrecision(3))} ${units[unit]}`;
}

const two = value => String(value).padStart(2, '0');

// A moment in seconds: the clock where it is one, else the time since the start.
function clock(seconds, isClock) {
  if (!isNumber(seconds)) return NONE;
  if (isClock) {
    const at = new Date(seconds * 1000);
    return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  }
  const total = Math.floor(seconds), hours = Math.floor(total / 3600);
  return `${hours ? `${hours}:` : ''}${hours ? two(Math.floor(total / 60) % 60) : Math.floor(total / 60)}:${two(total % 60)}`;
}

const element = id => document.getElementById(id);

// An element with its attributes and children; text stays text.
function make(tag, attributes = {}, ...children) {
  const isDrawn = ['svg', 'path', 'line', 'circle', 'rect', 'text', 'g', 'polyline', 'title'].includes(tag);
  const made = isDrawn ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'css') for (const [key, set] of Object.entries(value)) made.style.setProperty(key, set);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const setText = (node, text) => { if (node.textContent !== text) node.textContent = text; };
