/**
 * Runs checks that may crash in a separate process: `bun scripts/verify/child.ts <identifier>` runs a probe, and
 * `--machine` describes the device. The last line on standard output is the answer as JSON.
 */
import { metalContext } from "../../src/backend/metal/context.ts";
import { probes } from "./checks.ts";
import type { Outcome } from "./outcome.ts";
import { knowsVersion, NotChecked, Refuted, versions } from "./probe.ts";

function outcomeOf(identifier: string): Outcome {
  try {
    return { state: "holds", evidence: probes[identifier]() };
  } catch (error) {
    if (error instanceof NotChecked) return { state: "unknown", evidence: error.message };
    if (error instanceof Refuted) return { state: "fails", evidence: error.message };
    const text = error instanceof Error ? error.message : String(error);
    return { state: "fails", evidence: `the probe ended with an error: ${text.split("\n")[0]}` };
  }
}

const [word = ""] = process.argv.slice(2);
const answer =
  word === "--machine"
    ? { device: metalContext().deviceInfo({ probe: true }), versions: versions.filter(knowsVersion) }
    : outcomeOf(word);
console.log(JSON.stringify(answer));
