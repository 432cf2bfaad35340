// What the page gives away as files: tables as CSV, pictures as SVG and PNG.

import { shade } from './colours.js';
import { make } from './elements.js';

// What a style sheet may set; in a file of its own a picture has no style sheet.
const LOOKS = [
  'fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-opacity',
  'stroke-linecap', 'stroke-linejoin', 'opacity', 'visibility', 'paint-order', 'transform',
];
const TEXT_LOOKS = ['font-size', 'font-family', 'font-weight', 'text-anchor', 'dominant-baseline'];

export function saveText(name, type, text) {
  saveBlob(name, new Blob([text], { type: `${type};charset=utf-8` }));
}

function saveBlob(name, blob) {
  const href = URL.createObjectURL(blob), link = make('a', { href, download: name });
  document.body.append(link);  // some browsers follow only links that are in the page
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

// Rows of cells as CSV (RFC 4180): numbers with all their digits; what is not known is empty.
export function csvOf(rows) {
  return rows.map((row) => `${row.map(csvCell).join(',')}\r\n`).join('');
}

function csvCell(x) {
  if (x === null || x === undefined || (typeof x === 'number' && !Number.isFinite(x))) return '';
  const text = typeof x === 'object' ? JSON.stringify(x) : String(x);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const saveCsv = (name, rows) => saveText(name, 'text/csv', csvOf(rows));

// A button that saves a table; `rows` gives its cells when it is pressed.
export function csvButton(label, name, rows) {
  const click = () => saveCsv(`${fileName(name())}.csv`, rows());
  return make('button', {
    type: 'button', class: 'save', 'aria-label': `Save ${label} as CSV`, 'data-key': `csv ${label}`,
    on: { click },
  }, 'CSV');
}

// A name that every file system takes.
export function fileName(text) {
  return text.replace(/[^\p{L}\p{N}._-]+/gu, '-').replace(/^[-.]+|-+$/g, '').slice(0, 80) || 'page';
}

// A picture as a file of its own: as it looks now, on the colour of a card.
export function saveSvg(picture, name) {
  saveText(`${fileName(name)}.svg`, 'image/svg+xml', standalone(picture));
}

export async function savePng(picture, name, scale = 2) {
  const { width, height } = picture.getBoundingClientRect(), image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(picture))}`;
  await image.decode();
  const canvas = make('canvas', {
    width: Math.round(width * scale), height: Math.round(height * scale),
  });
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((done) => { canvas.toBlob(done, 'image/png'); });
  saveBlob(`${fileName(name)}.png`, blob);
}

// The text of a picture that looks alike without the page.
export function standalone(picture) {
  const copy = picture.cloneNode(true), { width, height } = picture.getBoundingClientRect();
  const those = [picture, ...picture.querySelectorAll('*')];
  const copies = [copy, ...copy.querySelectorAll('*')];
  those.forEach((element, i) => inlineLooks(element, copies[i]));
  const box = copy.getAttribute('viewBox') ?? `0 0 ${width} ${height}`;
  const [x, y, w, h] = box.trim().split(/[\s,]+/).map(Number);
  const attributes = { xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: box };
  for (const [key, value] of Object.entries(attributes)) copy.setAttribute(key, value);
  copy.prepend(make('svg:rect', { x, y, width: w, height: h, fill: shade('card') }));
  return new XMLSerializer().serializeToString(copy);
}

// As attributes: they need no style sheet, and no policy forbids them.
function inlineLooks(element, copy) {
  const looks = getComputedStyle(element);
  if (looks.display === 'none') return copy.remove();
  for (const name of ['class', 'style', 'tabindex']) copy.removeAttribute(name);
  for (const name of /^t(ext|span)$/.test(element.tagName) ? [...LOOKS, ...TEXT_LOOKS] : LOOKS) {
    const value = looks.getPropertyValue(name);
    if (name !== 'transform' || value !== 'none') copy.setAttribute(name, value);
  }
  if (element.tagName === 'circle') copy.setAttribute('r', looks.getPropertyValue('r'));
}

// A button with a menu of what can be saved: [text, what it does] each. Enter or Space opens it,
// arrow keys move in it, Escape closes it.
export function downloadMenu(label, items) {
  const list = make('div', { role: 'menu', 'aria-label': `Save ${label}`, hidden: true });
  const opener = make('button', {
    type: 'button', class: 'save', 'aria-haspopup': 'menu', 'aria-expanded': 'false',
    'aria-label': `Save ${label}`, 'data-key': `save ${label}`,
  }, 'Save ▾');
  const whole = make('div', { class: 'menu' }, opener, list);
  const outside = ({ target }) => { if (!whole.contains(target)) show(false); };
  const show = (on) => {
    list.hidden = !on;
    opener.setAttribute('aria-expanded', String(on));
    document[on ? 'addEventListener' : 'removeEventListener']('pointerdown', outside);
  };
  const choose = (call) => { show(false); opener.focus(); call(); };
  list.append(...items.map(([text, call]) => make('button', {
    type: 'button', role: 'menuitem', tabindex: -1, on: { click: () => choose(call) },
  }, text)));
  opener.addEventListener('click', () => {
    show(list.hidden);
    if (!list.hidden) list.firstChild.focus();
  });
  whole.addEventListener('keydown', (event) => menuKey(event, opener, list, show));
  whole.addEventListener('focusout', ({ relatedTarget }) => {
    if (relatedTarget && !whole.contains(relatedTarget)) show(false);
  });
  return whole;
}

function menuKey(event, opener, list, show) {
  const those = [...list.children], at = those.indexOf(document.activeElement), n = those.length;
  const to = {
    ArrowDown: (at + 1) % n, ArrowUp: (at <= 0 ? n : at) - 1, Home: 0, End: n - 1,
  }[event.key];
  if (event.key === 'Escape' && !list.hidden) {
    show(false);
    opener.focus();
  } else if (to !== undefined && (at >= 0 || event.key.startsWith('Arrow'))) {
    show(true);
    those[to].focus();
  } else if (at < 0 || event.key === 'Tab') return;
  else return event.stopPropagation();  // what the page does with keys is not for a menu
  event.preventDefault();
  event.stopPropagation();
}
