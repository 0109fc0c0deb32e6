/** Measures the turns of a thread's event loop: the time during which it answers nothing else. */

/** What a thread's event loop did, in milliseconds. */
export interface Turns {
  /** The delays of a timer, sorted. They include delays that the machine's load causes. */
  readonly late: readonly number[];
  /** The thread's processor time between two calls of the timer, sorted: how long it computed without a pause. */
  readonly busy: readonly number[];
}

const PERIOD = 4;

/** Measures the calling thread until the returned function is called, which returns the turns since the last call. */
export function measureTurns(): () => Turns {
  let [late, busy]: [number[], number[]] = [[], []];
  let [time, used] = [performance.now(), processorTime()];
  setInterval(() => {
    const [nextTime, nextUsed] = [performance.now(), processorTime()];
    late.push(Math.max(0, nextTime - time - PERIOD));
    busy.push(nextUsed - used);
    [time, used] = [nextTime, nextUsed];
  }, PERIOD).unref();
  return () => {
    const ascending = (values: number[]) => values.sort((a, b) => a - b);
    const turns = { late: ascending(late), busy: ascending(busy) };
    [late, busy] = [[], []];
    return turns;
  };
}

/** Returns this thread's processor time in milliseconds. */
function processorTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
