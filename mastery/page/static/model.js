// What is shown: of all jobs those with one curriculum, of those some programs and seeds, one of
// them and a task in focus, and a time. Everything on the page is drawn from `page`.

import { factors, learnability, meanFactors } from './equations.js';

export const KINDS = ['mastered', 'learnable', 'not yet learnable'];
export const LEARNABLE = 0.5;  // the mastery of all ancestors from which a task is learnable
export const LEARNED = 0.6;  // the mastery from which a task is learned
const FORGOTTEN = 0.3;  // and below which one that was learned is forgotten
export const SMOOTH = 5;  // points over which returns at the end are averaged, and curves at first
export const THRESHOLDS = [0.5, 0.7, 0.8, 0.9, 0.95];  // of mastery, to choose from
const MOST_SERIES = 8;  // that are shown at first
const DASHES = ['solid', 'dash', 'dot', 'dashdot'];

export const page = {
  index: null, source: null,
  trouble: '',  // why the curves of a job could not be read
  curves: new Map(),  // by the job's key
  group: '',  // the curriculum in focus
  jobs: new Set(), hidden: new Set(), seeds: new Set(),  // chosen jobs; series and seeds left out
  program: '',  // the series in focus
  beside: '',  // the series whose graph is beside it, or '' for none
  task: null,  // the task in focus, or null for all
  frames: Infinity,  // the time; infinite: the last point, as they come
  axis: 'frames',  // what charts have along the bottom: frames (of any unit), steps or seconds
  zoom: null,  // the range of that axis that charts show; null: all
  what: 'training', log: false, smooth: SMOOTH, each: false,  // each: a line for each seed
  threshold: 0.9, score: '', against: '', sort: { column: '', down: true },
};

const groupOf = (job) => `${job.curriculum.fingerprint} ${job.unit}`;

// The group to begin with: that of the newest job that is training, else of the newest if the page
// is live, else the first.
export function firstGroup() {
  const newest = (jobs) => jobs.reduce((a, b) => (b.created > a.created ? b : a));
  const { jobs, live } = page.index, training = jobs.filter((job) => job.state === 'training');
  return groupOf(training.length ? newest(training) : live ? newest(jobs) : jobs[0]);
}

// The jobs of each curriculum.
export function jobGroups() {
  const found = new Map();
  for (const job of page.index.jobs) {
    if (!found.has(groupOf(job))) found.set(groupOf(job), []);
    found.get(groupOf(job)).push(job);
  }
  return found;
}

// The jobs of the curriculum in focus.
export function groupJobs() {
  return jobGroups().get(page.group) ?? [];
}

// Those of them that are chosen.
export function chosenJobs() {
  return groupJobs().filter((job) => page.jobs.has(job.key));
}

export function chooseGroup(group) {
  Object.assign(page, {
    group, task: null, frames: Infinity, zoom: null, program: '', beside: '',
    jobs: new Set(), hidden: new Set(), seeds: new Set(),
  });
  let programs = 0;
  for (const job of trainingFirst(groupJobs())) {
    programs += job.programs.length;
    if (page.jobs.size === 0 || programs <= MOST_SERIES) page.jobs.add(job.key);
  }
}

// Jobs that are training, the newest of them first; then the others as they are.
function trainingFirst(jobs) {
  const training = jobs.filter((job) => job.state === 'training');
  training.sort((a, b) => b.created.localeCompare(a.created));
  return [...training, ...jobs.filter((job) => job.state !== 'training')];
}

// Every program of every chosen job: its runs, and how it is drawn.
export function allSeries() {
  // programs of several jobs have the job's name after their own
  const labels = chosenJobs().flatMap((job) => job.programs.map((program) => program.label));
  const several = new Set(labels.filter((label, i) => labels.indexOf(label) !== i));
  const jobs = groupJobs(), styles = seriesStyles(jobs);
  return jobs.flatMap((job) => {
    if (!page.jobs.has(job.key) || !page.curves.has(job.key)) return [];
    return job.programs.map((program, i) => {
      const { label } = program, key = `${job.key} ${label}`, [colour, dash] = styles.get(key);
      return {
        key, job, program, curves: page.curves.get(job.key),
        name: several.has(label) ? `${label} · ${job.name}` : label,
        colour, dash, runs: chosenRuns(job, i),
      };
    });
  });
}

// The runs of a job's program, without those of seeds that are left out.
function chosenRuns(job, program) {
  return job.runs.flatMap(([own, seed], run) => (
    own === program && !page.seeds.has(seed) ? [run] : []));
}

// Those that are shown.
export function series() {
  return allSeries().filter((s) => (
    !page.hidden.has(s.key) && s.runs.length && s.curves.frames.length));
}

// The series in focus; at first one that knows equation 1, if there is one.
export function focus() {
  const shown = series();
  return shown.find((s) => s.key === page.program) ?? firstOf(shown);
}

export function firstOf(shown) {
  return shown.find((s) => s.program.attention === 'mastering-rate') ?? shown[0];
}

// The colour and dash of each series: its program's own, which is the same in all pictures. If
// another job has the same program, the next dash, and then the next colour, that is free.
function seriesStyles(jobs) {
  const { styles, palette } = page.index, found = new Map(), used = new Set();
  const labels = jobs.flatMap((job) => (
    job.programs.map(({ label }) => [`${job.key} ${label}`, label])));
  for (const [key, label] of labels) {
    const own = styles[label];
    const [colour, dash] = own, from = DASHES.indexOf(dash);
    const dashes = DASHES.map((_, i) => DASHES[(from + i) % DASHES.length]);
    const choices = [colour, ...palette].flatMap((c) => dashes.map((d) => [c, d]));
    const style = choices.find((choice) => !used.has(choice.join())) ?? own;
    used.add(style.join());
    found.set(key, style);
  }
  return found;
}

export const curriculum = () => groupJobs()[0].curriculum;
export const unit = () => groupJobs()[0].unit;
export const scoreName = () => groupJobs()[0].score;

// The series whose graph is beside that of the series in focus, if there is one.
export function beside() {
  const own = focus();
  return series().find((s) => s.key === page.beside && s.key !== own.key) ?? null;
}

// The number of the point of a series at the page's time.
export function pointOf(s) {
  const { frames } = s.curves;
  return page.frames === Infinity ? frames.length - 1 : pointAt(frames, page.frames);
}

export const currentPoint = () => pointOf(focus());

// The points of a series as numbers on the charts' axis.
export const timesOf = (s) => s.curves[page.axis] ?? s.curves.frames;

// The axes that all series have.
export function axes() {
  const shown = series(), all = ['frames', 'steps', 'seconds'];
  return all.filter((axis) => shown.every((s) => s.curves[axis]?.length));
}

export function axisTitle(axis = page.axis) {
  if (axis === 'seconds') return 'time of training, all runs together';
  return axis === 'steps' ? 'time-steps' : unit();
}

// A time in frames as a number on the charts' axis: by the last point up to then, and what is left
// in proportion.
export function onAxis(s, frames) {
  if (page.axis === 'frames' || !s.curves[page.axis]) return frames;
  const all = s.curves.frames, times = timesOf(s), i = pointAt(all, frames);
  const next = Math.min(i + 1, all.length - 1), span = all[next] - all[i];
  if (span === 0 || frames <= all[i]) return times[i] * Math.min(frames / all[i], 1);
  return times[i] + (frames - all[i]) / span * (times[next] - times[i]);
}

// The last point up to a time.
export function pointAt(frames, time) {
  let low = 0, high = frames.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (frames[middle] <= time) low = middle + 1; else high = middle;
  }
  return Math.max(low - 1, 0);
}

// The mean of a metric of each task from the beginning up to a point, over time and runs.
export function meanUntil(s, metric, point) {
  const { frames } = s.curves;
  const each = frames.slice(0, point + 1).map((x, i) => x - (frames[i - 1] ?? 0));
  const ofRun = (points) => each.reduce((sum, weight, i) => sum + weight * points[i], 0);
  const known = s.curves[metric];
  return curriculum().tasks.map((_, task) => (
    mean(s.runs.map((run) => ofRun(known[run][task]))) / frames[point]));
}

// One number for each task at a time, the mean over the runs of a series.
export function meanAt(s, metric, point) {
  const known = s.curves[metric];
  return curriculum().tasks.map((_, task) => mean(s.runs.map((run) => known[run][task][point])));
}

// The factors of each task's attention at a point: the mean over the runs of a series.
export function factorsAt(s, order, point) {
  const at = (metric, run) => s.curves[metric][run].map((points) => points[point]);
  return meanFactors(s.runs.map((run) => {
    const beta = s.curves.progress ? at('progress', run) : null;
    return factors(s.program, order, at('mastery', run), beta?.includes(null) ? null : beta);
  }));
}

// The scores of a task, or their mean over all tasks, of each run: by what is measured. `smooth` is
// the number of points of which the mean is taken.
export function scoreCurves(s, task, smooth = page.smooth) {
  const training = page.what === 'training';
  const measured = training ? s.curves : s.curves.evaluations[page.what];
  if (!measured?.returns) return { times: [], values: [] };
  const { frames, returns } = measured;
  const times = training ? timesOf(s) : frames.map((x) => onAxis(s, x));
  const steady = training && smooth > 1 ? (points) => smoothed(points, smooth) : (points) => points;
  const before = training ? curriculum().minimum : returns[0].map(() => null);
  const values = s.runs.map((run) => (
    task === null ? meanOfTasks(returns[run], steady, before) : steady(returns[run][task])));
  return { times, values };
}

// A task that was not played lately counts with what it was last; before it was first played, as in
// the scores of the comparison, with its minimum.
function meanOfTasks(tasks, steady, before) {
  const each = tasks.map((points, task) => (
    steady(lastKnown(points)).map((x) => x ?? before[task])));
  return each[0].map((_, i) => {
    const now = each.map((points) => points[i]);
    return now.includes(null) ? null : mean(now);
  });
}

// Where no episode ended since the last point, as it was last; null before the first.
export function lastKnown(points) {
  let last = null;
  return points.map((x) => (last = x ?? last));
}

// The mean over the last few points; where nothing is known now there is a gap.
export function smoothed(points, over = SMOOTH) {
  const known = lastKnown(points);
  return known.map((x, i) => {
    if (x === null || points[i] === null) return null;
    return mean(known.slice(Math.max(i - over + 1, 0), i + 1).filter((y) => y !== null));
  });
}

export function mean(values) {
  let sum = 0;
  for (const x of values) sum += x;
  return sum / values.length;
}

// By point: how many runs trained. Recorded runs may end before others.
export function trainedAt(s) {
  return s.curves.frames.map((_, i) => s.runs.filter(
    (run) => s.curves.share[run].some((of) => of[i] > 0)).length);
}

// By point: the share of training on tasks that were mastered, learnable, or not yet learnable when
// it was given; the mean over the runs that trained.
export function kindsOf(s, order) {
  const points = s.curves.frames.length, runs = trainedAt(s);
  const found = KINDS.map(() => new Array(points).fill(0));
  for (const run of s.runs) {
    const share = s.curves.share[run], mastery = s.curves.mastery[run];
    for (let i = 0; i < points; i++) {
      const before = mastery.map((of) => (i ? of[i - 1] : 0));
      const anc = learnability(order, before);
      before.forEach((m, task) => {
        const kind = m >= page.threshold ? 0 : anc[task] >= LEARNABLE ? 1 : 2;
        found[kind][i] += share[task][i] / (runs[i] || 1);
      });
    }
  }
  return found;
}

// What was found about the order, up to a point:
//
// - A task is *learned* at the first point where its mastery, the mean over runs, is at least
//   LEARNED. It is forgotten when that falls below FORGOTTEN, and can then be learned again.
// - Its *place* is one more than the number of tasks that were learned before it.
// - A given edge a → b is *open* until b is learned. It *agrees* if a was learned by then (before
//   b, or at the same point), and *contradicts* if not. If a is forgotten later, that is no sign of
//   a wrong order, and changes nothing.
export function orderFound(s, point) {
  return orderAt(learnedSpans(s), curriculum().edges, point);
}

// By task: the point at which it was learned, its place, and the point at which it was forgotten,
// each null if there is none. And the state of each edge.
export function orderAt(spans, edges, point) {
  const learnedAt = (task, at) => (
    spans[task].find(([from, to]) => from <= at && at < to)?.[0] ?? null);
  const learned = spans.map((_, task) => learnedAt(task, point));
  const before = (at) => learned.filter((other) => other !== null && other < at).length;
  return {
    learned,
    places: learned.map((at) => (at === null ? null : before(at) + 1)),
    forgotten: spans.map((own, task) => (
      learned[task] === null ? own.findLast(([, to]) => to <= point)?.[1] ?? null : null)),
    edges: edges.map(([a, b]) => {
      if (learned[b] === null) return 'open';
      return learnedAt(a, learned[b]) === null ? 'contradicts' : 'agrees';
    }),
  };
}

const spansKept = new WeakMap();  // by curves: by runs, the spans

// By task: from which point, and up to which, it is learned; each time that it is.
function learnedSpans(s) {
  const { curves } = s, runs = s.runs.join();
  if (!spansKept.has(curves)) spansKept.set(curves, new Map());
  const kept = spansKept.get(curves);
  if (!kept.has(runs)) {
    const meanOf = (task) => curves.frames.map((_, i) => (
      knownMean(s.runs.map((run) => curves.mastery[run][task][i]))));
    kept.set(runs, curriculum().tasks.map((_, task) => spansOf(meanOf(task))));
  }
  return kept.get(runs);
}

// The same of one task, from its mastery at each point; one that is missing changes nothing.
export function spansOf(mastery) {
  const spans = [];
  let learned = false;
  mastery.forEach((m, point) => {
    if (m === null) return;
    if (!learned && m >= LEARNED) spans.push([point, Infinity]);
    else if (learned && m < FORGOTTEN) spans.at(-1)[1] = point;
    else return;
    learned = !learned;
  });
  return spans;
}

// The mean, or null if one is missing.
const knownMean = (values) => (
  values.some((x) => x === null || Number.isNaN(x)) ? null : mean(values));

// How long each point is, as a share of all.
export function weights(frames) {
  const all = frames[frames.length - 1];
  return frames.map((x, i) => (x - (i ? frames[i - 1] : 0)) / all);
}
