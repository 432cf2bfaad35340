// What all parts of the page draw with: elements, numbers, colours, charts.
'use strict';

const $ = (id) => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';

// An element; what is given as text is never read as HTML.
function make(tag, attributes = {}, ...inside) {
  const element = tag.startsWith('svg:')
    ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on') for (const [event, f] of Object.entries(value)) element.addEventListener(event, f);
    else if (name === 'style') for (const [key, x] of Object.entries(value)) element.style.setProperty(key, x);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...inside.filter((x) => x !== null && x !== undefined));
  return element;
}

// 1,234; 12.3k; 4.56M
function short(x) {
  if (x === null || x === undefined) return '–';
  for (const [size, letter] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (Math.abs(x) >= size * 0.99995) return `${Number((x / size).toPrecision(3))}${letter}`;
  }
  return `${Number(x.toPrecision(3))}`;
}
const digits = (x, n = 2) => (x === null || x === undefined || Number.isNaN(x) ? '–' : x.toFixed(n));
const percent = (x) => (x === null || x === undefined ? '–' : `${Math.round(100 * x)} %`);
const significant = (x) => (x === null ? '–' : x === 0 ? '0' : Number(x.toPrecision(3)).toString());
const count = (n, of) => `${n.toLocaleString('en')} ${of}${n === 1 ? '' : 's'}`;

function duration(seconds) {
  if (seconds === null || !Number.isFinite(seconds)) return '–';
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86400).toFixed(1)} days`;
}

// A colour of the style sheet, as it is in light or in dark.
function shade(name) {
  const probe = $('tip');
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.style.color = '';
  return found;
}

// A program's colour on this page: black is the ink, and on a dark page all are a little lighter.
function lineColour(colour) {
  if (colour === '#000000') return shade('ink');
  return theme() === 'dark' ? `rgb(${mixed(colour, '#ffffff', 0.22).join(',')})` : colour;
}
const rgb = (colour) => (colour.startsWith('#')
  ? [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16))
  : colour.match(/[\d.]+/g).slice(0, 3).map(Number));
const mixed = (a, b, share) => rgb(a).map((x, i) => Math.round(x + (rgb(b)[i] - x) * share));
const pale = (colour, opacity) => `rgba(${rgb(colour).join(',')},${opacity})`;

// Mastery as a colour, and an ink that can be read on it.
let scale = null;
function masteryColour(m) {
  scale ??= [shade('nothing'), shade('mastered')];
  const found = mixed(...scale, Math.min(Math.max(m, 0), 1));
  const bright = (0.299 * found[0] + 0.587 * found[1] + 0.114 * found[2]) / 255;
  return [`rgb(${found.join(',')})`, bright > 0.52 ? '#14201c' : '#ffffff'];
}

// Names go into Plotly's text, which reads some HTML.
const plain = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

// A line with the colour and the dash of a series.
function sample(s) {
  const dash = { solid: '', dash: '6 4', dot: '2 3', dashdot: '7 3 2 3' }[s.dash];
  return make('svg:svg', { width: 26, height: 10, class: 'sample', 'aria-hidden': 'true' },
    make('svg:line', { x1: 1, x2: 25, y1: 5, y2: 5, stroke: lineColour(s.colour), 'stroke-width': 3, 'stroke-dasharray': dash }));
}

function seriesKey(shown) {
  return shown.map((s) => make('span', {}, sample(s), s.name));
}

// New contents, unless they are as they were: then what the user is about to press stays. What has
// the focus keeps it.
const built = new Map();
function rebuild(holder, key, contents) {
  const whole = JSON.stringify([key, theme()]);
  if (built.get(holder) === whole) return;
  built.set(holder, whole);
  const focused = holder.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  holder.replaceChildren(...contents());
  if (focused) holder.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

// Buttons of which one is pressed.
function tabs(holder, items, chosen, choose) {
  rebuild(holder, [items.map(({ key, text }) => [key, text]), chosen], () => items.map(({ key, text, mark }) => make('button', {
    type: 'button', role: 'radio', 'aria-checked': key === chosen ? 'true' : 'false', 'data-key': key,
    on: { click: () => choose(key) },
  }, mark, text)));
}

function options(select, items, chosen) {
  rebuild(select, items, () => items.map(([value, text]) => make('option', { value }, text)));
  select.value = chosen;
}

// Parts are drawn when they come into sight, and again when what they show has changed.
const parts = new Map();  // by element: how it is drawn, and whether that is due
const sight = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    const part = parts.get(target);
    if (!part) continue;
    part.visible = isIntersecting;
    if (isIntersecting && part.due) drawPart(target);
  }
}, { rootMargin: '150px' });
const widths = new ResizeObserver((seen) => {
  for (const { target } of seen) {
    const part = parts.get(target);
    if (part?.width && Math.abs(part.width - target.clientWidth) > 1) lazily(target, part.draw);
  }
});

function lazily(element, draw) {
  const known = parts.get(element);
  parts.set(element, { draw, due: true, visible: known?.visible ?? false, width: known?.width ?? 0 });
  if (known?.visible) drawPart(element);
  if (known) return;
  sight.observe(element);
  widths.observe(element);
}

function drawPart(element) {
  const part = parts.get(element);
  part.due = false;
  part.width = element.clientWidth;
  part.draw();
}

// All parts that are due, such as before the page is printed.
function drawAllParts() {
  for (const [element, { due }] of parts) if (due) drawPart(element);
}

function redrawParts() {
  for (const [element, { draw }] of parts) lazily(element, draw);
}

function dropCharts(holder) {
  for (const element of [...parts.keys()]) {
    if (!holder.contains(element)) continue;
    sight.unobserve(element);
    widths.unobserve(element);
    Plotly.purge(element);
    parts.delete(element);
  }
}

// A chart by Plotly; `figure` gives its traces and layout when it is drawn.
function chart(element, figure) {
  lazily(element, () => drawChart(element, figure));
}

function drawChart(element, figure) {
  const { traces, layout } = figure();
  const soft = shade('soft'), line = shade('line');
  const axis = { gridcolor: line, linecolor: line, zeroline: false, tickcolor: line, automargin: false };
  const whole = {
    width: element.clientWidth, height: element.clientHeight, showlegend: false, dragmode: false,
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', hovermode: 'x unified',
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: soft },
    hoverlabel: { bgcolor: shade('card'), bordercolor: line, font: { color: shade('ink'), size: 12 }, namelength: 40 },
    margin: { l: 44, r: 12, t: 8, b: 30 },
    ...layout,
    xaxis: { ...axis, showgrid: false, ticks: 'outside', ticklen: 4, ...layout.xaxis },
    yaxis: { ...axis, ...layout.yaxis },
  };
  Plotly.react(element, traces, whole, { displayModeBar: false, displaylogo: false, doubleClick: 'reset' });
  moveCursor(element);
}

const framesAxis = () => {
  const shown = series();
  const end = Math.max(...shown.map((s) => s.curves.frames.at(-1)));
  const first = Math.min(...shown.map((s) => s.curves.frames[0]));
  return {
    type: page.log ? 'log' : 'linear', tickformat: '~s', hoverformat: '.4~s', nticks: 7,
    range: page.log ? [Math.log10(first * 0.9), Math.log10(end * 1.02)] : [0, end * 1.005],
  };
};

// Where the page's time is in a chart.
function moveCursor(element) {
  const layout = element._fullLayout;
  if (!layout?.xaxis) return;
  let cursor = element.querySelector(':scope > .cursor');
  if (!cursor) {
    cursor = make('div', { class: 'cursor', 'aria-hidden': 'true' });
    element.append(cursor);
  }
  const s = focus(), axis = layout.xaxis, at = s ? s.curves.frames[currentPoint()] : NaN;
  const x = axis.d2p(at) + axis._offset;
  const inside = x >= axis._offset - 1 && x <= axis._offset + axis._length + 1;
  cursor.hidden = !inside || page.frames === Infinity;
  if (inside) {
    cursor.style.left = `${x}px`;
    cursor.style.top = `${layout.yaxis._offset}px`;
    cursor.style.height = `${layout.yaxis._length}px`;
  }
}

function moveCursors() {
  for (const [element, part] of parts) if (part.visible && !part.due) moveCursor(element);
}

// A note beside something, while the pointer or the focus is on it.
function tipFor(element, fill) {
  const show = () => {
    const tip = $('tip');
    tip.replaceChildren(...fill());
    tip.hidden = false;
    const at = element.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const left = Math.min(Math.max(at.left + at.width / 2 - own.width / 2, 8), innerWidth - own.width - 8);
    const above = at.top - own.height - 10;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(above > 8 ? above : at.bottom + 10) + scrollY}px`;
  };
  const hide = () => { $('tip').hidden = true; };
  for (const event of ['pointerenter', 'focus']) element.addEventListener(event, show);
  for (const event of ['pointerleave', 'blur']) element.addEventListener(event, hide);
}
