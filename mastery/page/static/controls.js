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

// Buttons of which one is pressed.
export function tabs(holder, items, chosen, choose) {
  const tab = ({ key, text, mark }) => make('button', {
    type: 'button', role: 'radio', 'aria-checked': key === chosen ? 'true' : 'false',
    'data-key': key, on: { click: () => choose(key) },
  }, mark, text);
  const key = [items.map((item) => [item.key, item.text]), chosen];
  rebuild(holder, key, () => items.map(tab));
}

export function options(select, items, chosen) {
  rebuild(select, items, () => items.map(([value, text]) => make('option', { value }, text)));
  select.value = chosen;
}

// A button that looks like text.
export function plainButton(click, text) {
  return make('button', { type: 'button', class: 'plain', on: { click } }, text);
}

// A note beside something, while the pointer or the focus is on it.
export function tipFor(element, fill) {
  const show = () => {
    $('tip').replaceChildren(...fill());
    $('tip').hidden = false;
    placeTip(element.getBoundingClientRect());
  };
  const hide = () => { $('tip').hidden = true; };
  for (const event of ['pointerenter', 'focus']) element.addEventListener(event, show);
  for (const event of ['pointerleave', 'blur']) element.addEventListener(event, hide);
}

// Above something, in the middle, or below it where there is no room above.
function placeTip(at) {
  const tip = $('tip'), own = tip.getBoundingClientRect();
  const middle = at.left + at.width / 2 - own.width / 2;
  const left = Math.min(Math.max(middle, 8), innerWidth - own.width - 8);
  const above = at.top - own.height - 10;
  tip.style.left = `${left + scrollX}px`;
  tip.style.top = `${(above > 8 ? above : at.bottom + 10) + scrollY}px`;
}
