// What is shown, in the page's address: `#program=mr&task=2Dlh&t=885k`. Only what differs from how
// the page begins is in it, so that a link shows someone else what you see.

import {
  allSeries, chooseGroup, chosenJobs, firstGroup, firstOf, groupJobs, jobGroups, page, pointAt,
  series, SMOOTH, THRESHOLDS,
} from './model.js';
import { short } from './text.js';

const AXES = ['frames', 'steps', 'seconds'];
const nameList = (names) => [...names].map(encodeURIComponent).join();

// The address of what is shown.
export function addressNow() {
  const found = [], say = (key, value) => { if (value) found.push(`${key}=${value}`); };
  const one = (text) => encodeURIComponent(text).replaceAll('%3A', ':');
  if (jobGroups().has(page.group)) {
    if (page.group !== firstGroup()) say('curriculum', one(groupNames().get(page.group)));
    sayChoices(say, one);
  }
  say('x', page.axis !== 'frames' && page.axis);
  say('zoom', page.zoom && page.zoom.map((x) => Number(x.toPrecision(6))).join('~'));
  say('what', page.what !== 'training' && page.what);
  say('log', page.log && 1);
  say('smooth', page.smooth !== SMOOTH && page.smooth);
  say('each', page.each && 1);
  say('mastered', page.threshold !== 0.9 && page.threshold);
  say('score', page.score !== '' && page.score !== 'area' && page.score);
  say('sort', page.sort.column && one(`${page.sort.down ? '' : '-'}${page.sort.column}`));
  say('theme', document.documentElement.dataset.theme);
  return found.length ? `#${found.join('&')}` : '';
}

function sayChoices(say, one) {
  const all = allSeries(), shown = series(), jobs = groupJobs();
  const name = (key) => all.find((s) => s.key === key)?.name;
  const usual = defaultJobs();
  if (chosenJobs().length !== usual.size || chosenJobs().some((job) => !usual.has(job.key))) {
    say('jobs', nameList(chosenJobs().map((job) => job.name)));
  }
  if (page.hidden.size && shown.length) say('programs', nameList(shown.map((s) => s.name)));
  const seeds = new Set(jobs.flatMap((job) => job.runs.map(([, seed]) => seed)));
  if (page.seeds.size) say('seeds', nameList([...seeds].filter((seed) => !page.seeds.has(seed))));
  const first = firstOf(shown);
  say('program', page.program && page.program !== first?.key && one(name(page.program) ?? ''));
  say('beside', page.beside && one(name(page.beside) ?? ''));
  say('task', page.task !== null && one(jobs[0].curriculum.tasks[page.task]));
  if (page.frames !== Infinity) say('t', timeText(shown));
  say('against', page.against && page.against !== first?.key && one(name(page.against) ?? ''));
}

// By group, the name of its curriculum; with a number after it where several have the same.
function groupNames() {
  const found = new Map(), times = new Map();
  for (const [group, [{ curriculum: { name } }]] of jobGroups()) {
    times.set(name, (times.get(name) ?? 0) + 1);
    found.set(group, times.get(name) > 1 ? `${name}~${times.get(name)}` : name);
  }
  return found;
}

// The time as 885k, if that is the same point.
function timeText(shown) {
  const { frames } = (shown.find((s) => s.key === page.program) ?? firstOf(shown)).curves;
  const brief = short(page.frames);
  return pointAt(frames, numberOf(brief)) === pointAt(frames, page.frames) ? brief : page.frames;
}

function numberOf(text) {
  const found = /^(\d+(?:\.\d+)?)([kMG]?)$/.exec(text);
  return found ? Number(found[1]) * { '': 1, k: 1e3, M: 1e6, G: 1e9 }[found[2]] : NaN;
}

function defaultJobs() {
  const { group, task, frames, zoom, program, beside, jobs, hidden, seeds } = page;
  chooseGroup(group);
  const usual = page.jobs;
  Object.assign(page, { group, task, frames, zoom, program, beside, jobs, hidden, seeds });
  return usual;
}

// What an address says, by key; a list where there are commas.
function readHash(hash) {
  const found = new Map();
  for (const part of hash.replace(/^#/, '').split('&')) {
    const at = part.indexOf('=');
    if (at > 0) found.set(part.slice(0, at), part.slice(at + 1).split(',').map(decoded));
  }
  return found;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;  // a % that is not the beginning of a code
  }
}

// Whether an address is about what is shown, and not about a place on the page.
export const isChoice = (hash) => readHash(hash).size > 0;

// Show what an address says, as far as it is there. `read` reads the curves of the chosen jobs,
// after which programs have names.
export async function showAddress(hash, read) {
  const given = readHash(hash), first = (key) => given.get(key)?.[0];
  const number = (key, usual) => {
    const found = Number(first(key) ?? NaN);
    return Number.isFinite(found) ? found : usual;
  };
  const group = [...groupNames()].find(([, name]) => name === first('curriculum'))?.[0];
  chooseGroup(group ?? firstGroup());
  const jobs = groupJobs().filter((job) => given.get('jobs')?.includes(job.name));
  if (jobs.length) page.jobs = new Set(jobs.map((job) => job.key));
  const axis = first('x'), [from, to] = (first('zoom') ?? '').split('~').map(Number);
  const sort = first('sort') ?? '';
  Object.assign(page, {
    axis: AXES.includes(axis) ? axis : 'frames',
    zoom: to > from && from >= 0 && to < Infinity ? [from, to] : null,
    what: first('what') ?? 'training', log: first('log') === '1', each: first('each') === '1',
    smooth: Math.min(Math.max(Math.round(number('smooth', SMOOTH)), 1), 50),
    threshold: THRESHOLDS.find((x) => x === number('mastered')) ?? 0.9, score: first('score') ?? '',
    sort: { column: sort.replace(/^-/, ''), down: !sort.startsWith('-') },
  });
  const chosen = first('theme');
  if (['light', 'dark'].includes(chosen)) document.documentElement.dataset.theme = chosen;
  await read();
  showChoices(given, first);
}

function showChoices(given, first) {
  const all = allSeries(), key = (name) => all.find((s) => s.name === name)?.key ?? '';
  const shown = all.filter((s) => given.get('programs')?.includes(s.name));
  if (shown.length) page.hidden = new Set(all.filter((s) => !shown.includes(s)).map((s) => s.key));
  const seeds = chosenJobs().flatMap((job) => job.runs.map(([, seed]) => seed));
  if (given.has('seeds')) {
    const left = seeds.filter((seed) => !given.get('seeds').includes(String(seed)));
    if (left.length < seeds.length) page.seeds = new Set(left);
  }
  const task = groupJobs()[0].curriculum.tasks.indexOf(first('task'));
  const time = numberOf(first('t') ?? '');
  Object.assign(page, {
    program: key(first('program')), beside: key(first('beside')), against: key(first('against')),
    task: task < 0 ? null : task, frames: Number.isNaN(time) ? Infinity : time,
  });
}

// Put what is shown into the address, without a step back in the browser's history.
export function writeAddress() {
  if (location.protocol === 'about:') return;  // in a notebook the page has none of its own
  const now = addressNow();
  if (now === location.hash || (now === '' && !isChoice(location.hash))) return;
  history.replaceState(null, '', now || location.pathname + location.search);
}
