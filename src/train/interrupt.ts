/** Ctrl-C: the first one stops the run after its current step, the second one ends the process. */

export interface Interrupt extends Disposable {
  readonly signal: AbortSignal;
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Handles signals until it is disposed of. */
export function onInterrupt(): Interrupt {
  const controller = new AbortController();
  const listener = (signal: NodeJS.Signals) => {
    if (controller.signal.aborted) process.exit(signal === "SIGINT" ? 130 : 143);
    controller.abort();
    console.error("\nstopping after this step, then saving; press Ctrl-C again to end at once");
  };
  for (const signal of SIGNALS) process.on(signal, listener);
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      for (const signal of SIGNALS) process.off(signal, listener);
    },
  };
}
