/**
 * Preloaded by `orchard chat`: the model computes `HELD_CALLS` times, then waits until the file `HELD_UNTIL` exists.
 * Any text that the terminal shows by then arrived while the answer was being generated.
 */
import { existsSync } from "node:fs";
import { LanguageModel } from "../../src/nn/models/language_model.ts";

const [calls, file] = [Number(process.env["HELD_CALLS"]), process.env["HELD_UNTIL"]!];
const { forward } = LanguageModel.prototype;
let count = 0;

async function released(): Promise<void> {
  while (!existsSync(file)) await Bun.sleep(5);
}

LanguageModel.prototype.forward = function held(tokens, inputs) {
  const logits = forward.call(this, tokens, inputs);
  if (++count <= calls) return logits;
  const data = logits.data.bind(logits);
  return Object.defineProperty(logits, "data", { value: () => released().then(() => data()) });
};
