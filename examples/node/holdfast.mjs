// A cluster for tests: starts `holdfast up`, and speaks to its control port and its shell.
import { spawn, execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const binary = process.env.HOLDFAST || 'holdfast';
const run = promisify(execFile);

export class Cluster {
  static async start(...flags) {
    const c = new Cluster();
    c.dir = await mkdtemp(path.join(tmpdir(), 'holdfast-'));
    const ready = path.join(c.dir, 'ready.json');
    // The cluster ends with the pipe: whatever becomes of this process, none is left behind.
    c.process = spawn(binary, ['up', '--in-memory', '--free-ports', '--ready-file', ready, '--die-with-stdin', ...flags],
      { stdio: ['pipe', 'ignore', 'pipe'] });
    let log = '';
    c.process.stderr.on('data', (d) => { log += d; });
    c.ended = once(c.process, 'exit');
    for (const deadline = Date.now() + 30_000; ;) {
      try {
        c.ready = JSON.parse(await readFile(ready, 'utf8')); // it appears whole
        return c;
      } catch (e) {
        if (e.code !== 'ENOENT') throw e;
      }
      if (c.process.exitCode !== null || Date.now() > deadline) throw new Error(`holdfast up: ${log}`);
      await sleep(2);
    }
  }

  async close() {
    this.process.stdin.end();
    await this.ended;
    await rm(this.dir, { recursive: true });
  }

  // One request to the control port: docs/control-api.md lists them.
  async control(method, where, body) {
    const answer = await fetch(this.ready.control + where, { method, body: body && JSON.stringify(body) });
    const value = await answer.json();
    if (!answer.ok) throw new Error(value.error);
    return value;
  }

  get(where) { return this.control('GET', where); }

  post(where, body) { return this.control('POST', where, body); }

  // Commands of the HBase shell; what they print.
  async shell(...commands) {
    const args = ['shell', `${this.ready.address}?rpc-timeout=300ms`, '-n', ...commands.flatMap((c) => ['-e', c])];
    return (await run(binary, args, { timeout: 60_000 })).stdout;
  }
}
