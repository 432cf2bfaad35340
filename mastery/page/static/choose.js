// What there is to choose from: curricula, directories, programs and seeds.

import { actions } from './actions.js';
import { arrowKeys, rebuild, sample } from './controls.js';
import { $, make } from './elements.js';
import { allSeries, chosenJobs, groupJobs, jobGroups, page, series } from './model.js';
import { count } from './text.js';

const MANY = 8;  // of more there is a search

const searched = new Map();  // by the name of a row of chips: what is searched in it

export function drawChoose() {
  const jobs = groupJobs(), rows = chipRows(jobs);
  $('choose').hidden = !jobs.length;
  const found = [...jobGroups()].map(([key, own]) => (
    [key, `${own[0].curriculum.name} (${count(own.length, 'job')})`]));
  const key = [found, page.group, rows.map(({ name, items }) => (
    [name, items.map((item) => [item.key, item.text])]))];
  rebuild($('choose'), key, () => [
    ...(found.length > 1 ? [groupSelect(found)] : []), ...rows.map(chips),
    make('p', { class: 'soft missing', role: 'status' }),
  ]);
  rows.forEach(markChips);
  $('choose').querySelector('.missing').textContent = missingChoice();
}

// What must be chosen before there is anything to see.
export function missingChoice() {
  if (!groupJobs().length || series().length) return '';
  if (!chosenJobs().length) return 'Choose a directory above.';
  const all = allSeries().filter((s) => s.curves.frames.length);
  if (!all.length) return '';  // there is nothing yet
  return all.every((s) => page.hidden.has(s.key))
    ? 'Choose a program above.' : 'Choose a program and a seed above.';
}

function groupSelect(found) {
  const change = (event) => actions.changeGroup(event.target.value);
  return make('label', { class: 'field' }, make('span', {}, 'curriculum'),
    make('select', { id: 'group', 'data-key': 'group', on: { change } },
      ...found.map(([value, text]) => (
        make('option', { value, selected: value === page.group }, text)))));
}

// Of each: its name, what is in it, which of those are chosen, and how to choose others.
function chipRows(jobs) {
  const all = allSeries();
  const seeds = [...new Set(chosenJobs().flatMap((job) => job.runs.map(([, seed]) => seed)))];
  seeds.sort((a, b) => a - b);
  const without = (left, keys) => (chosen) => {
    for (const one of keys) if (chosen.has(String(one))) left.delete(one); else left.add(one);
    actions.draw();
  };
  return [
    {
      name: 'directories',
      items: jobs.map(({ key, name, path }) => ({ key, text: name, title: path })),
      chosen: new Set(page.jobs),
      choose: (chosen) => { page.jobs = chosen; actions.readAndDraw(); },
    },
    {
      name: 'programs',
      items: all.map((s) => ({ key: s.key, text: s.name, mark: () => sample(s) })),
      chosen: new Set(all.map((s) => s.key).filter((key) => !page.hidden.has(key))),
      choose: without(page.hidden, all.map((s) => s.key)),
    },
    {
      name: 'seeds',
      items: seeds.map((seed) => ({ key: String(seed), text: String(seed) })),
      chosen: new Set(seeds.filter((seed) => !page.seeds.has(seed)).map(String)),
      choose: without(page.seeds, seeds),
    },
  ].filter(({ name, items }) => items.length > (name === 'programs' ? 0 : 1));
}

const rowNow = (name) => chipRows(groupJobs()).find((row) => row.name === name);

// Choose some of a row and leave the others of it as they are.
function chooseSome(name, keys, on) {
  const { chosen, choose } = rowNow(name);
  for (const key of keys) if (on) chosen.add(key); else chosen.delete(key);
  choose(chosen);
}

const chooseOnly = (name, key) => rowNow(name).choose(new Set([key]));

function chips({ name, items }) {
  const many = items.length > MANY;
  const button = (text, on) => make('button', {
    type: 'button', class: 'plain every', 'data-key': `${text} ${name}`,
    'aria-label': `${text} ${name}`,
    on: { click: () => chooseSome(name, matching(rowNow(name)), on) },
  }, text);
  return make('fieldset', { class: 'chips', 'data-row': name }, make('legend', {}, name),
    many ? searchBox(name) : null,
    ...(many || (name === 'programs' && items.length > 1)
      ? [button('all', true), button('none', false)] : []),
    ...items.map((item) => chip(name, item, items.length > 1)));
}

function searchBox(name) {
  const input = ({ target }) => { searched.set(name, target.value); markChips(rowNow(name)); };
  const found = make('input', {
    type: 'search', placeholder: `search ${name}`, 'aria-label': `Search ${name}`,
    'data-key': `search ${name}`, on: { input },
  });
  found.value = searched.get(name) ?? '';
  return found;
}

// A box to tick, and beside it, while the pointer or the focus is on it, “only”.
function chip(name, { key, text, title, mark }, several) {
  const only = () => chooseOnly(name, key);
  const change = ({ target }) => chooseSome(name, [key], target.checked);
  const click = (event) => {
    if (!event.altKey || !several) return;
    event.preventDefault();
    only();
  };
  const keydown = (event) => {
    const row = [...event.target.closest('fieldset').querySelectorAll('.pick:not([hidden]) input')];
    arrowKeys(event, (to) => { row[to].focus(); oneStop(row, row[to]); }, row);
  };
  const box = { type: 'checkbox', 'data-key': key, on: { change, keydown } };
  return make('span', { class: 'pick', 'data-pick': key },
    make('label', { class: 'chip', title, on: { click, dblclick: several ? only : () => {} } },
      make('input', box), mark?.(), text),
    several ? make('button', {
      type: 'button', class: 'only', 'aria-label': `only ${text}`, on: { click: only },
    }, 'only') : null);
}

// Which are chosen, and which are found; one of them can be reached by the Tab key, and arrow keys
// lead on to the others.
function markChips(row) {
  const fieldset = $('choose').querySelector(`[data-row="${row.name}"]`), found = matching(row);
  const boxes = row.items.map(({ key }) => {
    const pick = fieldset.querySelector(`[data-pick="${CSS.escape(key)}"]`);
    const box = pick.querySelector('input');
    pick.hidden = !found.includes(key);
    box.checked = row.chosen.has(key);
    return box;
  });
  const seen = boxes.filter((box) => !box.closest('.pick').hidden);
  const focused = seen.find((box) => box === document.activeElement);
  oneStop(boxes, focused ?? seen.find((box) => box.tabIndex === 0) ?? seen[0]);
}

function oneStop(boxes, one) {
  for (const box of boxes) box.tabIndex = box === one ? 0 : -1;
}

// Those of a row that are searched for: all words are in the name.
function matching({ name, items }) {
  const text = items.length > MANY ? searched.get(name) ?? '' : '';
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return items.filter((item) => words.every((word) => item.text.toLowerCase().includes(word)))
    .map(({ key }) => key);
}
