// Where training went: the probabilities of the tasks over time, and how much was spent on tasks
// that were mastered, learnable, or not yet learnable.

import { chart, dropCharts, timeAxis } from './charts.js';
import { shade, theme } from './colours.js';
import { rebuild, sample } from './controls.js';
import { $, make } from './elements.js';
import { graph } from './graph.js';
import {
  curriculum, KINDS, kindsOf, LEARNABLE, mean, page, series, timesOf, trainedAt, weights,
} from './model.js';
import { percent } from './text.js';

const MOST_ROWS = 8;  // series
const MOST_LAYERS = 40;  // areas in a chart
const MOST_IN_KEY = 24;  // of more, the first and the last
const KIND_COLOURS = ['done', 'learnable', 'unlearnable'];  // in the style sheet

const where = { key: '' };  // for what the rows were made

export function drawWhere() {
  const all = series(), shown = all.slice(0, MOST_ROWS), holder = $('where-rows');
  const key = `${page.group} ${shown.map((s) => s.key).join()} ${theme()}`;
  if (where.key !== key) {
    where.key = key;
    dropCharts(holder);
    holder.replaceChildren(...shown.map(makeRow));
  }
  shown.forEach((s, i) => drawRow(holder.children[i], s));
  $('where-text').textContent = whereText(shown, all.length);
  drawWhereKey();
}

function makeRow(s) {
  return make('div', { class: 'row', 'data-series': s.name },
    make('div', {}, make('h3', {}, sample(s), s.name), make('div', { class: 'soft spent' })),
    make('div', { class: 'chart middle' }), make('div', { class: 'chart middle' }));
}

function drawRow(row, s) {
  const [left, right] = row.querySelectorAll('.chart'), runs = trainedAt(s);
  const each = weights(s.curves.frames).map((x, i) => x * runs[i]);
  const total = (of) => of.reduce((sum, x, i) => sum + x * each[i], 0);
  const all = total(each.map(() => 1));
  const spent = kindsOf(s, graph.order).map((of) => total(of) / all);
  row.querySelector('.spent').replaceChildren(
    ...spent.map((x, i) => make('div', {}, make('b', {}, percent(x)), ` ${KINDS[i]}`)));
  chart(left, `probabilities, ${s.name}`, () => layersFigure(s));
  chart(right, `where training went, ${s.name}`, () => kindsFigure(s, kindsOf(s, graph.order)));
}

function whereText(shown, all) {
  const many = shown.some((s) => s.runs.length > 1) ? ', the mean over seeds' : '';
  const some = all > MOST_ROWS ? ` The first ${MOST_ROWS} of ${all} programs.` : '';
  return `First the probability of each task${many}; then the share of training on tasks that `
    + `were, when it was given, mastered (M ≥ ${page.threshold}), learnable (every ancestor has `
    + `M ≥ ${LEARNABLE}), or not yet learnable.${some}`;
}

// Tasks side by side, put together where there are very many.
function layers() {
  const { tasks, colours } = curriculum(), each = Math.ceil(tasks.length / MOST_LAYERS);
  return Array.from({ length: Math.ceil(tasks.length / each) }, (_, i) => {
    const first = i * each, length = Math.min(each, tasks.length - first);
    const inside = Array.from({ length }, (_, k) => first + k);
    const name = each === 1 ? tasks[i] : `${tasks[first]} … ${tasks[inside.at(-1)]}`;
    return { inside, name, colour: colours[first] };
  });
}

function drawWhereKey() {
  const all = layers(), told = all.length <= MOST_IN_KEY ? all : [all[0], all.at(-1)];
  const entry = (name, colour) => make('span', {},
    make('i', { class: 'dot', style: { background: colour } }), name);
  rebuild($('where-key'), all, () => [
    ...told.map(({ name, colour }) => entry(name, colour)),
    make('span', { class: 'gap' }),
    ...KINDS.map((kind, i) => entry(kind, `var(--${KIND_COLOURS[i]})`)),
  ]);
}

function layersFigure(s) {
  const { frames, probability } = s.curves;
  return stacked(s, layers().map(({ inside, name, colour }) => {
    const together = (run, i) => inside.reduce((sum, task) => sum + probability[run][task][i], 0);
    return { name, colour, y: frames.map((_, i) => mean(s.runs.map((run) => together(run, i)))) };
  }));
}

function kindsFigure(s, kinds) {
  return stacked(s, kinds.map((y, i) => (
    { name: KINDS[i], colour: shade(KIND_COLOURS[i]), y })));
}

function stacked(s, areas) {
  return {
    traces: areas.map((area) => ({ ...area, x: timesOf(s) })), stacked: true, size: 'middle',
    x: timeAxis(), y: { range: [0, 1], ticks: [0, 0.5, 1], format: percent, exact: percent },
    label: `${s.name}, over time: ${areas.map(({ name }) => name).join(', ')}`,
  };
}
