// The charts of the page, and when they are drawn: a part of the page is drawn when it comes into
// sight, and again when what it shows has changed. All charts share one time: its axis, its range
// and the cursor.

import { actions } from './actions.js';
import { downloadMenu, fileName, saveCsv, savePng, saveSvg } from './downloads.js';
import { make } from './elements.js';
import { axisTitle, currentPoint, focus, page, series, timesOf } from './model.js';
import { drawPlot } from './plot.js';
import { short } from './text.js';

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

export function lazily(element, draw) {
  const before = parts.get(element), { visible = false, width = 0 } = before ?? {};
  parts.set(element, { draw, due: true, visible, width });
  if (visible) drawPart(element);
  if (before) return;
  sight.observe(element);
  widths.observe(element);
}

function drawPart(element) {
  const part = parts.get(element);
  part.due = false;
  part.width = element.clientWidth;
  part.draw();
}

// All parts, also those that are not in sight, such as before the page is printed.
export function drawAllParts() {
  for (const element of parts.keys()) drawPart(element);
}

// All parts again: now those that can be seen, the others when they come into sight.
export function redrawParts() {
  for (const [element, { draw }] of parts) lazily(element, draw);
}

export function dropCharts(holder) {
  for (const element of [...parts.keys()]) {
    if (!holder.contains(element)) continue;
    sight.unobserve(element);
    widths.unobserve(element);
    parts.delete(element);
  }
}

// A chart over time; `figure` gives what `drawPlot` needs when it is drawn. A drag zooms all
// charts; a click sets the page's time, unless the chart is small: then it is a click on a task.
export function chart(element, name, figure) {
  lazily(element, () => {
    const { size } = Object.assign(element, { figure: figure() }).figure;
    if (size !== 'small') Object.assign(element, { choose: actions.goToTime, zoom: zoomTo });
    drawPlot(element, element.figure);
    if (!element.querySelector(':scope > .menu')) addSaving(element, name);
    moveCursor(element);
  });
}

function zoomTo(range) {
  page.zoom = range;
  actions.drawCharts();
}

function addSaving(element, name) {
  const picture = () => element.querySelector(':scope > svg.plot');
  const menu = downloadMenu(`the chart ${name}`, [
    ['PNG', () => savePng(picture(), name)],
    ['SVG', () => saveSvg(picture(), name)],
    ['CSV', () => saveCsv(`${fileName(name)}.csv`, figureRows(element.figure))],
  ]);
  element.append(menu);
}

// The numbers of a chart, a row for each point of each curve.
function figureRows({ traces, x }) {
  const quartiles = traces.some((trace) => trace.low) ? ['low', 'high'] : [];
  const named = traces.filter((trace) => trace.name), { scale = 1 } = x;
  const rows = named.flatMap((trace) => trace.x.map((at, i) => (
    [trace.name, at / scale, trace.y[i], ...quartiles.map((end) => trace[end]?.[i] ?? null)])));
  return [['curve', x.unit, 'value', ...quartiles.map((end) => `${end} quartile`)], ...rows];
}

// The axis of time that all charts share.
export function timeAxis() {
  const all = series().map(timesOf).filter((times) => times.length);
  const end = Math.max(...all.map((times) => times.at(-1)));
  const first = Math.min(...all.map((times) => times.find((x) => x > 0) ?? end));
  const whole = page.log ? [first * 0.9, end * 1.05] : [0, end * 1.005];
  const range = zoomWithin(whole);
  const [scale, clock] = page.axis === 'seconds' ? clockOf(range[1]) : [1];
  return {
    kind: page.log ? 'log' : 'linear', range, scale, format: (x) => short(x / scale),
    unit: clock ?? axisTitle(), title: clock ? `${axisTitle()}, in ${clock}` : axisTitle(),
  };
}

// A logarithmic axis cannot begin at zero.
function zoomWithin(whole) {
  if (!page.zoom || !page.log) return page.zoom ?? whole;
  const [from, to] = page.zoom;
  return to > whole[0] ? [Math.max(from, whole[0]), to] : whole;
}

// The unit in which seconds are shown, and its length.
function clockOf(seconds) {
  if (seconds < 300) return [1, 'seconds'];
  return seconds < 3 * 3600 ? [60, 'minutes'] : [3600, 'hours'];
}

export function moveCursors() {
  for (const [element, part] of parts) if (part.visible && !part.due) moveCursor(element);
}

// Where the page's time is in a chart.
function moveCursor(element) {
  const s = focus();
  if (!element.frame || !s) return;
  let cursor = element.querySelector(':scope > .cursor');
  if (!cursor) {
    cursor = make('div', { class: 'cursor', 'aria-hidden': 'true' });
    element.append(cursor);
  }
  const { left, top, width, height } = element.frame;
  const at = element.x.at(timesOf(s)[currentPoint()]);
  cursor.hidden = page.frames === Infinity || !(at >= left - 1 && at <= left + width + 1);
  cursor.style.left = `${at}px`;
  cursor.style.top = `${top}px`;
  cursor.style.height = `${height}px`;
}
