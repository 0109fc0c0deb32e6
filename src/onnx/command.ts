/** The implementation of `orchard onnx`. */

import type { BackendName } from "../backend/names.ts";
import { setBackend } from "../backend/policy.ts";
import { ArgumentError, OrchardError } from "../core/errors.ts";
import { printable } from "../core/printable.ts";
import { writeAtomically } from "../io/atomic.ts";
import { zeros } from "../ops/creation/full.ts";
import { rand } from "../ops/random/rand.ts";
import { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import type { Value } from "./call.ts";
import { loadOnnx } from "./load.ts";
import type { OnnxModel, OnnxValue } from "./model.ts";
import { isStrings } from "./strings.ts";
import { dtypeOfName } from "./tensors.ts";

export interface OnnxFlags {
  /** Whether to run the model with random inputs. */
  readonly run?: boolean;
  /** Values for the variable sizes in the file, by name. */
  readonly size?: Readonly<Record<string, number>>;
  readonly backend?: BackendName;
  /** The path of a picture of the graph. */
  readonly svg?: string;
}

/** Runs `orchard onnx`. Returns the exit code. */
export async function runOnnx(file: string, flags: OnnxFlags): Promise<number> {
  try {
    if (flags.backend) setBackend(flags.backend);
    const model = await loadOnnx(file);
    console.log(printable(model.summary()));
    if (flags.svg !== undefined) await drawn(model, flags.svg);
    if (flags.run) console.log(printable(await timed(model, flags.size ?? {})));
    return 0;
  } catch (error) {
    if (!(error instanceof OrchardError)) throw error;
    console.error(printable(error.message));
    return 1;
  }
}

async function drawn(model: OnnxModel, path: string): Promise<void> {
  const svg = await model.toSvg();
  await writeAtomically("onnx", path, (file) => file.write(Buffer.from(svg)));
  console.log(printable(`picture: ${path}`));
}

const REPETITIONS = 5;

/** Runs the model several times, and describes its results and the median time. */
async function timed(model: OnnxModel, sizes: Readonly<Record<string, number>>): Promise<string> {
  const inputs = Object.fromEntries(model.inputs.map((input) => [input.name, randomInput(input, sizes)]));
  const times: number[] = [];
  let results: Record<string, Value> = {};
  for (let at = 0; at < REPETITIONS; at++) {
    const start = performance.now();
    results = await model.run(inputs);
    for (const value of Object.values(results)) if (value instanceof Tensor) value.dataSync();
    times.push(performance.now() - start);
  }
  const median = times.toSorted((a, b) => a - b)[Math.floor(REPETITIONS / 2)];
  const lines = Object.entries(results).map(([name, value]) => `  ${name}: ${describeResult(value)}`);
  return ["results", ...lines, `median time of ${REPETITIONS} runs: ${median.toFixed(1)} ms`].join("\n");
}

const describeResult = (value: Value): string =>
  value instanceof Tensor ? value.describe() : value === undefined ? "nothing" : describeOther(value);

function describeOther(value: Exclude<Value, Tensor | undefined>): string {
  if (isStrings(value)) return `string[${value.shape.join(", ")}]`;
  return value instanceof Map ? `a map of ${value.size}` : `a sequence of ${(value as readonly Value[]).length}`;
}

/** Floats are between 0 and 1; integers are 0, which is a valid index into any table. */
function randomInput({ name, type, shape }: OnnxValue, sizes: Readonly<Record<string, number>>): Tensor {
  const dtype = type === undefined ? undefined : dtypeOfName(type);
  if (dtype === undefined || shape === undefined)
    throw new ArgumentError("onnx", "unknownInput", `input "${name}": random inputs require a tensor of a known rank`);
  const resolved = shape.map((size) => {
    const value = typeof size === "number" ? size : sizes[size ?? ""];
    if (value !== undefined) return value;
    const option = size === null ? "its size is not named in the file" : `give it with --size ${size}=1`;
    throw new ArgumentError("onnx", "openSize", `input "${name}" has an open size; ${option}`);
  });
  const isFloat = dtype === "float64" || dtype === "float32" || dtype === "float16" || dtype === "bfloat16";
  return isFloat ? tidy(() => rand(resolved).to(dtype)) : zeros(resolved, { dtype });
}
