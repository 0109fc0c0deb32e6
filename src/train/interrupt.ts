/** Ctrl-C: the first asks the run to stop after its step, the second ends the process. */

export interface Interrupt extends Disposable {
  readonly signal: AbortSignal;
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Listens until it is disposed of. */
export function onInterrupt(): Interrupt {
  const controller = new AbortController();
  const listener = (signal: NodeJS.Signals) => {
    if (controller.signal.aborted) process.exit(signal === "SIGINT" ? 130 : 143);
    controller.abort();
    console.error("\nstopping after this step, and saving; once more ends at once");
  };
  for (const signal of SIGNALS) process.on(signal, listener);
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      for (const signal of SIGNALS) process.off(signal, listener);
    },
  };
}
