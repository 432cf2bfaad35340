// Why each task has its probability at this time: the factors of its attention, as bars. And the
// task in focus.

import { toggleTask } from './actions.js';
import { lineColour, theme } from './colours.js';
import { plainButton } from './controls.js';
import { $, make } from './elements.js';
import { orderSentence, taskSentence } from './found.js';
import { graph } from './graph.js';
import { curriculum, currentPoint, focus, page, unit } from './model.js';
import { digits, percent, short, significant } from './text.js';

const MOST_BARS = 40;  // tasks that have bars

// By the kind of attention: what is shown of it, and whether 1 is the whole width of a bar.
const COLUMNS = {
  'mastering-rate': [
    ['first', 'learnable', '[M_Anc^p]', true],
    ['second', 'unlearned', '[δ(1−M) + (1−δ)|β̂|]', true],
    ['third', 'successors', '[1 − M_Succ]', true],
    ['attention', 'attention', 'a, eq. 1', false],
    ['redistributed', 'passed on', 'a″, eq. 2, 3', false],
    ['next', 'probability', 'from here on', true],
    ['until', 'until here', 'the mean', true],
  ],
  'learning-progress': [
    ['mastery', 'mastery', 'M', true],
    ['betaHat', 'learning progress', '|β̂|', true],
    ['next', 'probability', 'from here on', true],
    ['until', 'until here', 'the mean', true],
  ],
  other: [
    ['mastery', 'mastery', 'M', true],
    ['learnability', 'given ancestors', 'M_Anc, the least', true],
    ['probability', 'probability', 'at this point', true],
    ['until', 'until here', 'the mean', true],
  ],
};

const why = { key: '', cells: [] };  // for what the bars were built; the bars and texts by column

export function drawWhy() {
  const s = focus(), kind = COLUMNS[s.program.attention] ? s.program.attention : 'other';
  const tasks = tasksWithBars();
  const key = `${page.group} ${s.key} ${tasks.join()} ${theme()}`;
  if (why.key !== key) {
    why.key = key;
    buildWhy(s, columnsOf(kind), tasks);
  }
  for (const cells of why.cells) updateBars(cells, tasks);
  $('why-bars').querySelectorAll('tbody tr').forEach((row, i) => {
    row.classList.toggle('chosen', tasks[i] === page.task);
  });
  $('why-text').textContent = whyText(s, kind, tasks.length < curriculum().tasks.length);
  $('why-order').textContent = orderText(s);
  drawTask();
}

// Without an order there are no ancestors.
function columnsOf(kind) {
  const { edges } = curriculum();
  return COLUMNS[kind].filter(([name]) => name !== 'learnability' || edges.length);
}

function orderText(s) {
  const whole = orderSentence(graph.found);
  if (page.task === null) return whole;
  return `${taskSentence(page.task, graph.found, s.curves.frames)} ${whole}`;
}

// All, or the most probable ones.
function tasksWithBars() {
  const all = curriculum().tasks.map((_, task) => task), { probability } = graph.now;
  if (all.length <= MOST_BARS) return all;
  const likeliest = all.sort((a, b) => probability[b] - probability[a]).slice(0, MOST_BARS);
  return likeliest.sort((a, b) => a - b);
}

const isProbability = (name) => ['next', 'probability', 'until'].includes(name);

function buildWhy(s, columns, tasks) {
  why.cells = columns.map(([name, , , whole]) => ({ name, whole, bars: [] }));
  const rows = tasks.map((task) => make('tr', {},
    make('th', { scope: 'row' }, plainButton(() => toggleTask(task), curriculum().tasks[task])),
    ...why.cells.map(({ name, bars }) => {
      const bar = make('i', {}), text = make('span', {});
      if (isProbability(name)) bar.style.background = lineColour(s.colour);
      bars.push([bar, text]);
      return make('td', { class: 'bar' }, make('div', { class: 'track' }, bar), text);
    })));
  const heads = columns.map(([, text, symbol]) => (
    make('th', { scope: 'col' }, text, make('small', {}, symbol))));
  $('why-bars').replaceChildren(make('table', { class: 'bars' },
    make('thead', {}, make('tr', {}, make('th', { scope: 'col' }, 'task'), ...heads)),
    make('tbody', {}, ...rows)));
}

function updateBars({ name, whole, bars }, tasks) {
  const now = graph.now[name];
  const largest = whole ? 1 : Math.max(...now.map((x) => x ?? 0), 1e-12);
  const asText = isProbability(name) ? percent : whole ? digits : significant;
  bars.forEach(([bar, text], i) => {
    const x = now[tasks[i]];
    bar.style.width = `${Math.min((x ?? 0) / largest, 1) * 100}%`;
    text.textContent = asText(x);
  });
}

function whyText(s, kind, some) {
  const { power, delta, gamma_pred: toBefore, gamma_succ: toAfter } = s.program.settings;
  const start = `After ${short(s.curves.frames[currentPoint()])} ${unit()}, ${s.name}: `;
  const few = some ? ` The ${MOST_BARS} most probable tasks.` : '';
  if (s.program.attention === 'auto') return start + autoText(s.program.settings) + few;
  if (kind === 'other') {
    return `${start}this program does not look at progress or order as equation 1 does.${few}`;
  }
  const unknown = graph.now.progress.includes(null)
    ? ' Learning progress was not kept, so what needs it is not known.' : '';
  if (kind === 'learning-progress') {
    return `${start}attention is learning progress alone.${unknown}${few}`;
  }
  return `${start}attention is the product of three factors (p = ${power}, δ = ${delta}); of it `
    + `${percent(toBefore)} goes to predecessors and ${percent(toAfter)} to successors.`
    + `${unknown}${few}`;
}

function autoText({ dark, hint }) {
  const blocks = dark > 0
    ? '; while nothing succeeds, it trains on one task at a time, in blocks' : '';
  const hinted = hint > 0 ? ' and takes the given one as a hint' : ' and ignores the given one';
  const given = curriculum().edges.length ? hinted : '';
  return `this program needs no order${given}. It trains on what answers to training${blocks}. It `
    + 'sets aside a task that has made no progress for long, even if its M is low. It '
    + 'does not use equation 1, and its own estimate of mastery can differ from M.';
}

// The task in focus, or the likeliest one.
export const taskShown = () => page.task ?? likeliest();

function likeliest() {
  const chance = chances();
  return chance.indexOf(Math.max(...chance));
}

const chances = () => (
  graph.now.next.includes(null) ? graph.now.probability : graph.now.next);

function drawTask() {
  const task = taskShown();
  $('agent-title').textContent = curriculum().tasks[task];
  $('agent-facts').textContent = [
    page.task === null ? 'the likeliest task now' : '',
    `mastery ${percent(graph.now.mastery[task])}`, `probability ${percent(chances()[task])}`,
  ].filter(Boolean).join(' · ');
}
