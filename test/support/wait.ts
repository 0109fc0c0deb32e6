/** Waits for something that another process, thread or task does. */

/** Long enough for a machine of two busy cores that is three times slower: the limit only ends waits that hang. */
const SECONDS = 300;

export interface WaitOptions {
  readonly seconds?: number;
  /** Describes what there is instead, for the message of the error. */
  readonly state?: () => unknown;
  readonly pauseMilliseconds?: number;
}

type Held<Value> = Exclude<Value, undefined | null | false>;

/**
 * Waits until the condition holds, and returns its value. Throws where it does not within the limit, with what it
 * waited for and the last state; an error that the condition throws ends the wait at once.
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

/** A promise, or an error that says what it waited for where it does not end within the limit. */
export async function within<Value>(what: string, promise: Promise<Value>, seconds = SECONDS): Promise<Value> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`waited ${seconds} s for ${what}`)), seconds * 1000);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
