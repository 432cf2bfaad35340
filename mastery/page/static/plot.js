// One chart as SVG: lines with the area between their quartiles, or areas on top of each other. It
// shows the values under the pointer, and reports clicks and drags along its x-axis.

import { make } from './elements.js';
import { scaleOf, ticksOf } from './scales.js';

const DASHED = { solid: null, dash: '6 4', dot: '2 3', dashdot: '7 3 2 3' };
const CLOSE = 5;  // pixels that a pointer may move in a click
const NUMBER = 6.6;  // pixels of a digit

// Draw a figure into an element:
//   traces   {name, x, y, colour, dash, width}; with `low` and `high` for an area around the line,
//            `faint` for a line in the background; x and y are arrays, null where there is nothing
//   stacked  the traces are areas on top of each other
//   x, y     {range, format}; x also {kind, scale, unit, title}, y {ticks, exact}
//   marks    {x, text}: lines across the chart
//   size     'large', 'middle' or 'small'
export function drawPlot(element, figure) {
  const width = element.clientWidth, height = element.clientHeight;
  const frame = frameOf(figure, width, height);
  const x = scaleOf(figure.x.kind, figure.x.range, frame.left, frame.width);
  const y = scaleOf('linear', [...figure.y.range].reverse(), frame.top, frame.height);
  const inside = make('svg:svg', {
    x: frame.left, y: frame.top - 1, width: Math.max(frame.width, 0), height: frame.height + 2,
    viewBox: `${frame.left} ${frame.top - 1} ${Math.max(frame.width, 1)} ${frame.height + 2}`,
  }, ...(figure.stacked ? layerPaths(figure.traces, x, y) : tracePaths(figure.traces, x, y)),
  ...(figure.marks ?? []).map((mark) => markLine(mark, x, frame)));
  const svg = make('svg:svg', {
    class: 'plot', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': figure.label ?? null,
  }, ...axisLines(figure, x, y, frame), inside);
  const old = element.querySelector(':scope > svg.plot');
  if (old) old.replaceWith(svg); else element.prepend(svg);
  Object.assign(element, { data: figure.traces, figure, frame, x, y });
  listenTo(element);
}

function frameOf({ size, x, y }, width, height) {
  const texts = yTicks({ y, size }).map(y.format);
  const left = Math.max(...texts.map((text) => text.length), 2) * NUMBER + 10;
  const right = size === 'large' ? 14 : 8, top = 6;
  const bottom = size === 'large' && x.title ? 42 : 22;
  return { left, top, width: width - left - right, height: height - top - bottom };
}

const yTicks = ({ y, size }) => (
  y.ticks ?? ticksOf('linear', y.range, size === 'large' ? 6 : 3));

// Round numbers in the unit in which they are shown, such as minutes.
const xTicks = ({ kind, range, scale = 1 }, size) => (
  ticksOf(kind, range.map((x) => x / scale), size === 'large' ? 8 : 4).map((x) => x * scale));

function axisLines({ x: about, y: aboutY, size }, x, y, { left, top, width, height }) {
  const found = [];
  const line = (x1, y1, x2, y2, kind) => (
    make('svg:path', { class: kind, d: `M${x1} ${y1}L${x2} ${y2}` }));
  const text = (x1, y1, anchor, said) => (
    make('svg:text', { x: x1, y: y1, 'text-anchor': anchor, class: 'tick' }, said));
  for (const tick of yTicks({ y: aboutY, size })) {
    const at = y.at(tick);
    if (at < top - 1 || at > top + height + 1) continue;
    found.push(line(left, at, left + width, at, 'grid'));
    found.push(text(left - 6, at + 4, 'end', aboutY.format(tick)));
  }
  const bottom = top + height;
  found.push(line(left, bottom, left + width, bottom, 'axis'));
  let last = -Infinity;  // where the last text ends, so that none falls on another
  for (const tick of xTicks(about, size)) {
    const at = x.at(tick), said = about.format(tick), half = said.length * NUMBER / 2;
    found.push(line(at, bottom, at, bottom + 4, 'axis'));
    if (at - half < last + 6 || at + half > left + width + 12) continue;
    last = at + half;
    found.push(text(at, bottom + 16, 'middle', said));
  }
  if (about.title && size === 'large') {
    found.push(make('svg:text', {
      x: left + width / 2, y: bottom + 35, 'text-anchor': 'middle', class: 'axis-title',
    }, about.title));
  }
  return found;
}

function tracePaths(traces, x, y) {
  const bands = traces.filter((trace) => trace.low).map((trace) => make('svg:path', {
    class: 'band', fill: trace.colour, d: bandPath(trace, x, y),
  }));
  const lines = traces.map((trace) => make('svg:path', {
    class: trace.faint ? 'curve faint' : 'curve', stroke: trace.colour,
    'stroke-width': trace.width, 'stroke-dasharray': DASHED[trace.dash] ?? null,
    d: linePath(trace, x, y),
  }));
  return [...bands, ...lines];
}

const tenths = (pixel) => Math.round(pixel * 10) / 10;
const isKnown = (value) => value !== null && value !== undefined;

// A point without neighbours is a dot: a line so short that only its round ends are seen.
function linePath({ x: xs, y: ys }, x, y) {
  let d = '';
  for (let i = 0; i < xs.length; i++) {
    if (!isKnown(ys[i])) continue;
    const at = `${tenths(x.at(xs[i]))} ${tenths(y.at(ys[i]))}`;
    const before = i > 0 && isKnown(ys[i - 1]), after = i + 1 < xs.length && isKnown(ys[i + 1]);
    d += before ? `L${at}` : after ? `M${at}` : `M${at}h0.01`;
  }
  return d;
}

// An area for each unbroken part.
function bandPath({ x: xs, low, high }, x, y) {
  let d = '';
  for (let i = 0; i < xs.length;) {
    if (!isKnown(low[i])) { i++; continue; }
    let end = i;
    while (end < xs.length && isKnown(low[end])) end++;
    const corner = (values) => (k) => `${tenths(x.at(xs[k]))} ${tenths(y.at(values[k]))}`;
    const there = Array.from({ length: end - i }, (_, k) => i + k);
    d += `M${there.map(corner(low)).join('L')}L${there.reverse().map(corner(high)).join('L')}Z`;
    i = end;
  }
  return d;
}

function layerPaths(traces, x, y) {
  let below = null;
  return traces.map((trace) => {
    const low = below ?? trace.x.map(() => 0);
    const high = low.map((base, i) => base + (trace.y[i] ?? 0));
    below = high;
    const d = bandPath({ x: trace.x, low, high }, x, y);
    return make('svg:path', { class: 'layer', fill: trace.colour, d });
  });
}

function markLine({ x: at, text }, x, { top, height }) {
  const pixel = x.at(at);
  return make('svg:g', { class: 'mark' },
    make('svg:path', { d: `M${pixel} ${top}V${top + height}` }),
    make('svg:title', {}, text));
}

const listening = new WeakSet();

// What is done with a chart; `element.choose` (a place on the x-axis) and `element.zoom` (a range,
// or null) are set by who draws it, or not.
function listenTo(element) {
  if (listening.has(element)) return;
  listening.add(element);
  const drag = { from: null };
  element.addEventListener('pointermove', (event) => {
    const pixel = pixelOf(element, event);
    if (drag.from === null) return showValues(element, pixel);
    hideValues(element);
    showBrush(element, drag.from, pixel);
  });
  element.addEventListener('pointerleave', () => hideValues(element));
  element.addEventListener('pointerdown', (event) => {
    // a finger moves the page
    if (event.button || event.pointerType === 'touch' || !isInside(element, event)) return;
    if (!element.zoom) return;
    drag.from = pixelOf(element, event);
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener('pointerup', (event) => {
    if (drag.from === null) return;
    const range = [drag.from, pixelOf(element, event)].sort((a, b) => a - b);
    drag.from = null;
    hideBrush(element);
    if (range[1] - range[0] > CLOSE) element.zoom(range.map(element.x.from));
  });
  element.addEventListener('pointercancel', () => {
    drag.from = null;
    hideBrush(element);
  });
  element.addEventListener('click', (event) => {
    if (element.choose && isInside(element, event)) choosePlace(element, event);
  });
  element.addEventListener('dblclick', () => element.zoom?.(null));
}

// The click that ends a drag chooses nothing.
function choosePlace(element, event) {
  if (performance.now() - (element.brushed ?? -Infinity) < 300) return;
  element.choose(element.x.from(pixelOf(element, event)));
}

function pixelOf(element, event) {
  const { left, width } = element.frame;
  const pixel = event.clientX - element.getBoundingClientRect().left;
  return Math.min(Math.max(pixel, left), left + width);
}

function isInside(element, event) {
  if (event.target.closest('button, .menu')) return false;
  const { left, top, width, height } = element.frame, box = element.getBoundingClientRect();
  const x = event.clientX - box.left, y = event.clientY - box.top;
  return x >= left - 4 && x <= left + width + 4 && y >= top - 4 && y <= top + height + 4;
}

function partOf(element, kind) {
  let part = element.querySelector(`:scope > .${kind}`);
  if (!part) {
    part = make('div', { class: kind, hidden: true });
    element.append(part);
  }
  return part;
}

function showBrush(element, a, b) {
  const brush = partOf(element, 'brush'), { top, height } = element.frame;
  if (Math.abs(a - b) > CLOSE) element.brushed = performance.now();
  brush.hidden = false;
  brush.style.left = `${Math.min(a, b)}px`;
  brush.style.width = `${Math.abs(a - b)}px`;
  brush.style.top = `${top}px`;
  brush.style.height = `${height}px`;
}

const hideBrush = (element) => { partOf(element, 'brush').hidden = true; };
const hideValues = (element) => { partOf(element, 'values').hidden = true; };

// The values of all curves at the point nearest to the pointer.
function showValues(element, pixel) {
  const { figure, frame, x } = element, values = partOf(element, 'values');
  const shown = figure.traces.filter((trace) => trace.name && trace.x.length);
  const points = shown.map((trace) => nearest(trace.x, x.from(pixel)));
  const at = shown.map((trace, i) => trace.x[points[i]]);
  if (!at.length) return;
  const place = at.reduce((a, b) => (
    Math.abs(x.at(b) - pixel) < Math.abs(x.at(a) - pixel) ? b : a));
  const rows = shown.flatMap((trace, i) => valueRow(figure, trace, points[i], x, place));
  values.replaceChildren(
    make('strong', {}, `${figure.x.format(place)} ${figure.x.unit ?? ''}`), ...rows);
  values.hidden = false;
  const wide = values.offsetWidth, spot = x.at(place);
  const left = spot + 14 + wide <= element.clientWidth ? spot + 14 : Math.max(spot - 14 - wide, 0);
  values.style.left = `${left}px`;
  values.style.top = `${frame.top}px`;
}

function valueRow(figure, trace, point, x, place) {
  const far = Math.abs(x.at(trace.x[point]) - x.at(place)) > 12;
  if (far || !isKnown(trace.y[point])) return [];
  const spread = trace.low
    ? ` (${figure.y.exact(trace.low[point])} … ${figure.y.exact(trace.high[point])})` : '';
  const key = make('i', { class: 'dot' });
  key.style.background = trace.colour;
  return [make('div', {}, key, `${trace.name}: ${figure.y.exact(trace.y[point])}${spread}`)];
}

// The number of the point that is nearest to x.
export function nearest(xs, x) {
  let low = 0, high = xs.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1; else high = middle;
  }
  return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
}
