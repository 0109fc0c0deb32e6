import { noGrad } from "../../autograd/modes.ts";
import { describeValue } from "../../core/describe.ts";
import { ArgumentError, OrchardError } from "../../core/errors.ts";
import { flag } from "../../core/kinds.ts";
import { named, parameters, reading } from "../../core/parameters.ts";
import { copy_ } from "../../ops/copy/inplace.ts";
import { formatName } from "../../quant/formats.ts";
import { namedParts } from "../../quant/parts.ts";
import { QuantizedTensor } from "../../quant/quantized_tensor.ts";
import { isFloat } from "../../tensor/dtype.ts";
import { sameShape } from "../../tensor/shape.ts";
import { Tensor } from "../../tensor/tensor.ts";

/** A module's parameters and buffers by name. */
export type StateDict = Record<string, Tensor>;

/** Options of `loadStateDict`. */
export interface LoadOptions {
  /** Whether missing and unexpected names are errors. Default true. */
  strict?: boolean;
}

/** Names that were missing or unexpected. */
export interface LoadReport {
  /** Names in the module that are not in the state. */
  readonly missing: readonly string[];
  /** Names in the state that are not in the module. */
  readonly unexpected: readonly string[];
}

/** An error: a state does not match a module. Nothing was loaded. */
export class StateDictError extends OrchardError {
  override readonly name = "StateDictError";
  /** Names in the module that are not in the state. */
  readonly missing: readonly string[];
  /** Names in the state that are not in the module. */
  readonly unexpected: readonly string[];
  /** Names with a different shape or dtype. */
  readonly different: readonly string[];

  constructor(operation: string, module: string, differences: Differences) {
    super(
      operation,
      "stateDiffers",
      `the state does not match ${module}; nothing was loaded:${formatDifferences(operation, differences)}`,
    );
    this.missing = differences.missing;
    this.unexpected = differences.unexpected;
    this.different = differences.different.map(({ name }) => name);
  }
}

/** @internal The differences between a module and a state. */
export interface Differences extends LoadReport {
  readonly different: readonly Different[];
}

interface Different {
  readonly name: string;
  readonly got: Described;
  readonly expected: Described;
}

/** Describes the tensor's dtype and shape. */
interface Described {
  describe(): string;
}

const headings = {
  missing: "missing from the state",
  unexpected: "unexpected in the state ({ strict: false } ignores missing and unexpected names)",
  different: "another shape or dtype (change the module's sizes, or convert it with to())",
} as const;

const headingsOfFiles = {
  missing: "missing from the files (download them again, or correct the config)",
  unexpected: "unexpected in the files (delete tensors of other models, or correct the config)",
  different: "another shape or dtype than the config says",
} as const;

function formatDifferences(operation: string, { missing, unexpected, different }: Differences): string {
  const lines = {
    missing,
    unexpected,
    different: different.map(
      ({ name, got, expected }) => `${name}: expected ${expected.describe()}, got ${got.describe()}`,
    ),
  };
  const known = operation === "loadStateDict" ? headings : headingsOfFiles;
  return (["missing", "unexpected", "different"] as const)
    .filter((kind) => lines[kind].length > 0)
    .map((kind) => `\n  ${known[kind]}:${lines[kind].map((line) => `\n    ${line}`).join("")}`)
    .join("");
}

/** @internal Options for weights from files. */
export interface ConvertOptions extends LoadOptions {
  /** Whether floating-point tensors are converted to the expected dtype. */
  readonly convert?: boolean;
  /** Whether the state's tensors are disposed of after copying. */
  readonly consume?: boolean;
  /** The module's quantized tensors, by name. */
  readonly quantized?: ReadonlyMap<string, QuantizedTensor>;
}

type State = Readonly<Record<string, Tensor | QuantizedTensor>>;

/** @internal The tensors to write, each with the names that it may have in a state. */
export type Targets = ReadonlyMap<Tensor, readonly string[]>;

/** @internal Checks the options of `loadStateDict`. @throws {ArgumentError} */
export const readLoadOptions = (options: LoadOptions | undefined): Required<LoadOptions> => readOptions([options]);
const readOptions = parameters("loadStateDict", { strict: named(flag, true) });

/**
 * @internal Copies a state's values into tensors. If anything does not match, nothing is copied.
 * @throws {StateDictError}
 */
export function loadInto(
  module: string,
  targets: Targets,
  state: State,
  { strict = true, convert = false, consume = false, quantized = new Map() }: ConvertOptions = {},
): LoadReport {
  checkState(state);
  const comparison = compare(targets, inParts(state, quantized), convert, quantized);
  const { missing, unexpected, different, matched } = comparison;
  if (different.length > 0 || (strict && missing.length + unexpected.length > 0))
    throw new StateDictError("loadStateDict", module, comparison);
  for (const source of matched.values()) source.checkAlive("loadStateDict");
  noGrad(() => {
    for (const [target, source] of matched) {
      copy_(target, source);
      if (consume) source.dispose();
    }
  });
  return { missing, unexpected };
}

/** Splits quantized tensors into their parts where the module has one of the same format and shape. */
function inParts(state: State, quantized: ReadonlyMap<string, QuantizedTensor>): State {
  if (!Object.values(state).some(QuantizedTensor.isQuantized)) return state;
  return Object.fromEntries(
    Object.entries(state).flatMap(([name, value]): (readonly [string, Tensor | QuantizedTensor])[] => {
      const target = quantized.get(name);
      const fits = target !== undefined && QuantizedTensor.isQuantized(value) && isAlike(target, value);
      return fits ? namedParts(name, value) : [[name, value]];
    }),
  );
}

const isAlike = (a: QuantizedTensor, b: QuantizedTensor): boolean =>
  formatName(a.format) === formatName(b.format) && sameShape(a.shape, b.shape);

function checkState(state: State): void {
  const operation = "loadStateDict";
  if (typeof state !== "object" || state === null)
    throw new ArgumentError(
      operation,
      "invalidOperand",
      `expected the state to be an object of tensors by name, got ${describeValue(state)}`,
    );
  const wrong = reading(operation, () =>
    Object.entries(state).find(([, value]) => !Tensor.isTensor(value) && !QuantizedTensor.isQuantized(value)),
  );
  if (wrong)
    throw new ArgumentError(
      operation,
      "notATensor",
      `expected ${wrong[0]} to be a tensor, got ${describeValue(wrong[1])}`,
    );
}

function compare(
  targets: Targets,
  state: State,
  convert: boolean,
  quantized: ReadonlyMap<string, QuantizedTensor>,
): Differences & { matched: Map<Tensor, Tensor> } {
  const known = new Set([...targets.values()].flat());
  const unexpected = Object.keys(state).filter((name) => !known.has(name));
  const missing: string[] = [];
  const different: Different[] = [];
  const matched = new Map<Tensor, Tensor>();
  for (const [expected, names] of targets) {
    const name = names.find((each) => Object.hasOwn(state, each));
    if (name === undefined) {
      missing.push(names[0]);
      continue;
    }
    const got = state[name];
    if (QuantizedTensor.isQuantized(got)) {
      different.push({ name, got, expected: quantized.get(name) ?? expected });
      continue;
    }
    matched.set(expected, got);
    const isConvertible = got.dtype === expected.dtype || (convert && isFloat(got.dtype) && isFloat(expected.dtype));
    if (!isConvertible || !sameShape(got.shape, expected.shape)) different.push({ name, got, expected });
  }
  return { missing, unexpected, different, matched };
}
