// The settings of the runs: which of them differ, and the score of each run by those.

import { lineColour } from './colours.js';
import { alike, scoreKinds, scoreTable } from './comparison.js';
import { rebuild, tipFor } from './controls.js';
import { csvButton, downloadMenu, fileName, saveCsv, savePng, saveSvg } from './downloads.js';
import { $, make } from './elements.js';
import { curriculum, mean, page, scoreName, series } from './model.js';
import { quantiles } from './statistics.js';
import { count, digits, significant } from './text.js';

const MOST_SLICES = 12;
const SLICE = { width: 300, height: 190, left: 40, right: 12, top: 10, bottom: 26 };
const LOG_FROM = 99;  // how many times the lowest value the highest is, where the axis is a log

// Loops that are recorded have none of their own.
export function hasSettings() {
  const shown = series(), settings = (s) => s.runs.map((run) => ({ settings: inSlices(s, run) }));
  return settingRows(settingColumns(shown)).length > 0
    || sliceNames(shown.flatMap(settings)).length > 0;
}

export function drawSettings() {
  const shown = series(), columns = settingColumns(shown), rows = settingRows(columns);
  const differing = rows.filter((row) => row.differs), same = rows.filter((row) => !row.differs);
  $('settings-text').textContent = settingsText(columns, differing, same);
  rebuild($('settings-save'), 'csv', () => [
    csvButton('the settings', () => `${curriculum().name}-settings`, settingsCsv)]);
  rebuild($('settings-table'), [columns.map(({ head }) => head), differing], () => (
    differing.length ? [settingsTable(columns, differing)] : []));
  drawSame(same);
  drawSlices(shown);
}

const settingsOf = (s, run) => ({ ...s.job.settings, ...s.job.changes?.[run] });

// One for each job; of a job whose runs differ in their settings, one for each way they do.
function settingColumns(shown) {
  const found = new Map();
  for (const s of shown) {
    for (const run of s.runs) {
      const changes = s.job.changes?.[run] ?? {};
      const key = `${s.job.key} ${JSON.stringify(changes)}`;
      const text = Object.entries(changes).map(([name, x]) => `${name}=${x}`).join(' ');
      if (!found.has(key)) found.set(key, { job: s.job, text, settings: settingsOf(s, run) });
    }
  }
  const jobs = new Set(shown.map((s) => s.job));
  return [...found.values()].map(({ job, text, settings }) => ({
    settings, head: [jobs.size > 1 || !text ? job.name : '', text].filter(Boolean).join(' '),
  }));
}

function settingRows(columns) {
  const names = [...new Set(columns.flatMap(({ settings }) => Object.keys(settings)))];
  return names.map((name) => {
    const values = columns.map(({ settings }) => settings[name]);
    return { name, values, differs: new Set(values.map((x) => JSON.stringify(x))).size > 1 };
  });
}

function settingsText(columns, differing, same) {
  const all = differing.length + same.length;
  if (!all) return '';
  if (columns.length < 2) return `All runs have the same ${count(all, 'setting')}.`;
  if (!differing.length) return `All ${count(all, 'setting')} are the same.`;
  return `${differing.length} of ${count(all, 'setting')} differ.`;
}

function settingText(x) {
  if (x === undefined) return '–';
  return typeof x === 'string' ? x : JSON.stringify(x);
}

// What is not as in the first column stands out.
function settingsTable(columns, rows) {
  const heads = columns.map(({ head }) => make('th', { scope: 'col' }, head));
  const cell = (x, first) => make('td', {
    class: settingText(x) === settingText(first) ? null : 'other',
  }, settingText(x));
  return make('table', { class: 'settings' },
    make('thead', {}, make('tr', {}, make('th', { scope: 'col', class: 'left' }, 'setting'),
      ...heads)),
    make('tbody', {}, ...rows.map(({ name, values }) => (
      make('tr', { class: 'differs', 'data-setting': name },
        make('th', { scope: 'row', class: 'left' }, name),
        ...values.map((x) => cell(x, values[0])))))));
}

// Folded, and each value once.
function drawSame(same) {
  const open = $('settings-same').querySelector('details')?.open ?? false;
  rebuild($('settings-same'), same, () => (same.length ? [make('details', { open },
    make('summary', {}, `${count(same.length, 'setting')} the same in all runs`),
    make('dl', { class: 'settings' }, ...same.flatMap(({ name, values }) => [
      make('dt', {}, name), make('dd', {}, settingText(values[0]))])))] : []));
}

function settingsCsv() {
  const columns = settingColumns(series()), rows = settingRows(columns);
  const ordered = [...rows.filter((row) => row.differs), ...rows.filter((row) => !row.differs)];
  return [
    ['setting', 'differs', ...columns.map(({ head }) => head)],
    ...ordered.map(({ name, values, differs }) => [name, differs, ...values]),
  ];
}

// A slice: each run as a dot, by one setting that differs and the score.
function drawSlices(shown) {
  const holder = $('settings-slices');
  if (holder.querySelector('[role=menu]:not([hidden])')) return;  // the user is about to choose
  const kinds = scoreKinds(shown), dots = runDots(shown);
  const kind = kinds.find(([key]) => key === page.score) ?? kinds[0];
  const all = sliceNames(dots), names = all.slice(0, MOST_SLICES);
  $('slices-text').textContent = names.length ? slicesText(kind[1], all.length) : '';
  rebuild(holder, [names, kind, dots.map(({ s, ...dot }) => [s.colour, dot])], () => (
    names.map((name) => sliceFigure(name, dots, kind[1]))));
  rebuild($('slices-key'), names.length ? dots.map((dot) => dot.group) : [], () => (
    names.length ? sliceKey(dots) : []));
}

// A program's own settings have its name before theirs: a learner may have one of the same name.
function inSlices(s, run) {
  const own = Object.entries(s.program.settings ?? {}).map(([name, x]) => (
    [`${s.program.name}: ${name}`, x]));
  return { ...settingsOf(s, run), ...Object.fromEntries(own) };
}

function runDots(shown) {
  return shown.flatMap((s) => {
    const scores = scoreTable(s, page.score || 'area').map(mean);
    return s.runs.map((run, i) => ({
      s, score: scores[i], seed: s.job.runs[run][1],
      group: s.program.label.split(' ')[0],  // its program, without the settings of the run
      settings: inSlices(s, run),
    }));
  });
}

const sliceDots = (name, dots) => dots.filter((dot) => Number.isFinite(dot.settings[name]));

function sliceNames(dots) {
  const names = [...new Set(dots.flatMap(({ settings }) => Object.keys(settings)))];
  return names.filter((name) => (
    new Set(sliceDots(name, dots).map((dot) => dot.settings[name])).size > 1));
}

function slicesText(kind, all) {
  const range = alike() ? '' : ', where 0 is a task’s minimum and 1 its maximum';
  const some = all > MOST_SLICES ? ` The first ${MOST_SLICES} of ${all} settings.` : '';
  return `Each dot is a run: a setting that differs, and its ${scoreName()} (${kind}, the mean `
    + `over tasks${range}). The line joins the medians.${some}`;
}

// The colour of a program is that of the first of its series.
const sliceColour = (dots, group) => (
  lineColour(dots.find((dot) => dot.group === group).s.colour));

const sliceGroups = (dots) => [...new Set(dots.map((dot) => dot.group))];

function sliceKey(dots) {
  const groups = sliceGroups(dots);
  if (groups.length < 2) return [];
  return groups.map((group) => make('span', {},
    make('i', { class: 'dot round', style: { background: sliceColour(dots, group) } }), group));
}

function sliceFigure(name, dots, kind) {
  const those = sliceDots(name, dots), picture = slicePicture(name, those, dots);
  const file = fileName(`${curriculum().name}-${name}`);
  const menu = downloadMenu(name, [
    ['PNG', () => savePng(picture, file)], ['SVG', () => saveSvg(picture, file)],
    ['CSV', () => saveCsv(`${file}.csv`, [
      [name, `${scoreName()} (${kind})`, 'program', 'seed', 'job'],
      ...those.map((dot) => (
        [dot.settings[name], dot.score, dot.s.program.label, dot.seed, dot.s.job.name])),
    ])],
  ]);
  return make('figure', { 'data-setting': name },
    make('figcaption', { class: 'head small' }, make('span', {}, name), menu), picture);
}

function slicePicture(name, those, dots) {
  const { width, height, left, right, top, bottom } = SLICE;
  const values = [...new Set(those.map((dot) => dot.settings[name]))].sort((a, b) => a - b);
  const isLog = values[0] > 0 && values.at(-1) / values[0] >= LOG_FROM;
  const x = sliceScale(isLog ? values.map(Math.log10) : values, left + 8, width - right - 8);
  const y = sliceScale(dots.map((dot) => dot.score), height - bottom - 8, top + 8);
  const across = (value) => x.at(isLog ? Math.log10(value) : value);
  const label = `${name} and score of ${count(those.length, 'run')}`;
  return make('svg:svg', {
    class: 'slice', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label,
  },
  ...y.ticks(4).flatMap((tick) => [
    make('svg:path', { class: 'rule', d: `M${left} ${y.at(tick)}H${width - right}` }),
    make('svg:text', { x: left - 6, y: y.at(tick), dy: '0.35em', 'text-anchor': 'end' },
      significant(tick)),
  ]),
  ...apart(values, across).map((value) => make('svg:text', {
    x: across(value), y: height - bottom + 18, 'text-anchor': 'middle',
  }, significant(value))),
  ...sliceGroups(those).map((group) => medianLine(name, those, dots, group, across, y.at)),
  ...those.map((dot) => sliceDot(name, dot, sliceColour(dots, dot.group), across, y.at)));
}

// Through the median of the runs with each value.
function medianLine(name, those, dots, group, across, up) {
  const own = those.filter((dot) => dot.group === group);
  const values = [...new Set(own.map((dot) => dot.settings[name]))].sort((a, b) => a - b);
  const points = values.map((value) => {
    const scores = own.filter((dot) => dot.settings[name] === value).map((dot) => dot.score);
    return `${across(value)} ${up(quantiles(scores, [0.5])[0])}`;
  });
  return make('svg:path', {
    class: 'median', d: `M${points.join('L')}`, stroke: sliceColour(dots, group),
  });
}

function sliceDot(name, dot, colour, across, up) {
  const { s, seed, score, settings } = dot;
  const found = make('svg:circle', {
    cx: across(settings[name]), cy: up(score), r: 4, fill: colour,
  });
  tipFor(found, () => [
    make('strong', {}, s.name), make('div', {}, `seed ${seed}`),
    make('div', {}, `${name} ${settingText(settings[name])} · score ${digits(score, 3)}`),
  ]);
  return found;
}

// From values to pixels, and round values in between.
function sliceScale(values, from, to) {
  const low = Math.min(...values), span = (Math.max(...values) - low) || 1;
  const at = (value) => from + (value - low) / span * (to - from);
  const ticks = (n) => {
    const rough = span / n, size = 10 ** Math.floor(Math.log10(rough));
    const step = size * [1, 2, 5, 10].find((k) => k * size >= rough);
    const first = Math.ceil(low / step - 1e-9);
    return Array.from({ length: Math.floor((low + span) / step + 1e-9) - first + 1 }, (_, i) => (
      (first + i) * step));
  };
  return { at, ticks };
}

// Values whose labels have room beside each other.
function apart(values, across) {
  let last = -Infinity;
  return values.filter((value) => {
    if (across(value) - last < 38) return false;
    last = across(value);
    return true;
  });
}
