/** A thread that asks for `/health` at a steady pace, and posts how long each answer took. */

declare const self: Worker;

const PAUSE = 10; // milliseconds

/** The time of each answer in ms, and how much longer than planned each pause was: this thread's own delay, in ms. */
export interface Polled {
  readonly answers: readonly number[];
  readonly delays: readonly number[];
}

let [answers, delays]: [number[], number[]] = [[], []];

async function poll(url: string): Promise<never> {
  for (;;) {
    const start = performance.now();
    const response = await fetch(url);
    await response.text();
    if (response.status !== 200) throw new Error(`/health answered ${response.status}`);
    const answered = performance.now();
    await Bun.sleep(PAUSE);
    answers.push(answered - start);
    delays.push(Math.max(0, performance.now() - answered - PAUSE));
  }
}

/** The first message is the URL; each other one asks for the times since the last one. */
self.onmessage = ({ data }: MessageEvent<string>) => {
  if (data !== "") void poll(data);
  self.postMessage({ answers, delays } satisfies Polled);
  [answers, delays] = [[], []];
};
