/**
 * Modules that are derived from operations. A module such as `MSELoss` is its operation, `mseLoss`, called with options
 * that the constructor has read. {@link moduleOf} takes all that it needs from the operation: the operands of `forward`
 * and the options from its declared parameters, and the static types of both from its signature.
 *
 * @example
 * class MSELoss extends moduleOf("MSELoss", { mseLoss }) {}
 * new MSELoss({ reduction: "sum" }).forward(x, target); // mseLoss(x, target, { reduction: "sum" })
 */
import { type Parameters, parameters, signatures } from "../../core/parameters.ts";
import { surplusOf } from "../../core/surplus.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "./module.ts";

type Operation = (...values: never) => unknown;

/** The operation under its name, as in `{ mseLoss }`: a minifier may rename functions, but no properties. */
type Named<F extends Operation> = Readonly<Record<string, F>>;

type ArgumentsOf<F> = F extends (...values: infer Values) => unknown ? Values : never;

/** The tensors that the arguments of an operation start with: `[x: Tensor, target: Tensor]`. */
type LeadingTensors<Values extends readonly unknown[]> = Values extends readonly Tensor[]
  ? Values
  : Values extends readonly [...infer Others, unknown]
    ? LeadingTensors<Others>
    : never;
type OperandsOf<F> = LeadingTensors<Required<ArgumentsOf<F>>>;

/** The arguments after these tensors: the options, in all the ways in which the operation takes them. */
type WithoutTensors<Values> = Values extends readonly [Tensor, ...infer Others] ? WithoutTensors<Others> : Values;
type GivenTo<F> = Extract<WithoutTensors<ArgumentsOf<F>>, readonly unknown[]>;

/** The options by name; none where an operation has no options. */
type OptionsIn<Given> = Given extends readonly [options?: infer O] ? Exclude<O, undefined | number> : never;

/** The options that are tensors, such as factors of classes. */
type Buffers<O> = { readonly [Name in keyof O as NonNullable<O[Name]> extends Tensor ? Name : never]-?: Tensor | null };
type WithoutBuffers<O> = [keyof Buffers<O>] extends [never] ? Readonly<O> : Readonly<Omit<O, keyof Buffers<O>>>;
type Properties<O> = { readonly [Name in keyof O]-?: Exclude<O[Name], undefined> };

/** Modules whose `forward` is there. Documentation prints that of x with its parameter, the others' with a tuple. */
export interface DerivedOfX extends Module<[x: Tensor], Tensor> {
  forward(x: Tensor): Tensor;
}
export interface DerivedOf<Operands extends readonly unknown[]> extends Module<Operands, Tensor> {
  forward(...values: Operands): Tensor;
}
type Derived<Operands extends readonly unknown[]> = Operands extends readonly [Tensor]
  ? DerivedOfX
  : DerivedOf<Operands>;
export interface HasOptions<O> {
  /** The options with which the operation is called. */
  readonly options: WithoutBuffers<O>;
}

/** Other arguments of a constructor than the options of the operation. See {@link taking}. */
interface Taking<Given extends readonly unknown[], Options, Operands> {
  readonly declared: Parameters;
  /** Only types. */
  readonly types?: readonly [Given, Options, Operands];
}

/**
 * Declares the arguments of a constructor that differ from the options of the operation: fewer options, stricter kinds,
 * or others by position. The type parameters are the ways to pass them; the options by name, if they are not the first
 * of these ways; and the operands of `forward`, if some are not tensors.
 *
 * @example
 * const anAxis = taking<Given<{ dim?: number }, ["dim"]>>({ dim: optional(axis, -1) });
 * class Softmax extends propertiesOf("Softmax", { softmax }, anAxis) {} // not the option `dtype` of `softmax`
 */
export const taking = <Given extends readonly unknown[], Options = OptionsIn<Given>, Operands = unknown>(
  declared: Parameters,
): Taking<Given, Options, Operands> => ({ declared });

/** Derives a class. `Kept` are the properties in which it keeps its options. */
type Derive<Kept extends "options" | "properties"> = <
  F extends Operation,
  Given extends readonly unknown[] = GivenTo<F>,
  Options = OptionsIn<Given>,
  Operands = unknown,
>(
  name: string,
  operation: Named<F>,
  taken?: Taking<Given, Options, Operands>,
) => ClassOf<
  Given,
  Derived<Operands extends readonly unknown[] ? Operands : OperandsOf<F>> &
    (Kept extends "options" ? HasOptions<Options> & Buffers<Options> : Properties<Options>)
>;
type ClassOf<Given extends readonly unknown[], Made> = [Given] extends [readonly []]
  ? new () => Made
  : new (
      ...options: Given
    ) => Made;

/**
 * Derives the class of a module without trained parameters from an operation. Its `options` are the ones that the
 * operation is called with. Options that are tensors are buffers instead: properties, null where none is given.
 *
 * @param name the name of the class, for errors and the table of parameters
 * @param operation the operation under its name: `{ mseLoss }`
 * @param taken the arguments of the constructor, if they are not the options of the operation
 */
export const moduleOf: Derive<"options"> = (name, operation, taken) => derived("options", name, operation, taken);

/** As {@link moduleOf}, but each option is a property of the module: `new ELU(2).alpha`. */
export const propertiesOf: Derive<"properties"> = (name, operation, taken) =>
  derived("properties", name, operation, taken);

function derived(
  kept: "options" | "properties",
  name: string,
  operation: Named<Operation>,
  taken: { readonly declared: Parameters } | undefined,
): never {
  const [[ofOperation, call]] = Object.entries(operation) as [[string, (...values: unknown[]) => unknown]];
  const all = signatures.get(ofOperation)!.parameters;
  const declared = taken?.declared ?? Object.fromEntries(Object.entries(all).filter(([, { by }]) => by !== "operand"));
  const operands = Object.keys(all).filter((own) => all[own]!.isRequired && !(own in declared));
  const names = Object.keys(declared);
  const properties = names.filter((own) => kept === "properties" || declared[own]!.kind === aTensor);
  const read = parameters(name, declared);

  class OfOperation extends Module<readonly unknown[]> {
    declare options: object | undefined;

    constructor(...values: unknown[]) {
      super();
      const given = Object.entries(read(values));
      const options = Object.fromEntries(given.filter(([own]) => !properties.includes(own)));
      if (kept === "options") this.options = Object.freeze(options);
      for (const [own, value] of given) if (properties.includes(own)) Reflect.set(this, own, value ?? null);
    }

    override forward(...values: readonly unknown[]): unknown {
      const surplus = surplusOf(`${name}.forward`, operands, values);
      if (surplus) throw surplus;
      const own = operands.map((_, at) => values[at]);
      return names.length > 0 ? call(...own, optionsOf(this)) : call(...own);
    }

    /** @internal */
    override details(): string {
      return listed(optionsOf(this));
    }
  }

  const optionsOf = (module: OfOperation): object => ({
    ...module.options,
    ...Object.fromEntries(properties.map((own) => [own, Reflect.get(module, own) ?? undefined])),
  });
  return called(name, OfOperation) as never;
}

/** @internal Names a class that a function makes, for errors. */
export function called<Class extends abstract new (...values: never) => object>(name: string, made: Class): Class {
  return Object.defineProperty(made, "name", { value: name });
}

/** @internal The options that are given, but for functions and objects: what is printed of a module. */
export const listed = (options: object): string =>
  Object.entries(options)
    .filter(([, value]) => value !== undefined && (typeof value !== "object" || Array.isArray(value)))
    .filter(([, value]) => typeof value !== "function")
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? `[${value.join(", ")}]` : value}`)
    .join(", ");
