// Where the data comes from: the page's own file, or `mastery watch`. Both give an index of jobs,
// and the curves of a job when they are asked for.

const METRICS = ['probability', 'share', 'mastery', 'progress', 'returns', 'episodes'];

export function chooseSource() {
  return document.querySelector('script[data-name="index"]') ? fileSource : serverSource;
}

const fileSource = {
  async index() {
    const found = await unpack('index');
    this.packed = found.clips;
    return found;
  },
  curves(job, had) {
    return had ? Promise.resolve(had) : unpack(job.key);
  },
  // by run, the clips of a task
  clips(job, task) {
    return this.packed[job.key]?.[job.curriculum.tasks[task]];
  },
};

const serverSource = {
  tag: '',
  // the index, or null if it has not changed
  async index() {
    const answer = await fetch('index.json', {
      cache: 'no-store', headers: this.tag ? { 'If-None-Match': this.tag } : {},
    });
    if (answer.status === 304) return null;
    this.tag = answer.headers.get('ETag');
    return answer.json();
  },
  async curves(job, had) {
    const query = had ? `?bins=${had.bins}&from=${had.full}&sessions=${had.sessions}` : '';
    const news = await (await fetch(`curves/${job.key}${query}`, { cache: 'no-store' })).json();
    if (news.error) throw new Error(news.error);
    for (const name of METRICS) if (news[name]) news[name] = numbers(news[name]);
    for (const given of Object.values(news.evaluations)) given.returns = numbers(given.returns);
    return news.from === 0 ? news : joined(had, news);
  },
  async clip(job, task, run, frames) {
    return (await fetch(`clip/${job.key}/${task}/${run}/${frames}`, { cache: 'no-store' })).json();
  },
};

// Data that is packed in the page.
async function unpack(name) {
  const text = document.querySelector(`script[data-name="${CSS.escape(name)}"]`).textContent;
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return unpacked(await new Response(stream).arrayBuffer());
}

// A document as mastery/page/packing.py packs it.
function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const body = new Uint8Array(buffer, 4 + length);
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  return JSON.parse(text, (_, value) => (
    Array.isArray(value?.packed) ? unpackedArray(value.packed, body) : value));
}

// All first bytes of the numbers, then all second bytes, …
function unpackedArray([at, bytes, scale, ...shape], body) {
  const n = shape.reduce((a, b) => a * b, 1), together = new Uint8Array(n * bytes);
  for (let k = 0; k < bytes; k++) {
    for (let i = 0; i < n; i++) together[i * bytes + k] = body[at + k * n + i];
  }
  if (scale === 0) return byRunAndTask(shape, withNulls(new Float32Array(together.buffer)));
  const whole = bytes === 2 ? new Int16Array(together.buffer) : new Int32Array(together.buffer);
  const lowest = -(2 ** (8 * bytes - 1));
  return byRunAndTask(shape, Array.from(whole, (x) => (x === lowest ? null : x / scale)));
}

const withNulls = (all) => Array.from(all, (x) => (Number.isNaN(x) ? null : x));

// Numbers by run, task and point as `mastery watch` sends them: bytes, and NaN where there is none.
function numbers({ shape, float64 }) {
  const bytes = Uint8Array.from(atob(float64), (c) => c.charCodeAt(0));
  return byRunAndTask(shape, withNulls(new Float64Array(bytes.buffer)));
}

function byRunAndTask([runs, tasks, points], all) {
  const curve = (i) => all.slice(i * points, (i + 1) * points);
  const ofRun = (run) => Array.from({ length: tasks }, (_, task) => curve(run * tasks + task));
  return Array.from({ length: runs }, (_, run) => ofRun(run));
}

// What a page has, up to its last full point, and what came after that.
function joined(had, news) {
  const found = { ...news };
  for (const axis of ['frames', 'seconds', 'steps']) {
    if (news[axis]) found[axis] = (had[axis] ?? []).slice(0, news.from).concat(news[axis]);
  }
  for (const name of METRICS) {
    if (!news[name]) continue;
    found[name] = news[name].map((tasks, run) => tasks.map((points, task) => {
      const old = had[name]?.[run][task] ?? new Array(news.from).fill(null);
      return old.slice(0, news.from).concat(points);
    }));
  }
  const upto = had.frames[news.from - 1] ?? -1;
  found.evaluations = { ...had.evaluations };
  for (const [policy, given] of Object.entries(news.evaluations)) {
    found.evaluations[policy] = joinedEvaluations(had.evaluations[policy], given, upto);
  }
  return found;
}

function joinedEvaluations(old, given, upto) {
  if (!old) return given;
  const kept = old.frames.filter((frames) => frames <= upto).length;
  return {
    frames: old.frames.slice(0, kept).concat(given.frames),
    returns: given.returns.map((tasks, run) => tasks.map(
      (points, task) => old.returns[run][task].slice(0, kept).concat(points))),
  };
}
