// placeholder
import { make } from './elements.js';

export function saveText() {}
export function csvOf(rows) { return rows.join('\n'); }
export function saveSvg() {}
export function savePng() {}
export function downloadMenu(label) { return make('div', { class: 'menu' }, make('button', { type: 'button', 'aria-label': label }, '▾')); }
