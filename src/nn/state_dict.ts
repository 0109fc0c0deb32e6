import { noGrad } from "../autograd/modes.ts";
import { OrchardError } from "../core/errors.ts";
import { copy_ } from "../ops/copy/inplace.ts";
import { isFloat } from "../tensor/dtype.ts";
import { sameShape } from "../tensor/shape.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** Tensors by the names of a module's parameters and buffers. */
export type StateDict = Record<string, Tensor>;

/** Options of `loadStateDict`. */
export interface LoadOptions {
  /** Whether every name of one side must be on the other. Default true. */
  strict?: boolean;
}

/** Which names were on one side only. */
export interface LoadReport {
  /** The module has them, the state does not. */
  readonly missing: readonly string[];
  /** The state has them, the module does not. */
  readonly unexpected: readonly string[];
}

/** A state that does not fit a module. Nothing of it was loaded. */
export class StateDictError extends OrchardError {
  override readonly name = "StateDictError";
  /** Names that the module has and the state does not. */
  readonly missing: readonly string[];
  /** Names that the state has and the module does not. */
  readonly unexpected: readonly string[];
  /** Names with another shape or dtype. */
  readonly different: readonly string[];

  constructor(operation: string, module: string, found: Differences) {
    super(operation, "stateDiffers", `the state does not fit ${module}, and nothing of it was loaded:${listOf(found)}`);
    this.missing = found.missing;
    this.unexpected = found.unexpected;
    this.different = found.different.map(({ name }) => name);
  }
}

interface Differences extends LoadReport {
  readonly different: readonly Different[];
}

interface Different {
  readonly name: string;
  readonly came: Tensor;
  readonly wanted: Tensor;
}

const headings = {
  missing: "missing from the state",
  unexpected: "not expected by the module ({ strict: false } leaves both out)",
  different: "of another shape or dtype (make the module so, or convert with to())",
} as const;

function listOf({ missing, unexpected, different }: Differences): string {
  const lines = {
    missing,
    unexpected,
    different: different.map(
      ({ name, came, wanted }) => `${name}: ${came.describe()} came, ${wanted.describe()} is wanted`,
    ),
  };
  return (["missing", "unexpected", "different"] as const)
    .filter((kind) => lines[kind].length > 0)
    .map((kind) => `\n  ${headings[kind]}:${lines[kind].map((line) => `\n    ${line}`).join("")}`)
    .join("");
}

/** @internal What the loaders of files add. */
export interface ConvertOptions extends LoadOptions {
  /** Whether a float may be another float than is wanted, and is converted. */
  readonly convert?: boolean;
  /** Whether the state's tensors are disposed of once they are copied. */
  readonly consume?: boolean;
}

/** @internal A tensor to be written, and the names that its value may have. */
export type Targets = ReadonlyMap<Tensor, readonly string[]>;

/** @internal Copies values into tensors: all of them, or none. @throws {StateDictError} */
export function loadInto(
  module: string,
  targets: Targets,
  state: Readonly<StateDict>,
  { strict = true, convert = false, consume = false }: ConvertOptions = {},
): LoadReport {
  const found = compare(targets, state, convert);
  const { missing, unexpected, different, matched } = found;
  if (different.length > 0 || (strict && missing.length + unexpected.length > 0))
    throw new StateDictError("loadStateDict", module, found);
  for (const source of matched.values()) source.checkAlive("loadStateDict");
  noGrad(() => {
    for (const [target, source] of matched) {
      copy_(target, source);
      if (consume) source.dispose();
    }
  });
  return { missing, unexpected };
}

function compare(
  targets: Targets,
  state: Readonly<StateDict>,
  convert: boolean,
): Differences & { matched: Map<Tensor, Tensor> } {
  const expected = new Set([...targets.values()].flat());
  const unexpected = Object.keys(state).filter((name) => !expected.has(name));
  const missing: string[] = [];
  const different: Different[] = [];
  const matched = new Map<Tensor, Tensor>();
  for (const [wanted, names] of targets) {
    const name = names.find((each) => Object.hasOwn(state, each));
    if (name === undefined) {
      missing.push(names[0]!);
      continue;
    }
    const came = state[name]!;
    matched.set(wanted, came);
    const fits = came.dtype === wanted.dtype || (convert && isFloat(came.dtype) && isFloat(wanted.dtype));
    if (!fits || !sameShape(came.shape, wanted.shape)) different.push({ name, came, wanted });
  }
  return { missing, unexpected, different, matched };
}
