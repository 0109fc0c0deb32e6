/** An optimizer's parameters, in groups with separate options, and the checks of them. */
import { describeValue } from "../core/describe.ts";
import { ArgumentError, DTypeError } from "../core/errors.ts";
import { listed } from "../core/kinds.ts";
import { hasGradients } from "../tensor/dtype.ts";
import { Tensor } from "../tensor/tensor.ts";

/** Parameters as a list, or as a map by name (`model.namedParameters()`), whose names `stateDict()` then uses. */
export type ParameterList = readonly Tensor[] | ReadonlyMap<string, Tensor>;

/** Parameters with options for them. Options that are left out default to the optimizer's. */
export type GroupOptions<Options> = Partial<Options> & { readonly parameters: ParameterList };

/** The first argument of an optimizer. */
export type Parameters<Options> = ParameterList | readonly GroupOptions<Options>[];

/** The option that every optimizer has. */
export interface LearningRate {
  /** The learning rate. */
  lr: number;
}

/** Parameters that share options, which can be changed between steps: `optimizer.groups[0].lr = 1e-4`. */
export type ParameterGroup<Options> = Options & {
  readonly parameters: readonly Tensor[];
  /** The learning rate that {@link Optimizer.scaleLearningRate} multiplies. */
  initialLr: number;
};

/** A parameter and its name, or its index if it was given without a name. */
export interface NamedParameter {
  readonly name: string;
  readonly parameter: Tensor;
}

/** A group with every option filled in. */
export interface ParsedGroup<Options> {
  readonly named: readonly NamedParameter[];
  readonly options: Options;
}

/**
 * Checks an optimizer's first argument, and fills in the default options.
 *
 * @throws {ArgumentError} `noParameters`, `notATensor`, `sameParameterTwice`, `sameNameTwice`, `noGradient`,
 * `notALeaf`, `repeats`.
 * @throws {DTypeError} for integers and bools. @throws {DisposedError}
 */
export function parseGroups<Options extends object>(
  operation: string,
  parameters: Parameters<Options>,
  defaults: Options,
): ParsedGroup<Options>[] {
  const seen = new Map<Tensor, string>();
  const names = new Set<string>();
  const groups = groupsOf(operation, parameters).map(({ parameters: list, ...settings }) => {
    const given = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
    const named = entriesOf(list, seen.size).map(([name, parameter]) => {
      checkParameter(operation, name, parameter);
      checkNew(operation, name, parameter, seen, names);
      return { name, parameter };
    });
    return { named, options: { ...defaults, ...given } };
  });
  if (seen.size === 0)
    throw new ArgumentError(
      operation,
      "noParameters",
      "expected at least one parameter, got none; pass model.parameters(), or tensors that require gradients",
    );
  return groups;
}

function groupsOf<Options>(operation: string, given: Parameters<Options>): readonly GroupOptions<Options>[] {
  if (given instanceof Map) return [{ parameters: given } as unknown as GroupOptions<Options>];
  const parameters = (Array.isArray(given) ? listed(given) : given) as Parameters<Options>;
  if (!Array.isArray(parameters))
    throw new ArgumentError(
      operation,
      "notAList",
      `expected a list of tensors, a map of tensors or a list of groups, got ${describeValue(given)}`,
    );
  const isGroup = (each: unknown) => typeof each === "object" && each !== null && "parameters" in each;
  if (!parameters.some(isGroup)) return [{ parameters } as unknown as GroupOptions<Options>];
  const other = parameters.findIndex((each) => !isGroup(each));
  if (other < 0) return parameters;
  throw new ArgumentError(
    operation,
    "mixedGroups",
    `expected every element to be a group ({ parameters, … }), got a tensor as element ${other}`,
  );
}

const entriesOf = (list: ParameterList, first: number): [string, Tensor][] =>
  list instanceof Map
    ? [...list]
    : ((listed(list) ?? []) as readonly Tensor[]).map((parameter, index) => [String(first + index), parameter]);

function checkParameter(operation: string, name: string, parameter: unknown): asserts parameter is Tensor {
  if (!Tensor.isTensor(parameter))
    throw new ArgumentError(
      operation,
      "notATensor",
      `expected parameter ${name} to be a tensor, got ${describeValue(parameter)}`,
    );
  parameter.checkAlive(operation);
  const described = parameter.describe();
  if (!hasGradients(parameter.dtype))
    throw new DTypeError(
      operation,
      "notAFloat",
      `expected parameter ${name} to have a floating-point or complex dtype, got ${described}`,
    );
  if (!parameter.isLeaf)
    throw new ArgumentError(
      operation,
      "notALeaf",
      `expected parameter ${name} to be a leaf, got the result of an operation, ${described}; detach() it`,
    );
  if (!parameter.requiresGrad)
    throw new ArgumentError(
      operation,
      "noGradient",
      `expected parameter ${name}, ${described}, to require gradients; set requiresGrad, or leave it out`,
    );
  const repeated = parameter.shape.findIndex((size, axis) => size > 1 && parameter.strides[axis] === 0);
  if (repeated >= 0)
    throw new ArgumentError(
      operation,
      "repeats",
      `axis ${repeated} of parameter ${name}, ${described}, is expanded; optimize the tensor that was expanded`,
    );
}

function checkNew(
  operation: string,
  name: string,
  parameter: Tensor,
  seen: Map<Tensor, string>,
  names: Set<string>,
): void {
  const before = seen.get(parameter);
  if (before !== undefined)
    throw new ArgumentError(
      operation,
      "sameParameterTwice",
      `parameters ${before} and ${name} are the same tensor ${parameter.describe()}; a step would change it twice`,
    );
  if (names.has(name))
    throw new ArgumentError(
      operation,
      "sameNameTwice",
      `two parameters are named ${name}; stateDict() needs unique names`,
    );
  seen.set(parameter, name);
  names.add(name);
}
