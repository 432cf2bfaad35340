// What there is to choose from, how the jobs stand, and what could not be read.

import { actions } from './actions.js';
import { rebuild, sample } from './controls.js';
import { $, make } from './elements.js';
import {
  allSeries, chosenJobs, curriculum, groupJobs, jobGroups, page, series, unit,
} from './model.js';
import { count, duration, short } from './text.js';

export function drawProblems() {
  const problems = page.index.problems.map(({ path, text }) => {
    const brief = text.replaceAll(`${path}/run.db`, 'its run.db').replaceAll(path, 'it');
    return make('p', { class: 'problem' }, make('code', {}, path), ' ', brief);
  });
  if (page.trouble) problems.push(make('p', { class: 'problem' }, page.trouble));
  const notes = [...new Set(chosenJobs().flatMap((job) => job.notes))];
  $('problems').replaceChildren(
    ...problems, ...notes.map((note) => make('p', { class: 'note' }, note)));
}

export function drawHead() {
  const jobs = groupJobs(), { name, count: tasks } = curriculum();
  const programs = new Set(jobs.flatMap((job) => job.programs.map(({ label }) => label)));
  const runs = jobs.reduce((sum, job) => sum + job.runs.length, 0);
  $('title').textContent = name;
  document.title = `Training ${name}`;
  $('headline').textContent = [
    count(tasks, 'task'), count(programs.size, 'program'), count(runs, 'run'),
    jobs.length > 1 ? count(jobs.length, 'job') : '', howFar(jobs),
  ].filter(Boolean).join(' · ');
  $('live').hidden = !page.index.live;
  const place = page.index.live ? 'the run directories' : 'this file';
  $('footer').textContent = `mastery ${page.index.mastery}. Everything on this page is in `
    + `${place}; nothing is loaded from elsewhere.`;
}

function howFar(jobs) {
  const training = jobs.filter((job) => job.state === 'training').length;
  if (training) return training === jobs.length ? 'training now' : `${training} training now`;
  if (jobs.length > 1) return '';
  const [{ ended, frames, total }] = jobs;
  if (ended) return `finished: ${ended}`;
  return `stopped after ${short(frames)} of ${short(total)} ${unit()} a run`;
}

export function drawChoose() {
  const jobs = groupJobs(), all = allSeries();
  const found = [...jobGroups()].map(([key, own]) => (
    [key, `${own[0].curriculum.name} (${count(own.length, 'job')})`]));
  const seeds = [...new Set(chosenJobs().flatMap((job) => job.runs.map(([, seed]) => seed)))];
  seeds.sort((a, b) => a - b);
  const key = [
    found, page.group, jobs.map((job) => [job.key, job.name]), [...page.jobs],
    all.map((s) => s.key), [...page.hidden], seeds, [...page.seeds],
  ];
  rebuild($('choose'), key, () => [
    found.length > 1 ? groupSelect(found) : '',
    jobs.length > 1 ? jobChips(jobs) : '',
    seriesChips(all),
    seeds.length > 1 ? seedChips(seeds) : '',
  ].filter(Boolean));
}

function groupSelect(found) {
  const change = (event) => actions.changeGroup(event.target.value);
  return make('label', { class: 'field' }, make('span', {}, 'curriculum'),
    make('select', { id: 'group', 'data-key': 'group', on: { change } },
      ...found.map(([value, text]) => (
        make('option', { value, selected: value === page.group }, text)))));
}

function jobChips(jobs) {
  const items = jobs.map((job) => (
    { key: job.key, text: job.name, title: job.path, on: page.jobs.has(job.key) }));
  return chips('directories', items, (key, on) => {
    if (on) page.jobs.add(key); else if (page.jobs.size > 1) page.jobs.delete(key);
    actions.readAndDraw();
  });
}

function seriesChips(all) {
  const items = all.map((s) => (
    { key: s.key, text: s.name, mark: sample(s), on: !page.hidden.has(s.key) }));
  return chips('programs', items, (key, on) => leaveOut(page.hidden, key, !on));
}

function seedChips(seeds) {
  const items = seeds.map((seed) => (
    { key: String(seed), text: String(seed), on: !page.seeds.has(seed) }));
  return chips('seeds', items, (key, on) => leaveOut(page.seeds, Number(key), !on));
}

// Leave a series or a seed out, or not; the last one stays.
function leaveOut(left, one, out) {
  if (out) left.add(one); else left.delete(one);
  if (!series().length) left.delete(one);
  actions.draw();
}

function chips(name, items, choose) {
  return make('fieldset', { class: 'chips' }, make('legend', {}, name),
    ...items.map(({ key, text, title, mark, on }) => {
      const change = (event) => choose(key, event.target.checked);
      const box = { type: 'checkbox', checked: on, 'data-key': key, on: { change } };
      return make('label', { class: 'chip', title }, make('input', box), mark, text);
    }));
}

export function drawRuns() {
  const texts = [
    'job', 'state', 'done', 'speed', 'time left', 'last checkpoint', 'programs × seeds',
  ];
  rebuild($('runs-table'), page.index.jobs, () => {
    const heads = texts.map((text, i) => (
      make('th', { scope: 'col', class: i < 2 ? 'left' : null }, text)));
    return [make('table', {},
      make('thead', {}, make('tr', {}, ...heads)),
      make('tbody', {}, ...page.index.jobs.map(runsRow)))];
  });
  drawAges();
}

function runsRow(job) {
  const link = make('a', { href: `#job-${job.key}`, 'data-key': job.key }, job.name);
  const state = make('span', { class: `state ${job.state}` }, job.state);
  const share = job.total ? job.frames / job.total : 0;
  const meter = make('meter', { min: 0, max: 1, value: share, 'aria-label': 'done' });
  const { checkpoint } = job, step = checkpoint?.step.toLocaleString('en');
  const seeds = new Set(job.runs.map(([, seed]) => seed)).size;
  return make('tr', { 'data-job': job.name },
    make('th', { scope: 'row', class: 'left' }, link),
    make('td', { class: 'left' }, state),
    make('td', {}, meter, ` ${short(job.frames)} of ${short(job.total)} ${job.unit}`),
    make('td', {}, job.speed ? `${short(job.speed)} ${job.unit}/s` : '–'),
    make('td', {}, duration(secondsLeft(job))),
    make('td', { 'data-time': checkpoint?.time }, checkpoint ? `update ${step}` : '–'),
    make('td', {}, `${job.programs.length} × ${seeds}`));
}

function secondsLeft(job) {
  if (job.state !== 'training' || !job.speed) return null;
  return (job.total - job.frames) * job.runs.length / job.speed;
}

// While runs train, how long ago the last checkpoint was.
export function drawAges() {
  if (!page.index.live) return;
  for (const cell of $('runs-table').querySelectorAll('[data-time]')) {
    cell.textContent = `${duration(Math.max(Date.now() / 1000 - cell.dataset.time, 0))} ago`;
  }
}

export function drawDetails() {
  const open = new Set([...$('runs-details').querySelectorAll('details[open]')].map((x) => x.id));
  const key = page.index.jobs.map((job) => [job.key, job.state, job.sessions.length]);
  rebuild($('runs-details'), key, () => page.index.jobs.map((job) => {
    const id = `job-${job.key}`;
    const when = [job.created, job.ended, duration(job.seconds)].filter(Boolean).join(' · ');
    return make('details', { id, open: open.has(id) },
      make('summary', {}, job.name, ' ', make('span', { class: 'soft' }, when)),
      jobFacts(job));
  }));
}

function jobFacts(job) {
  const fact = (name, ...inside) => [make('dt', {}, name), make('dd', {}, ...inside)];
  const withNote = (code, note) => [
    make('code', {}, code), ' ', make('span', { class: 'soft' }, note),
  ];
  const seeds = (i) => job.runs.filter(([own]) => own === i).map(([, seed]) => seed).join(', ');
  const settings = Object.entries(job.settings).map(([name, value]) => `${name} ${value}`);
  const goesOn = job.state === 'stopped' && page.index.live;
  return make('dl', {},
    ...fact('directory', make('code', {}, job.path)),
    ...job.sessions.flatMap(({ command, started, on }) => (
      fact('trained by', ...withNote(command, [started, on].filter(Boolean).join(', '))))),
    ...fact('runs', ...job.programs.map((program, i) => (
      make('div', {}, ...withNote(program.label, `seeds ${seeds(i)}: ${program.full}`))))),
    make('dt', {}, 'learner'), make('dd', { class: 'soft' }, settings.join(', ')),
    ...(goesOn ? fact('go on', make('code', {}, `mastery train --resume ${job.path}`)) : []));
}
