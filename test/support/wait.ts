/** Waits for an action of another process, thread or task. */

/** Long enough for a machine of two busy cores that is three times slower: the limit only ends waits that hang. */
const SECONDS = 300;

export interface WaitOptions {
  readonly seconds?: number;
  /** Describes the current state, for the error message. */
  readonly state?: () => unknown;
  readonly pauseMilliseconds?: number;
}

type Held<Value> = Exclude<Value, undefined | null | false>;

/**
 * Waits until the condition holds, and returns its value. After the limit it throws an error that says what it waited
 * for and the last state; an error that the condition throws ends the wait at once.
 *
 * @example await waitFor("the log of step 3", () => existsSync(log), { state: () => readdirSync(folder) });
 */
export async function waitFor<Value>(
  what: string,
  condition: () => Value | Promise<Value>,
  { seconds = SECONDS, state, pauseMilliseconds = 5 }: WaitOptions = {},
): Promise<Held<Value>> {
  const end = performance.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== null && value !== false) return value as Held<Value>;
    if (performance.now() > end) {
      const last = state === undefined ? value : await state();
      const shown = typeof last === "string" ? last : Bun.inspect(last);
      throw new Error(`waited ${seconds} s for ${what}; the last state is ${shown.slice(-2000)}`);
    }
    await Bun.sleep(pauseMilliseconds);
  }
}

/** Awaits a promise; after the limit it throws an error that says what it waited for. */
export async function within<Value>(what: string, promise: Promise<Value>, seconds = SECONDS): Promise<Value> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`waited ${seconds} s for ${what}`)), seconds * 1000);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
