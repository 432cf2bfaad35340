// Where the data comes from: the page's own file, or `mastery watch`. Both give an index of jobs,
// and the curves of a job when they are asked for.

const METRICS = ['probability', 'share', 'mastery', 'progress', 'returns', 'episodes'];

export function chooseSource() {
  return document.querySelector('script[data-name="index"]') ? fileSource : serverSource;
}

const fileSource = {
  async index() {
    const found = await unpack('index');
    this.clips = found.clips;
    return found;
  },
  curves(job, had) {
    return had ? Promise.resolve(had) : unpack(job.key);
  },
  async clip(job, task, run) {
    const runs = this.clips[job.key]?.[job.curriculum.tasks[task]] ?? {};
    return (runs[run] ?? Object.values(runs)[0])?.at(-1) ?? null;
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
  async clip(job, task, run) {
    return (await fetch(`clip/${job.key}/${task}/${run}`, { cache: 'no-store' })).json();
  },
};

// Data that is packed in the page.
async function unpack(name) {
  const text = document.querySelector(`script[data-name="${CSS.escape(name)}"]`).textContent;
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).json();
}

// Numbers by run, task and point as `mastery watch` sends them: bytes, and NaN where there is none.
function numbers({ shape: [runs, tasks, points], float64 }) {
  const text = atob(float64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const all = Array.from(new Float64Array(bytes.buffer), (x) => (Number.isNaN(x) ? null : x));
  const curve = (i) => all.slice(i * points, (i + 1) * points);
  const ofRun = (run) => Array.from({ length: tasks }, (_, task) => curve(run * tasks + task));
  return Array.from({ length: runs }, (_, run) => ofRun(run));
}

// What a page has, up to its last full point, and what came after that.
function joined(had, news) {
  const found = { ...news, frames: had.frames.slice(0, news.from).concat(news.frames) };
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
