// What is shown: of all jobs those with one curriculum, of those some programs and seeds, one of
// them and a task in focus, and a time. Everything on the page is drawn from `page`.
'use strict';

const MOST_SERIES = 8;  // that are shown at first
const DASHES = ['solid', 'dash', 'dot', 'dashdot'];
const KINDS = ['mastered', 'learnable', 'not yet learnable'];
const LEARNABLE = 0.5;  // the mastery of all ancestors from which a task counts as learnable
const SMOOTH = 5;  // points over which returns in training are averaged

const page = {
  index: null, source: null,
  curves: new Map(),  // by the job's key
  group: '',  // the curriculum in focus
  jobs: new Set(), hidden: new Set(), seeds: new Set(),  // chosen jobs; series and seeds left out
  program: '',  // the series in focus
  task: null,  // the task in focus, or null for all
  frames: Infinity,  // the time; infinite: the last point, as they come
  what: 'training', log: false, smooth: true, threshold: 0.9, score: '', against: '',
  sort: { column: '', down: true },
};

const groupOf = (job) => `${job.curriculum.fingerprint} ${job.unit}`;

function groups() {
  const found = new Map();
  for (const job of page.index.jobs) {
    if (!found.has(groupOf(job))) found.set(groupOf(job), []);
    found.get(groupOf(job)).push(job);
  }
  return found;
}

// The jobs of the curriculum in focus.
function groupJobs() {
  return groups().get(page.group) ?? [];
}

function chosenJobs() {
  return groupJobs().filter((job) => page.jobs.has(job.key) && page.curves.has(job.key));
}

function chooseGroup(group) {
  page.group = group;
  page.task = null;
  page.jobs = new Set();
  let count = 0;
  for (const job of groupJobs()) {
    count += job.programs.length;
    if (page.jobs.size === 0 || count <= MOST_SERIES) page.jobs.add(job.key);
  }
  page.hidden = new Set();
  page.seeds = new Set();
}

// Every program of every chosen job: its runs, and how it is drawn.
function allSeries() {
  const jobs = groupJobs(), found = [];
  const labels = jobs.filter((job) => page.jobs.has(job.key)).flatMap((job) => job.programs.map((p) => p.label));
  const several = new Set(labels.filter((label, i) => labels.indexOf(label) !== i));  // in some jobs
  const colour = programColours(jobs);
  jobs.forEach((job, number) => {
    if (!page.jobs.has(job.key) || !page.curves.has(job.key)) return;
    job.programs.forEach((program, i) => {
      found.push({
        key: `${job.key} ${program.label}`, job, program, curves: page.curves.get(job.key),
        name: several.has(program.label) ? `${program.label} · ${job.name}` : program.label,
        colour: colour.get(program.label)[0],
        dash: DASHES[(colour.get(program.label)[1] + number) % DASHES.length],
        runs: job.runs.flatMap(([own, seed], run) => (own === i && !page.seeds.has(seed) ? [run] : [])),
      });
    });
  });
  return found;
}

// Those that are shown.
function series() {
  return allSeries().filter((s) => !page.hidden.has(s.key) && s.runs.length && s.curves.frames.length);
}

// The series in focus; at first one that knows equation 1, if there is one.
function focus() {
  const shown = series();
  return shown.find((s) => s.key === page.program) ?? firstOf(shown);
}

function firstOf(shown) {
  return shown.find((s) => s.program.attention === 'mastering-rate') ?? shown[0];
}

// A fixed colour for each program that has one; for the others those that are left, and then again
// with another dash.
function programColours(jobs) {
  const labels = [...new Set(jobs.flatMap((job) => job.programs.map((p) => p.label)))];
  const fixed = page.index.colours;
  const used = new Set(labels.map((label) => fixed[label]));
  const free = page.index.palette.filter((colour) => !used.has(colour));
  let next = 0;
  return new Map(labels.map((label) => {
    if (fixed[label]) return [label, [fixed[label], 0]];
    const i = next++;
    return [label, [free[i % free.length], Math.floor(i / free.length)]];
  }));
}

const curriculum = () => groupJobs()[0].curriculum;
const unit = () => groupJobs()[0].unit;
const score = () => groupJobs()[0].score;

// The last point up to a time.
function pointAt(frames, time) {
  let low = 0, high = frames.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (frames[middle] <= time) low = middle + 1; else high = middle;
  }
  return Math.max(low - 1, 0);
}

// One number for each task at a time, the mean over the runs of a series.
function meanAt(s, metric, point) {
  return curriculum().tasks.map((_, task) => mean(s.runs.map((run) => s.curves[metric][run][task][point])));
}

// The factors of each task's attention at a point: the mean over the runs of a series.
function factorsAt(s, order, point) {
  const at = (metric, run) => s.curves[metric][run].map((points) => points[point]);
  return meanFactors(s.runs.map((run) => {
    const beta = s.curves.progress ? at('progress', run) : null;
    return factors(s.program, order, at('mastery', run), beta?.includes(null) ? null : beta);
  }));
}

// The scores of a task, or their mean over all tasks, of each run: by what is measured.
function scores(s, task) {
  const given = page.what === 'training' ? s.curves.returns : s.curves.evaluations[page.what]?.returns;
  if (!given) return { frames: [], values: [] };
  const frames = page.what === 'training' ? s.curves.frames : s.curves.evaluations[page.what].frames;
  const steady = page.what === 'training' && page.smooth ? smoothed : (points) => points;
  const values = s.runs.map((run) => {
    if (task !== null) return steady(given[run][task]);
    // a task that was not played lately counts with what it was last
    const each = given[run].map((points) => steady(lastKnown(points)));
    return frames.map((_, i) => {
      const now = each.map((points) => points[i]);
      return now.includes(null) ? null : mean(now);
    });
  });
  return { frames, values };
}

// Where no episode ended since the last point, as it was last; null before the first.
function lastKnown(points) {
  let last = null;
  return points.map((x) => (last = x ?? last));
}

// The mean over the last few points; where nothing is known now there is a gap.
function smoothed(points) {
  const known = lastKnown(points);
  return known.map((x, i) => {
    if (x === null || points[i] === null) return null;
    return mean(known.slice(Math.max(i - SMOOTH + 1, 0), i + 1).filter((y) => y !== null));
  });
}

function mean(values) {
  let sum = 0;
  for (const x of values) sum += x;
  return sum / values.length;
}

// By point: the share of training on tasks that were mastered, learnable, or not yet learnable when
// it was given; the mean over runs.
function kindsOf(s, order) {
  const points = s.curves.frames.length;
  const found = KINDS.map(() => new Array(points).fill(0));
  for (const run of s.runs) {
    const { share, mastery } = { share: s.curves.share[run], mastery: s.curves.mastery[run] };
    for (let i = 0; i < points; i++) {
      const before = mastery.map((of) => (i ? of[i - 1] : 0));
      const anc = learnability(order, before);
      before.forEach((m, task) => {
        const kind = m >= page.threshold ? 0 : anc[task] >= LEARNABLE ? 1 : 2;
        found[kind][i] += share[task][i] / s.runs.length;
      });
    }
  }
  return found;
}

// How long each point is, as a share of all.
function weights(frames) {
  const all = frames[frames.length - 1];
  return frames.map((x, i) => (x - (i ? frames[i - 1] : 0)) / all);
}
