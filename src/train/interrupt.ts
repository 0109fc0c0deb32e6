/** Signals that ask a run to end: the first one stops it after its current step, the second one ends the process. */
import { constants } from "node:os";
import { ignoreClosedTerminal, showCursor } from "./terminal.ts";

export interface Interrupt extends Disposable {
  readonly signal: AbortSignal;
  /** The conventional exit code for the signal: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP. */
  readonly exitCode: number;
}

/** Ctrl-C; `kill` and service managers; a closed terminal. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** Signals within this time count as one: a terminal sends Ctrl-C to every process, and `bun run` forwards it too. */
const SAME_MILLISECONDS = 100;

const codeOf = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

/** Handles signals until it is disposed of. */
export function onInterrupt(): Interrupt {
  ignoreClosedTerminal();
  const controller = new AbortController();
  let first: { readonly code: number; readonly time: number } | undefined;
  const listener = (signal: NodeJS.Signals) => {
    const time = performance.now();
    if (first && time - first.time < SAME_MILLISECONDS) return;
    if (first) endAtOnce(codeOf(signal));
    first = { code: codeOf(signal), time };
    const again = signal === "SIGINT" ? "press Ctrl-C again" : `send ${signal} again`;
    console.error(`\nstopping after this step, then saving; ${again} to end at once`);
    controller.abort();
  };
  for (const signal of SIGNALS) process.on(signal, listener);
  return {
    signal: controller.signal,
    get exitCode() {
      return first?.code ?? codeOf("SIGINT");
    },
    [Symbol.dispose]: () => {
      for (const signal of SIGNALS) process.off(signal, listener);
    },
  };
}

/** Ends immediately. Only steps since the last checkpoint are lost, since checkpoints are written atomically. */
function endAtOnce(code: number): never {
  showCursor();
  process.exit(code);
}
