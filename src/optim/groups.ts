/** What an optimizer is given: parameters, or groups of them with options of their own. All of it is checked here. */
import { ArgumentError, DTypeError } from "../core/errors.ts";
import { isFloat } from "../tensor/dtype.ts";
import { Tensor } from "../tensor/tensor.ts";

/** Parameters, or by their names (`model.namedParameters()`), under which `stateDict()` then keeps their state. */
export type ParameterList = readonly Tensor[] | ReadonlyMap<string, Tensor>;

/** Parameters with options of their own; what is left out is as for all. */
export type GroupOptions<Options> = Partial<Options> & { readonly parameters: ParameterList };

/** What optimizers take as their first argument. */
export type Parameters<Options> = ParameterList | readonly GroupOptions<Options>[];

/** What every optimizer has. */
export interface LearningRate {
  /** The learning rate. */
  lr: number;
}

/** Parameters that share their options, which may be changed between steps: `optimizer.groups[0].lr = 1e-4`. */
export type ParameterGroup<Options> = Options & {
  readonly parameters: readonly Tensor[];
  /** The learning rate that {@link Optimizer.scaleLearningRate} multiplies. */
  initialLr: number;
};

/** A parameter and its name: the one that it came with, or its number. */
export interface NamedParameter {
  readonly name: string;
  readonly parameter: Tensor;
}

/** A group as it was asked for, with every option. */
export interface ParsedGroup<Options> {
  readonly named: readonly NamedParameter[];
  readonly options: Options;
}

/**
 * The groups that an optimizer was asked for.
 *
 * @throws {ArgumentError} `noParameters`, `notATensor`, `sameParameterTwice`, `sameNameTwice`, `noGradient`, `notALeaf`, `repeats`.
 * @throws {DTypeError} for integers and bools. @throws {DisposedError}
 */
export function parseGroups<Options extends object>(
  operation: string,
  parameters: Parameters<Options>,
  defaults: Options,
): ParsedGroup<Options>[] {
  const seen = new Map<Tensor, string>();
  const names = new Set<string>();
  const groups = groupsOf(operation, parameters).map(({ parameters: list, ...own }) => {
    const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
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
      "there are no parameters; give model.parameters(), or tensors that require a gradient",
    );
  return groups;
}

function groupsOf<Options>(operation: string, parameters: Parameters<Options>): readonly GroupOptions<Options>[] {
  if (parameters instanceof Map) return [{ parameters } as unknown as GroupOptions<Options>];
  if (!Array.isArray(parameters))
    throw new ArgumentError(
      operation,
      "notAList",
      `a list of tensors, a map of them or a list of groups is wanted, ${typeof parameters} came`,
    );
  const isGroup = (each: unknown) => typeof each === "object" && each !== null && "parameters" in each;
  if (!parameters.some(isGroup)) return [{ parameters } as unknown as GroupOptions<Options>];
  const other = parameters.findIndex((each) => !isGroup(each));
  if (other < 0) return parameters;
  throw new ArgumentError(
    operation,
    "mixedGroups",
    `groups ({ parameters, … }) and tensors are mixed: element ${other} is no group`,
  );
}

const entriesOf = (list: ParameterList, first: number): [string, Tensor][] =>
  list instanceof Map
    ? [...list]
    : (list as readonly Tensor[]).map((parameter, index) => [String(first + index), parameter]);

function checkParameter(operation: string, name: string, parameter: unknown): asserts parameter is Tensor {
  if (!(parameter instanceof Tensor))
    throw new ArgumentError(operation, "notATensor", `parameter ${name} is no tensor but ${typeof parameter}`);
  parameter.checkAlive(operation);
  if (!isFloat(parameter.dtype))
    throw new DTypeError(
      operation,
      "notAFloat",
      `parameter ${name} is ${parameter.describe()}; only floats can be optimized`,
    );
  if (!parameter.isLeaf)
    throw new ArgumentError(
      operation,
      "notALeaf",
      `parameter ${name}, ${parameter.describe()}, is the result of an operation; give the tensor that it was made of, or detach() it`,
    );
  if (!parameter.requiresGrad)
    throw new ArgumentError(
      operation,
      "noGradient",
      `parameter ${name}, ${parameter.describe()}, requires no gradient; set requiresGrad, or leave it out`,
    );
  const repeated = parameter.shape.findIndex((size, axis) => size > 1 && parameter.strides[axis] === 0);
  if (repeated >= 0)
    throw new ArgumentError(
      operation,
      "repeats",
      `axis ${repeated} of parameter ${name}, ${parameter.describe()}, repeats its elements (expand); optimize what was expanded`,
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
      `two parameters are named ${name}; names must tell them apart in stateDict()`,
    );
  seen.set(parameter, name);
  names.add(name);
}
