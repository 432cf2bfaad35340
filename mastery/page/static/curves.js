// Curves of each task: median and quartiles over seeds, one colour for each program. And what else
// a loop has logged.

import { actions, toggleTask } from './actions.js';
import { chart, dropCharts, timeAxis } from './charts.js';
import { lineColour } from './colours.js';
import { options, plainButton, rebuild, seriesKey, tabs } from './controls.js';
import { $, make } from './elements.js';
import {
  axes, axisTitle, curriculum, onAxis, page, scoreCurves, scoreName, series, unit,
} from './model.js';
import { quantiles } from './statistics.js';
import { digits, significant } from './text.js';

const MOST_PANELS = 24;
const MOST_SCALARS = 12;
const MEASURED = ['training', 'evaluation', 'greedy', 'sampled'];

export function drawCurves() {
  const shown = series();
  drawMeasured(shown);
  drawAxes();
  drawSmoothing();
  $('unzoom').hidden = page.zoom === null;
  $('each').parentElement.hidden = !shown.some((s) => s.runs.length > 1);
  $('curves-text').textContent = curvesText(shown);
  rebuild($('curves-key'), shown.map((s) => [s.name, s.colour, s.dash]), () => seriesKey(shown));
  $('curves-focus').textContent = page.task === null
    ? `All tasks: the mean ${scoreName()}` : curriculum().tasks[page.task];
  $('unfocus').hidden = page.task === null;
  const name = page.task === null ? 'all tasks' : curriculum().tasks[page.task];
  chart($('curve'), name, () => curveFigure(page.task, true));
  drawPanels();
  drawScalars(shown);
}

// What can be looked at: the scores in training, and those of the policies that were evaluated.
function drawMeasured(shown) {
  const policies = new Set(shown.flatMap((s) => Object.keys(s.curves.evaluations)));
  const choices = MEASURED.filter((what) => what === 'training' || policies.has(what));
  if (!choices.includes(page.what)) page.what = 'training';
  const items = choices.map((key) => ({ key, text: measuredName(key) }));
  tabs($('curves-what'), items, page.what, (key) => {
    page.what = key;
    actions.drawCharts();
  });
}

function measuredName(what) {
  if (what === 'training' || what === 'evaluation') return what;
  return scoreName() === 'accuracy' ? 'validation' : `evaluation, ${what} policy`;
}

function drawAxes() {
  const found = axes();
  if (!found.includes(page.axis)) page.axis = 'frames';
  const names = { frames: unit(), steps: 'time-steps', seconds: 'wall-clock' };
  options($('axis'), found.map((axis) => [axis, names[axis]]), page.axis);
  $('axis').parentElement.hidden = found.length < 2;
}

function drawSmoothing() {
  const training = page.what === 'training';
  $('smooth').parentElement.hidden = !training;
  $('smooth').value = page.smooth;
  const said = page.smooth > 1 ? `over ${page.smooth} points` : 'off';
  $('smooth-said').textContent = said;
  $('smooth').setAttribute('aria-valuetext', said);
}

function curvesText(shown) {
  const several = shown.some((s) => s.runs.length > 1)
    ? `Median and quartiles over seeds of the mean ${scoreName()}` : `The mean ${scoreName()}`;
  const n = curriculum().tasks.length;
  const some = n > MOST_PANELS ? ` Small pictures of the first ${MOST_PANELS} of ${n} tasks.` : '';
  const unseen = page.what === 'training' && page.task === null && shown.some(beginsLate)
    ? ' A task that was not seen yet counts with its minimum.' : '';
  const along = page.axis === 'frames' ? `${unit()} of each run` : axisTitle();
  return `${several} ${howMeasured()}; along the bottom, ${along}. `
    + `Drag to zoom all charts, click to set the time.${unseen}${some}`;
}

const beginsLate = ({ curves, runs }) => (
  runs.some((run) => curves.returns[run].some((points) => points[0] === null)));

function howMeasured() {
  if (page.what === 'training') {
    return page.smooth > 1 ? `in training, over the last ${page.smooth} points` : 'in training';
  }
  return scoreName() === 'accuracy'
    ? 'on examples the teacher never sees' : 'in episodes apart from training';
}

const panels = { key: '', scalars: '' };  // for which curriculum and which scalars they were made

function drawPanels() {
  const holder = $('panels'), { tasks } = curriculum();
  if (panels.key !== page.group) {
    panels.key = page.group;
    dropCharts(holder);
    holder.replaceChildren(...tasks.slice(0, MOST_PANELS).map(makePanel));
  }
  [...holder.children].forEach((panel, task) => {
    panel.classList.toggle('chosen', page.task === task);
    chart(panel.lastChild, tasks[task], () => curveFigure(task, false));
  });
}

function makePanel(name, task) {
  return make('figure', { 'data-task': task },
    make('figcaption', {}, plainButton(() => toggleTask(task), name)),
    make('div', {
      class: 'chart small',
      on: { click: (event) => { if (!event.target.closest('.menu')) actions.focusTask(task); } },
    }));
}

function curveFigure(task, large) {
  const traces = series().flatMap((s) => curveTraces(s, task, large));
  return {
    traces, size: large ? 'large' : 'small', x: timeAxis(), marks: large ? remarkLines() : [],
    y: { range: scoreRange(task), format: significant, exact: (y) => digits(y, 3) },
    label: `The ${scoreName()} of ${task === null ? 'all tasks' : curriculum().tasks[task]}`,
  };
}

// The median of a series with its quartiles, behind it the same without smoothing, and the seeds.
function curveTraces(s, task, large) {
  const { times, values } = scoreCurves(s, task);
  if (!times.length) return [];
  const colour = lineColour(s.colour), several = s.runs.length > 1;
  const background = [];
  const faint = (y) => ({ name: '', x: times, y, colour, width: 1, dash: 'solid', faint: true });
  if (large && page.each && several) background.push(...values.map(faint));
  else if (large && page.what === 'training' && page.smooth > 1) {
    background.push(faint(spreadOf(scoreCurves(s, task, 1).values, times).map((q) => q[1])));
  }
  return [...background, medianTrace(s.name, colour, s.dash, times, values, large)];
}

const spreadOf = (values, times) => (
  times.map((_, i) => quantiles(values.map((points) => points[i]), [0.25, 0.5, 0.75])));

function medianTrace(name, colour, dash, times, values, large) {
  const spread = spreadOf(values, times), quartiles = values.length > 1
    ? { low: spread.map((q) => q[0]), high: spread.map((q) => q[2]) } : {};
  return {
    name, colour, dash, x: times, y: spread.map((q) => q[1]), ...quartiles,
    width: (times.length === 1 ? 3 : 1) * (large ? 2.2 : 1.6),
  };
}

// The notes of a recorded loop.
function remarkLines() {
  return series().flatMap((s) => (s.job.remarks ?? []).filter(({ run }) => s.runs.includes(run))
    .map(({ frames, text }) => ({ x: onAxis(s, frames), text })));
}

// The range of a task's scores, and of what was measured if that is wider. Tasks with the same
// bounds share it, so that their panels can be compared.
function scoreRange(task) {
  const { minimum, maximum, tasks } = curriculum();
  const alike = task === null ? tasks.map((_, i) => i) : tasks.map((_, i) => i).filter((i) => (
    minimum[i] === minimum[task] && maximum[i] === maximum[task]));
  let low = Math.min(...alike.map((i) => minimum[i]));
  let high = Math.max(...alike.map((i) => maximum[i]));
  for (const { curves, runs } of series()) {
    const found = (page.what === 'training' ? curves : curves.evaluations[page.what])?.returns;
    for (const run of found ? runs : []) for (const i of alike) for (const y of found[run][i]) {
      if (y === null) continue;
      if (y < low) low = y;
      if (y > high) high = y;
    }
  }
  const room = (high - low) * 0.03;
  return [low - room, high + room];
}

// Numbers that a loop logs beside its scores, such as a loss.
function drawScalars(shown) {
  const names = [...new Set(shown.flatMap((s) => Object.keys(s.curves.scalars ?? {})))];
  const some = names.slice(0, MOST_SCALARS), holder = $('scalars');
  $('scalars-title').hidden = holder.hidden = !some.length;
  if (panels.scalars !== JSON.stringify(some)) {
    panels.scalars = JSON.stringify(some);
    dropCharts(holder);
    holder.replaceChildren(...some.map((name) => make('figure', {},
      make('figcaption', {}, name), make('div', { class: 'chart small' }))));
  }
  some.forEach((name, i) => chart(holder.children[i].lastChild, name, () => scalarFigure(name)));
}

function scalarFigure(name) {
  const traces = series().flatMap((s) => {
    const found = s.curves.scalars?.[name];
    if (!found) return [];
    const times = found.frames.map((x) => onAxis(s, x));
    const values = s.runs.map((run) => found.values[run]);
    return [medianTrace(s.name, lineColour(s.colour), s.dash, times, values, false)];
  });
  const all = traces.flatMap(({ y, low = [], high = [] }) => [...y, ...low, ...high])
    .filter((y) => y !== null && y !== undefined);
  const low = Math.min(...all), high = Math.max(...all);
  const room = (high - low) * 0.05 || Math.abs(high) / 2 || 1;  // one that never changes
  const range = all.length ? [low - room, high + room] : [0, 1];
  return {
    traces, size: 'small', x: timeAxis(), label: name,
    y: { range, format: significant, exact: significant },
  };
}
