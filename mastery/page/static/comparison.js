// The programs side by side: how fast each task was mastered, how good they are, and how sure that
// is.

import { writeAddress } from './address.js';
import { options, rebuild, sample } from './controls.js';
import { csvButton } from './downloads.js';
import { $, make } from './elements.js';
import {
  curriculum, firstOf, lastKnown, mean, page, scoreName, series, SMOOTH, THRESHOLDS, unit, weights,
} from './model.js';
import { firstTime, improvement, interquartileMean, interval, upperMedian } from './statistics.js';
import { count, digits, short } from './text.js';

const MOST_COLUMNS = 40;  // tasks

// What a run's score may be.
export function scoreKinds(shown) {
  const kinds = [['area', 'area under the training curve'], ['training', 'training, at the end']];
  for (const policy of ['sampled', 'greedy']) {
    if (!shown.every((s) => s.curves.evaluations[policy])) continue;
    const text = scoreName() === 'accuracy' ? 'last validation' : `last evaluation, ${policy}`;
    kinds.push([policy, text]);
  }
  return kinds;
}

// Whether all tasks count alike, so that their scores can be put together as they are.
export function alike() {
  const { minimum, maximum } = curriculum();
  return new Set(minimum).size === 1 && new Set(maximum).size === 1;
}

// By run and task; the area is by run alone, its mean over tasks, as mastery.paper has it. Where
// tasks count differently, 0 is the curriculum's minimum and 1 its maximum.
export function scoreTable(s, kind) {
  const { minimum, maximum } = curriculum(), same = alike(), each = weights(s.curves.frames);
  const ofTask = (run, task) => {
    const low = minimum[task], high = maximum[task];
    const normal = (x) => (same ? x ?? low : ((x ?? low) - low) / (high - low));
    if (kind !== 'area' && kind !== 'training') {
      return normal(s.curves.evaluations[kind].returns[run][task].at(-1));
    }
    const known = lastKnown(s.curves.returns[run][task]);
    return kind === 'area'
      ? known.reduce((sum, x, i) => sum + each[i] * normal(x), 0)
      : normal(mean(known.slice(-SMOOTH).map((x) => x ?? low)));
  };
  const table = s.runs.map((run) => minimum.map((_, task) => ofTask(run, task)));
  return kind === 'area' ? table.map((tasks) => [mean(tasks)]) : table;
}

// By run and task: frames until it was mastered.
function timesToMaster(s) {
  const { frames, mastery } = s.curves;
  return s.runs.map((run) => (
    mastery[run].map((points) => firstTime(frames, points, page.threshold))));
}

function compared(shown, kinds) {
  if (!kinds.some(([kind]) => kind === page.score)) page.score = kinds[0][0];
  const reference = shown.find((s) => s.key === page.against) ?? firstOf(shown);
  page.against = reference.key;
  const theirs = scoreTable(reference, page.score);
  return shown.map((s) => {
    const ours = scoreTable(s, page.score), times = timesToMaster(s);
    return {
      s, times,
      iqm: interval(interquartileMean, [ours]),
      better: s === reference ? null : interval(improvement, [ours, theirs]),
      all: times.map((run) => Math.max(...run)),
      solved: s.curves.solved ? s.runs.map((run) => s.curves.solved[run] ?? Infinity) : null,
    };
  });
}

export function drawComparison() {
  const shown = series(), kinds = scoreKinds(shown), rows = compared(shown, kinds);
  options($('score'), kinds, page.score);
  options($('against'), shown.map((s) => [s.key, s.name]), page.against);
  const thresholds = THRESHOLDS.map((x) => [String(x), `M ≥ ${x}`]);
  options($('threshold'), thresholds, String(page.threshold));
  const { tasks } = curriculum(), some = tasks.slice(0, MOST_COLUMNS);
  drawTable(rows, tableColumns(rows, some), some.length);
  rebuild($('comparison-save'), 'csv', () => [
    csvButton('the comparison', () => `${curriculum().name}-comparison`, comparisonCsv)]);
  $('comparison-text').textContent = comparisonText(rows, tasks.length);
}

// Of each: its head, by what rows are sorted, whether the highest is looked for first, what is in
// its cells, and in those of a file.
function tableColumns(rows, tasks) {
  const against = rows.find(({ s }) => s.key === page.against).s.name;
  const solved = rows.some((row) => row.solved);
  const estimates = (key, head, note, of) => ({
    key, head, note, highest: true, value: (row) => of(row)?.value ?? 0.5,
    cell: (row) => (of(row) ? estimate(of(row)) : ['–']),
    heads: ['', ' low', ' high'].map((which) => `${head}${note ? ` ${note}` : ''}${which}`),
    cells: (row) => [of(row)?.value, of(row)?.low, of(row)?.high],
  });
  const times = (key, head, of, what = `M ≥ ${page.threshold}, ${head}`) => ({
    key, head, value: (row) => upperMedian(of(row)), cell: (row) => timeCell(row, of(row)),
    heads: [`${unit()} until ${what}`, `runs with ${what}`],
    cells: (row) => [upperMedian(of(row)), of(row).filter(Number.isFinite).length],
  });
  return [
    {
      key: 'program', head: 'program', value: (row) => row.s.name, cell: programCell,
      heads: ['program', 'job', 'runs', unit()],
      cells: ({ s }) => [s.program.label, s.job.name, s.runs.length, s.curves.frames.at(-1)],
    },
    estimates('iqm', 'score, IQM', '', (row) => row.iqm),
    estimates('better', 'P(better)', `than ${against}`, (row) => row.better),
    ...(solved ? [times('solved', 'all learned', solvedTimes, 'all learned')] : []),
    times('all', 'all tasks', (row) => row.all),
    ...tasks.map((name, task) => (
      times(`task ${task}`, name, (row) => row.times.map((run) => run[task])))),
  ];
}

const solvedTimes = ({ s, solved }) => solved ?? s.runs.map(() => Infinity);

// One row a program, with all tasks.
function comparisonCsv() {
  const shown = series(), rows = compared(shown, scoreKinds(shown));
  const columns = tableColumns(rows, curriculum().tasks);
  return [
    columns.flatMap(({ heads }) => heads),
    ...sortedRows(rows, columns).map((row) => columns.flatMap(({ cells }) => cells(row))),
  ];
}

function drawTable(rows, columns, tasks) {
  const key = [
    columns.map(({ head, note }) => [head, note]), page.sort, page.threshold,
    rows.map(({ s, iqm, better, times, solved }) => [s.key, s.runs, iqm, better, times, solved]),
  ];
  rebuild($('comparison-table'), key, () => {
    const above = make('tr', { class: 'group' },
      make('th', { colspan: columns.length - tasks - 1 }),
      make('th', { colspan: tasks + 1 }, `${unit()} until M ≥ ${page.threshold}, median`));
    const heads = make('tr', {}, ...columns.map(tableHead));
    const body = sortedRows(rows, columns).map((row) => tableRow(row, columns));
    return [make('table', {}, make('thead', {}, above, heads), make('tbody', {}, ...body))];
  });
}

// A head sorts by its column: what is best first, and if the rows are already sorted by it, the
// other way round.
function tableHead({ key, head, note, highest = false }) {
  const { column, down } = page.sort, sorted = column === key;
  const click = () => {
    page.sort = { column: key, down: sorted ? !down : highest };
    drawComparison();
    writeAddress();
  };
  const arrow = make('span', { class: 'arrow', 'aria-hidden': 'true' },
    !sorted ? '' : down ? ' ↓' : ' ↑');
  return make('th', {
    scope: 'col', class: key === 'program' ? 'left' : null,
    'aria-sort': !sorted ? null : down ? 'descending' : 'ascending',
  },
  make('button', { type: 'button', class: 'plain', 'data-key': key, on: { click } }, head, arrow),
  note ? make('small', {}, note) : null);
}

function tableRow(row, columns) {
  return make('tr', { 'data-series': row.s.name }, ...columns.map(({ key, cell }) => (
    key === 'program'
      ? make('th', { scope: 'row', class: 'left' }, ...cell(row))
      : make('td', {}, ...cell(row)))));
}

function sortedRows(rows, columns) {
  const column = columns.find(({ key }) => key === page.sort.column);
  if (!column) return rows;
  const sign = page.sort.down ? -1 : 1;
  const order = (a, b) => (typeof a === 'string' ? a.localeCompare(b) : a === b ? 0 : a - b);
  return rows.slice().sort((a, b) => sign * order(column.value(a), column.value(b)));
}

function programCell({ s }) {
  const seeds = s.runs.map((run) => s.job.runs[run][1]).join(', ');
  const link = { href: `#job-${s.job.key}`, class: 'soft below', title: `seeds ${seeds}` };
  return [sample(s), s.name, make('a', link, count(s.runs.length, 'run'))];
}

function estimate({ value, low, high }) {
  return [digits(value), make('small', {}, `${digits(low)} … ${digits(high)}`)];
}

function timeCell(row, times) {
  const middle = upperMedian(times), done = times.filter(Number.isFinite).length;
  const text = Number.isFinite(middle) ? short(middle) : `> ${short(row.s.curves.frames.at(-1))}`;
  return done < times.length ? [text, make('small', {}, `${done} of ${times.length}`)] : [text];
}

function comparisonText(rows, tasks) {
  const range = alike() ? '' : ', where 0 is a task’s minimum and 1 its maximum';
  const learned = rows.some((row) => row.solved)
    ? ' All learned: examples until 99 % of every task’s validation examples were right, '
      + 'three epochs running.' : '';
  const some = tasks > MOST_COLUMNS ? ` The first ${MOST_COLUMNS} of ${tasks} tasks.` : '';
  const [over, by] = page.score === 'area'
    ? ['over tasks and time', 'runs'] : ['of a task', 'runs and tasks'];
  return `Score: the mean ${scoreName()} ${over}${range}; its interquartile mean over ${by}, `
    + 'with the 95 % interval of a bootstrap stratified by task. P: the probability that a run '
    + 'scores more than one of the other program. “>”: half of the runs or more had not '
    + `mastered it by then; n of m: n runs of m had.${learned}${some}`;
}
