// What a part of the page calls when something is chosen in it. page.js sets these functions: it
// knows all parts and draws them. So no part needs to import page.js.

import { page } from './model.js';

export const actions = {
  draw: null,  // (): draw everything, because what is shown has changed
  drawCharts: null,  // (): draw the charts, because their range or what is measured has changed
  readAndDraw: null,  // (): draw everything, after reading the curves that are not here yet
  changeGroup: null,  // (group): show the jobs of another curriculum
  focusTask: null,  // (task): look closer at a task; null for all tasks
  goToFrames: null,  // (frames): go to a time
  goToTime: null,  // (x): go to a time, as a number on the charts' axis
};

// Look closer at a task, or, if it was in focus, at all tasks.
export function toggleTask(task) {
  actions.focusTask(page.task === task ? null : task);
}
