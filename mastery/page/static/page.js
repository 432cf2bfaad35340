// The page: from the data to the parts, the time they share, and what is new while runs train.

import { actions } from './actions.js';
import { isChoice, showAddress, writeAddress } from './address.js';
import { drawAllParts, lazily, moveCursors, redrawParts } from './charts.js';
import { drawChoose } from './choose.js';
import { drawClips } from './clips.js';
import { theme } from './colours.js';
import { drawComparison } from './comparison.js';
import { options, sample, tabs } from './controls.js';
import { drawCurves } from './curves.js';
import { $ } from './elements.js';
import { drawEmptyGraph, drawGraphs } from './graph.js';
import {
  beside, chooseGroup, chosenJobs, currentPoint, firstGroup, focus, groupJobs, jobGroups, page,
  pointAt, series, timesOf, unit,
} from './model.js';
import { nearest } from './plot.js';
import { drawAges, drawDetails, drawHead, drawProblems, drawRuns } from './runs.js';
import { drawSettings, hasSettings } from './settings.js';
import { chooseSource } from './source.js';
import { duration, short } from './text.js';
import { drawWhere } from './where.js';
import { drawWhy } from './why.js';

const EVERY = 1000;  // milliseconds between two looks for something new
const SHARE = 12;  // a page that draws for so long waits that many times as long
const LONG = 14000;  // milliseconds in which the whole training is played back

// what does something by itself when a key is pressed on it
const OWN_KEYS = 'a, button, input, select, summary, [role="button"], [role="menuitem"]';

const transport = { playing: 0, drawn: 0 };

async function begin() {
  Object.assign(actions, {
    draw, drawCharts, readAndDraw, changeGroup, focusTask, goToFrames, goToTime,
  });
  page.source = chooseSource();
  page.index = await page.source.index();
  listen();
  if (page.index.jobs.length) await showAddress(location.hash, readCurves);
  setTheme();
  await readAndDraw();
  openDetails(location.hash);
  document.querySelector('main').setAttribute('aria-busy', 'false');
  performance.mark('interactive');
  if (page.index.live) follow();
}

// The curves of the chosen jobs, as far as they are not here yet.
async function readCurves() {
  page.trouble = '';
  await Promise.all(chosenJobs().map(async (job) => {
    let had = page.curves.get(job.key);
    if (had && had.version === job.version) return;
    if (had && had.created !== job.created) had = null;  // another job, in a directory of that name
    try {
      const found = await page.source.curves(job, had);
      page.curves.set(job.key, { ...found, version: job.version, created: job.created });
    } catch (error) {
      page.trouble = `${job.name} cannot be read: ${error.message}`;
    }
  }));
}

async function readAndDraw() {
  await readCurves();
  draw();
}

function draw() {
  const shown = series(), any = shown.length > 0, jobs = groupJobs();
  for (const part of document.querySelectorAll('main > section, main > .pair')) {
    const always = ['runs', 'choose'].includes(part.id);
    part.hidden = !any && !always && !(part.id === 'curriculum' && jobs.length && !hasCurves());
  }
  $('transport').hidden = !any;
  drawProblems();
  drawRuns();
  drawDetails();
  if (!jobs.length) return drawNoJobs();
  drawHead();
  drawChoose();
  if (any) drawShown(shown);
  else if (!hasCurves()) drawBeforeFirst();
  writeAddress();
}

const hasCurves = () => chosenJobs().some((job) => page.curves.get(job.key)?.frames.length);

function drawNoJobs() {
  drawHead();
  $('choose').hidden = true;
}

function drawBeforeFirst() {
  $('headline').append(' · the curves begin when the first chunk of training is done');
  $('program-tabs').replaceChildren();
  $('beside-choice').parentElement.hidden = true;
  drawEmptyGraph();
}

function drawShown(shown) {
  page.program = focus().key;
  const items = shown.map((s) => ({ key: s.key, text: s.name, mark: sample(s) }));
  tabs($('program-tabs'), items, page.program, (key) => {
    page.program = key;
    if (page.beside === key) page.beside = '';
    draw();
  });
  drawBeside(shown);
  drawTime();
  drawCurves();
  drawWhere();
  lazily($('comparison'), drawComparison);
  $('settings').hidden = !hasSettings();
  lazily($('settings'), drawSettings);
}

// The choice of a second program, whose graph is drawn beside the first.
function drawBeside(shown) {
  const others = shown.filter((s) => s.key !== page.program);
  $('beside-choice').parentElement.hidden = !others.length;
  const choices = [['', 'none'], ...others.map((s) => [s.key, s.name])];
  options($('beside-choice'), choices, beside()?.key ?? '');
}

function drawCharts() {
  drawCurves();
  drawWhere();
  writeAddress();
}

// What depends on the time alone.
function drawTime() {
  const { frames } = focus().curves, point = currentPoint(), slider = $('time');
  slider.max = frames.length - 1;
  slider.value = point;
  slider.setAttribute('aria-valuetext', `${short(frames[point])} ${unit()}`);
  $('now').textContent = nowText(frames[point]);
  drawGraphs();
  drawWhy();
  drawClips();
  moveCursors();
}

// The time, of how long training will be, and how long that will take.
function nowText(time) {
  const { job, curves } = focus(), whole = job.total ?? curves.frames.at(-1);
  const left = job.state === 'training' && job.speed && job.total
    ? ` · ${duration((job.total - job.frames) * job.runs.length / job.speed)} left` : '';
  return `${short(time)} of ${short(whole)} ${unit()}${left}`;
}

function goTo(point) {
  const { frames } = focus().curves;
  page.frames = point >= frames.length - 1 ? Infinity : frames[point];
  drawTime();
  writeAddress();
}

function goToFrames(frames) {
  stop();
  goTo(pointAt(focus().curves.frames, frames));
}

function goToTime(x) {
  stop();
  goTo(nearest(timesOf(focus()), x));
}

function focusTask(task) {
  page.task = task;
  drawTime();
  drawCharts();
}

async function changeGroup(group) {
  stop();
  chooseGroup(group);
  await readAndDraw();
}

function play() {
  if (transport.playing) return stop();
  const last = focus().curves.frames.length - 1;
  let from = currentPoint();
  if (from >= last) from = 0;
  const began = performance.now();
  const step = (now) => {
    const point = from + Math.floor((now - began) / LONG * last);
    if (point !== transport.drawn) goTo(Math.min(point, last));
    transport.drawn = point;
    transport.playing = point < last ? requestAnimationFrame(step) : stop();
  };
  goTo(from);
  transport.playing = requestAnimationFrame(step);
  $('play').textContent = '❚❚';
  $('play').setAttribute('aria-label', 'Stop');
}

function stop() {
  cancelAnimationFrame(transport.playing);
  transport.playing = 0;
  $('play').textContent = '▶';
  $('play').setAttribute('aria-label', 'Play the training back');
  return 0;
}

// Look for something new as long as the page can be seen.
async function follow() {
  let busy = 0;
  try {
    const found = document.hidden ? null : await page.source.index();
    $('live').classList.remove('lost');
    if (found) {
      page.index = found;
      if (!jobGroups().has(page.group) && found.jobs.length) chooseGroup(firstGroup());
      forgetGone();
      await readCurves();
      const began = performance.now();
      draw();
      busy = performance.now() - began;
    } else drawAges();
  } catch {
    $('live').classList.add('lost');  // mastery watch has ended, or the machine is away
  }
  setTimeout(follow, Math.max(EVERY, SHARE * busy));
}

// A job whose directory was deleted is not shown any more.
function forgetGone() {
  const keys = new Set(page.index.jobs.map((job) => job.key));
  for (const key of [...page.curves.keys()]) if (!keys.has(key)) page.curves.delete(key);
  for (const key of [...page.jobs]) if (!keys.has(key)) page.jobs.delete(key);
  if (!page.jobs.size && jobGroups().has(page.group)) chooseGroup(page.group);
}

function listen() {
  listenToControls();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => setTheme());
  addEventListener('resize', () => { if (series().length) drawTime(); });
  addEventListener('beforeprint', () => printing(true));
  addEventListener('afterprint', () => printing(false));
  addEventListener('hashchange', changeAddress);
  document.addEventListener('keydown', pressed);
  // links within the page move it, and leave what is shown in the address
  document.addEventListener('click', (event) => {
    const hash = event.target.closest('a[href^="#"]')?.hash;
    if (!hash) return;
    event.preventDefault();
    openDetails(hash);
    const part = $(hash.slice(1));
    part?.scrollIntoView();
    part?.querySelector(`${OWN_KEYS}, [tabindex="0"]`)?.focus({ preventScroll: true });
  });
}

async function changeAddress() {
  if (!isChoice(location.hash)) return openDetails(location.hash);
  if (!page.index.jobs.length) return;
  await showAddress(location.hash, readCurves);
  setTheme();
  draw();
}

// Space plays, arrows move in time, unless they mean something where the focus is.
function pressed(event) {
  if (event.key === 'Escape' && page.task !== null) return focusTask(null);
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest(OWN_KEYS)) return;
  if (!series().length) return;
  const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  if (event.key === ' ') play();
  else if (event.key in steps) {
    stop();
    const last = focus().curves.frames.length - 1;
    goTo(Math.min(Math.max(currentPoint() + steps[event.key], 0), last));
  } else return;
  event.preventDefault();
}

function listenToControls() {
  const when = (id, event, f) => $(id).addEventListener(event, ({ target }) => f(target));
  when('time', 'input', ({ value }) => { stop(); goTo(Number(value)); });
  when('play', 'click', play);
  when('log', 'change', ({ checked }) => { page.log = checked; drawCharts(); });
  when('each', 'change', ({ checked }) => { page.each = checked; drawCharts(); });
  when('smooth', 'input', ({ value }) => { page.smooth = Number(value); drawCharts(); });
  when('axis', 'change', ({ value }) => { page.axis = value; page.zoom = null; drawCharts(); });
  when('unzoom', 'click', () => { page.zoom = null; drawCharts(); });
  when('beside-choice', 'change', ({ value }) => { page.beside = value; draw(); });
  when('unfocus', 'click', () => focusTask(null));
  const compare = (change) => (target) => {
    change(target.value);
    drawWhere();
    drawComparison();
    drawSettings();
    writeAddress();
  };
  when('score', 'change', compare((value) => { page.score = value; }));
  when('against', 'change', compare((value) => { page.against = value; }));
  when('threshold', 'change', compare((value) => { page.threshold = Number(value); }));
  when('theme', 'click', () => setTheme(theme() === 'dark' ? 'light' : 'dark'));
}

const screen = { theme: '' };  // the theme that was chosen, while the page is printed

// On paper everything is drawn, in light colours, and as wide as the style sheet has it there.
function printing(on) {
  const { classList, dataset } = document.documentElement;
  classList.toggle('printing', on);
  if (on) [screen.theme, dataset.theme] = [dataset.theme ?? '', 'light'];
  else if (screen.theme) dataset.theme = screen.theme;
  else delete dataset.theme;
  if (!page.group || !series().length) return;
  drawChoose();
  drawShown(series());
  drawAllParts();
}

function openDetails(hash) {
  const part = hash.startsWith('#job-') && $(hash.slice(1));
  if (part) part.open = true;
}

// Light or dark; if nothing is chosen, as it is.
function setTheme(chosen) {
  if (chosen) document.documentElement.dataset.theme = chosen;
  $('theme').textContent = theme() === 'dark' ? '☀' : '☾';
  if (!page.group || !series().length) return;
  draw();
  redrawParts();
}

begin();
