// The programs side by side: how fast each task was mastered, how good they are, and how sure that
// is.
'use strict';

const MOST_COLUMNS = 40;
const THRESHOLDS = [0.5, 0.7, 0.8, 0.9, 0.95];

// What a run's score may be.
function scoreKinds(shown) {
  const kinds = [['area', 'area under the training curve'], ['training', 'training, at the end']];
  for (const policy of ['sampled', 'greedy']) {
    if (shown.every((s) => s.curves.evaluations[policy])) {
      kinds.push([policy, score() === 'accuracy' ? 'last validation' : `last evaluation, ${policy}`]);
    }
  }
  return kinds;
}

// Whether all tasks count alike, so that their scores can be put together as they are.
function alike() {
  const { minimum, maximum } = curriculum();
  return new Set(minimum).size === 1 && new Set(maximum).size === 1;
}

// By run and task. Where tasks count differently, 0 is the curriculum's minimum and 1 its maximum.
function scoreTable(s, kind) {
  const { minimum, maximum } = curriculum(), same = alike();
  const normal = (x, task) => (same ? x ?? minimum[task] : ((x ?? minimum[task]) - minimum[task]) / (maximum[task] - minimum[task]));
  return s.runs.map((run) => minimum.map((_, task) => {
    if (kind === 'area') {
      const known = lastKnown(s.curves.returns[run][task]), each = weights(s.curves.frames);
      return known.reduce((sum, x, i) => sum + each[i] * normal(x, task), 0);
    }
    if (kind === 'training') {
      return normal(mean(lastKnown(s.curves.returns[run][task]).slice(-SMOOTH).map((x) => x ?? minimum[task])), task);
    }
    return normal(s.curves.evaluations[kind].returns[run][task].at(-1), task);
  }));
}

// By run and task: frames until it was mastered.
function timesToMaster(s) {
  return s.runs.map((run) => s.curves.mastery[run].map((points) => firstTime(s.curves.frames, points, page.threshold)));
}

function compared(shown) {
  const kinds = scoreKinds(shown);
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

function drawComparison() {
  const shown = series(), rows = compared(shown);
  options($('score'), scoreKinds(shown), page.score);
  options($('against'), shown.map((s) => [s.key, s.name]), page.against);
  options($('threshold'), THRESHOLDS.map((x) => [String(x), `M ≥ ${x}`]), String(page.threshold));
  const tasks = curriculum().tasks.slice(0, MOST_COLUMNS);
  const columns = [
    { key: 'program', head: 'program', value: (row) => row.s.name, cell: programCell },
    { key: 'iqm', head: 'score, IQM', value: (row) => -row.iqm.value, cell: (row) => estimate(row.iqm) },
    { key: 'better', head: 'P(better)', note: `than ${shown.find((s) => s.key === page.against).name}`, value: (row) => -(row.better?.value ?? 0.5), cell: (row) => (row.better ? estimate(row.better) : ['–']) },
    ...(rows.some((row) => row.solved) ? [{ key: 'solved', head: 'all learned', value: (row) => upperMedian(row.solved), cell: (row) => time(row, row.solved) }] : []),
    { key: 'all', head: 'all tasks', value: (row) => upperMedian(row.all), cell: (row) => time(row, row.all) },
    ...tasks.map((name, task) => ({ key: `task ${task}`, head: name, value: (row) => upperMedian(row.times.map((run) => run[task])), cell: (row) => time(row, row.times.map((run) => run[task])) })),
  ];
  const sorted = sortedRows(rows, columns);
  const heads = columns.map(({ key, head, note }) => make('th', {
    scope: 'col', class: key === 'program' ? 'left' : null,
    'aria-sort': page.sort.column !== key ? null : page.sort.down ? 'ascending' : 'descending',
  }, make('button', {
    type: 'button', class: 'plain', 'data-key': key,
    on: { click: () => { page.sort = { column: key, down: page.sort.column === key ? !page.sort.down : true }; drawComparison(); } },
  }, head, make('span', { class: 'arrow', 'aria-hidden': 'true' }, page.sort.column !== key ? '' : page.sort.down ? ' ↑' : ' ↓')), note ? make('small', {}, note) : null));
  const group = make('tr', { class: 'group' }, make('th', { colspan: columns.length - tasks.length - 1 }), make('th', { colspan: tasks.length + 1 }, `${unit()} until M ≥ ${page.threshold}, median`));
  rebuild($('comparison-table'), [columns.map(({ head, note }) => [head, note]), page.sort, page.threshold, rows.map(({ s, iqm, better, times, solved }) => [s.key, s.runs, iqm, better, times, solved])], () => [make('table', {}, make('thead', {}, group, make('tr', {}, ...heads)),
    make('tbody', {}, ...sorted.map((row) => make('tr', { 'data-series': row.s.name }, ...columns.map(({ key, cell }) =>
      make(key === 'program' ? 'th' : 'td', { scope: key === 'program' ? 'row' : null, class: key === 'program' ? 'left' : null }, ...cell(row)))))))]);
  const n = curriculum().tasks.length;
  $('comparison-text').textContent = `Score: the mean ${score()}${alike() ? '' : ', where 0 is a task’s minimum and 1 its maximum'}; its interquartile mean over runs and tasks, `
    + 'with the 95 % interval of a bootstrap stratified by task. P: the probability that a run scores more than one of the other program. '
    + '“>”: half of the runs or more had not mastered it by then; n of m: n runs of m had.'
    + (rows.some((row) => row.solved) ? ' All learned: examples until 99 % of every task’s validation examples were right, three epochs running.' : '')
    + (n > MOST_COLUMNS ? ` The first ${MOST_COLUMNS} of ${n} tasks.` : '');
}

function sortedRows(rows, columns) {
  const column = columns.find(({ key }) => key === page.sort.column);
  if (!column) return rows;
  const sign = page.sort.down ? 1 : -1;
  const order = (a, b) => (typeof a === 'string' ? a.localeCompare(b) : a === b ? 0 : a - b);
  return rows.slice().sort((a, b) => sign * order(column.value(a), column.value(b)));
}

const programCell = ({ s }) => [sample(s), s.name,
  make('a', { href: `#job-${s.job.key}`, class: 'soft below', title: `seeds ${s.runs.map((run) => s.job.runs[run][1]).join(', ')}` }, count(s.runs.length, 'run'))];
const estimate = ({ value, low, high }) => [digits(value), make('small', {}, `${digits(low)} … ${digits(high)}`)];

function time(row, times) {
  const middle = upperMedian(times), done = times.filter(Number.isFinite).length;
  const text = Number.isFinite(middle) ? short(middle) : `> ${short(row.s.curves.frames.at(-1))}`;
  return [text, done < times.length ? make('small', {}, `${done} of ${times.length}`) : null].filter(Boolean);
}
