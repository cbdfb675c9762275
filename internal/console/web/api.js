// Requests to the control port, and the one picture of the cluster that all
// views share.
import { toast } from './dom.js';

/** Refused is an answer that says no. */
export class Refused extends Error {}

async function ask(method, path, body) {
  const init = { method, headers: {}, cache: 'no-store' };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers['Content-Type'] = 'application/json';
  }
  const resp = await fetch(path, init);
  const text = await resp.text();
  let out;
  try {
    out = JSON.parse(text);
  } catch {
    throw new Refused(`${resp.status} ${text.slice(0, 200)}`);
  }
  if (!resp.ok) throw new Refused(out.error ?? `status ${resp.status}`);
  return out;
}

export const get = (path) => ask('GET', path);

/** query makes a query string of what is not empty. */
export function query(path, params) {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v !== '' && v !== undefined && v !== null && v !== false) q.set(k, v);
  const text = q.toString();
  return text ? `${path}?${text}` : path;
}

/** act changes the cluster and tells how it went; it gives the answer, or undefined. */
export async function act(what, path, body = {}, method = 'POST') {
  const request = `${method} ${path}${body !== undefined && Object.keys(body).length ? ' ' + JSON.stringify(body) : ''}`;
  const began = performance.now();
  try {
    const out = await ask(method, path, body);
    toast(`${what}: done in ${Math.max(1, Math.round(performance.now() - began))} ms`, { request });
    return out;
  } catch (e) {
    toast(`${what}: ${e.message}`, { bad: true, request });
    return undefined;
  } finally {
    poke();
  }
}

// --- the picture -------------------------------------------------------------

/** world is what is known: the map, the rates, the newest cluster events. */
export const world = { map: undefined, rates: undefined, happened: [], down: '' };

const listeners = new Set();

/** watch calls f with the name of what changed: 'map', 'rates', 'happened' or 'link'. */
export function watch(f) {
  listeners.add(f);
  return () => listeners.delete(f);
}

const tell = (what) => { for (const f of [...listeners]) f(what); };

let pokes = 0;
let wake = () => {};

/** poke asks for the map at once. */
export function poke() {
  pokes++;
  wake();
}

const pause = (t) => new Promise((resolve) => {
  const timer = setTimeout(resolve, t);
  wake = () => { clearTimeout(timer); resolve(); };
});

/** visible resolves once somebody can see the page. */
const visible = () => new Promise((resolve) => {
  if (document.visibilityState === 'visible') return resolve();
  document.addEventListener('visibilitychange', function seen() {
    if (document.visibilityState !== 'visible') return;
    document.removeEventListener('visibilitychange', seen);
    resolve();
  });
});

async function pollMap() {
  for (;;) {
    await visible();
    let wait = 250;
    try {
      const m = await get(query('/console/map', { have: world.map?.version }));
      if (m.same) Object.assign(world.map, { clock: m.clock, lastEvent: m.lastEvent, rules: m.rules });
      else {
        world.map = m;
        // A picture that is dear to draw is asked for less often.
        wait = Math.max(wait, Math.min(10 * m.costMs, 3000));
        tell('map');
      }
      if (world.down) {
        world.down = '';
        tell('link');
      } else tell('tick');
    } catch (e) {
      if (!world.down) {
        world.down = e instanceof Refused ? e.message : 'no connection to the cluster; trying again';
        tell('link');
      }
      wait = 1000;
    }
    if (pokes > 0) {
      pokes = 0;
      wait = Math.min(wait, 60);
    }
    await pause(wait);
  }
}

const KEEP = 300;

/** merge appends the new seconds of a line to what is there. */
function extend(old, line, news) {
  const out = { ...line };
  for (const k of ['rate', 'failed', 'p50s', 'p99s']) {
    const empty = k === 'rate' || k === 'failed' ? 0 : -1;
    const before = old ? old[k].slice(0, old[k].length) : new Array(KEEP).fill(empty);
    out[k] = before.concat(line[k]).slice(-KEEP);
  }
  return news ? out : old;
}

async function pollRates() {
  let since = 0;
  for (;;) {
    await visible();
    try {
      const r = await get(query('/console/rates', { since }));
      const old = world.rates;
      const news = r.now > since;
      // After a pause longer than the memory, or another cluster, everything is new.
      const fresh = !old || r.now < since || r.now - since > KEEP;
      const by = (list, name) => list?.find((x) => x.name === name);
      world.rates = news || fresh ? {
        ...r,
        total: extend(fresh ? undefined : old.total, r.total, true),
        servers: r.servers.map((l) => extend(fresh ? undefined : by(old.servers, l.name), l, true)),
        methods: r.methods.map((l) => extend(fresh ? undefined : by(old.methods, l.name), l, true)),
      } : old;
      since = r.now;
      if (news) tell('rates');
    } catch {
      since = 0; // pollMap says that the cluster is gone
    }
    await new Promise((resolve) => { setTimeout(resolve, 1000); });
  }
}

async function pollHappened() {
  let since = 0;
  for (;;) {
    await visible();
    try {
      const e = await get(query('/console/events', { kind: 'cluster', since, limit: 40 }));
      if (e.last < since) {
        world.happened = [];
        since = 0;
        continue;
      }
      since = e.last;
      if (e.events.length) {
        world.happened = world.happened.concat(e.events).slice(-60);
        tell('happened');
      }
    } catch { /* see above */ }
    await new Promise((resolve) => { setTimeout(resolve, 700); });
  }
}

export function begin() {
  pollMap();
  pollRates();
  pollHappened();
}

/** serverName is what a server is called on the page. */
export function serverName(address) {
  const server = world.map?.servers.find((x) => x.address === address);
  if (server) return `rs ${server.index}`;
  const master = world.map?.masters.find((x) => x.address === address);
  return master ? `master ${master.index}` : address;
}
