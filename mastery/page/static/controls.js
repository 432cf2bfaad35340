// What several parts of the page have: tabs, options, the key of the series, notes beside things.

import { lineColour, theme } from './colours.js';
import { $, make } from './elements.js';

const DASH_ARRAYS = { solid: '', dash: '6 4', dot: '2 3', dashdot: '7 3 2 3' };

// A line with the colour and the dash of a series.
export function sample(s) {
  return make('svg:svg', { width: 26, height: 10, class: 'sample', 'aria-hidden': 'true' },
    make('svg:line', {
      x1: 1, x2: 25, y1: 5, y2: 5,
      stroke: lineColour(s.colour), 'stroke-width': 3, 'stroke-dasharray': DASH_ARRAYS[s.dash],
    }));
}

export function seriesKey(shown) {
  return shown.map((s) => make('span', {}, sample(s), s.name));
}

const built = new Map();  // by element: of what it was built

// New contents, unless they are as they were: then what the user is about to press stays. What has
// the focus keeps it.
export function rebuild(holder, key, contents) {
  const whole = JSON.stringify([key, theme()]);
  if (built.get(holder) === whole) return;
  built.set(holder, whole);
  const active = document.activeElement;
  const focused = holder.contains(active) ? active.dataset.key : null;
  holder.replaceChildren(...contents());
  if (focused) holder.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

// Buttons of which one is pressed: one stop for the Tab key, arrow keys choose.
export function tabs(holder, items, chosen, choose) {
  const tab = ({ key, text, mark }, i, all) => make('button', {
    type: 'button', role: 'radio', 'aria-checked': key === chosen ? 'true' : 'false',
    'data-key': key, on: {
      click: () => choose(key),
      keydown: (event) => arrowKeys(event, (to) => {
        holder.children[to].focus();  // before it is built anew, which keeps the focus
        choose(items[to].key);
      }),
    },
    tabindex: key === chosen || (i === 0 && all.every((x) => x.key !== chosen)) ? 0 : -1,
  }, mark, text);
  const key = [items.map((item) => [item.key, item.text]), chosen];
  rebuild(holder, key, () => items.map(tab));
}

// Which of the things in a row an arrow key, Home or End leads to, from the one that has the focus.
export function arrowKeys(event, go, row = [...event.currentTarget.parentElement.children]) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const at = row.indexOf(event.currentTarget), n = row.length;
  const next = (at + 1) % n, before = (at + n - 1) % n;
  const to = {
    ArrowRight: next, ArrowDown: next, ArrowLeft: before, ArrowUp: before, Home: 0, End: n - 1,
  }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  event.stopPropagation();  // arrow keys move the time elsewhere
  go(to);
}

export function options(select, items, chosen) {
  rebuild(select, items, () => items.map(([value, text]) => make('option', { value }, text)));
  select.value = chosen;
}

// A button that looks like text.
export function plainButton(click, text) {
  return make('button', { type: 'button', class: 'plain', on: { click } }, text);
}

const tipShown = { element: null, top: 0 };  // what the note is beside, and where that was

// A note beside something, while the pointer or the focus is on it. Escape hides it.
export function tipFor(element, fill) {
  const show = () => {
    $('tip').replaceChildren(...fill());
    $('tip').hidden = false;
    placeTip(element);
    addEventListener('scroll', scrolledTip, { capture: true, passive: true });
    addEventListener('keydown', escapedTip, true);
  };
  for (const event of ['pointerenter', 'focus']) element.addEventListener(event, show);
  for (const event of ['pointerleave', 'blur']) element.addEventListener(event, hideTip);
}

export function hideTip() {
  $('tip').hidden = true;
  removeEventListener('scroll', scrolledTip, { capture: true });
  removeEventListener('keydown', escapedTip, true);
}

function escapedTip({ key }) {
  if (key === 'Escape') hideTip();
}

// What has the focus is scrolled into sight, and its note goes with it; the pointer stays behind.
function scrolledTip() {
  const { element, top } = tipShown;
  if (element.getBoundingClientRect().top === top) return;
  if (element === document.activeElement) placeTip(element); else hideTip();
}

// Above something, in the middle, or below it where there is no room above; never beyond the edge,
// which would widen the page.
function placeTip(element) {
  const tip = $('tip'), at = element.getBoundingClientRect();
  Object.assign(tipShown, { element, top: at.top });
  tip.style.left = '0';  // how wide it can be depends on where it is
  const own = tip.getBoundingClientRect(), width = document.documentElement.clientWidth;
  const middle = at.left + at.width / 2 - own.width / 2;
  tip.style.left = `${Math.max(Math.min(middle, width - own.width - 8), 8)}px`;
  const above = at.top - own.height - 10;
  tip.style.top = `${above > 8 ? above : at.bottom + 10}px`;
}
