/**
 * Modules that are derived from operations. A module such as `MSELoss` calls its operation `mseLoss` with the options
 * that its constructor read. {@link moduleOf} takes the operands of `forward` and the options from the operation's
 * declared parameters, and their static types from its signature.
 *
 * @example
 * class MSELoss extends moduleOf("MSELoss", { mseLoss }) {}
 * new MSELoss({ reduction: "sum" }).forward(x, target); // mseLoss(x, target, { reduction: "sum" })
 */
import { type Parameters, parameters, parametersOf } from "../../core/parameters.ts";
import { surplusOf } from "../../core/surplus.ts";
import type { FloatDType } from "../../tensor/dtype.ts";
import { aTensor } from "../../tensor/kinds.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { Module } from "./module.ts";

type Operation = (...values: never) => unknown;

/** The operation under its name, as in `{ mseLoss }`: a minifier may rename functions, but not properties. */
type Named<F extends Operation> = Readonly<Record<string, F>>;

type ArgumentsOf<F> = F extends (...values: infer Values) => unknown ? Values : never;

/** The tensors that the arguments of an operation start with: `[x: Tensor, target: Tensor]`. */
type LeadingTensors<Values extends readonly unknown[]> = Values extends readonly Tensor[]
  ? Values
  : Values extends readonly [...infer Others, unknown]
    ? LeadingTensors<Others>
    : never;
type OperandsOf<F> = LeadingTensors<Required<ArgumentsOf<F>>>;

/** The arguments after the leading tensors: the options, in every way in which the operation accepts them. */
type WithoutTensors<Values> = Values extends readonly [Tensor, ...infer Others] ? WithoutTensors<Others> : Values;
type GivenTo<F> = Extract<WithoutTensors<ArgumentsOf<F>>, readonly unknown[]>;

/** The options object; never if an operation has no options. */
type OptionsIn<Given> = Given extends readonly [options?: infer O] ? Exclude<O, undefined | number> : never;

/** The options that are tensors, such as class weights. */
type Buffers<O> = { readonly [Name in keyof O as NonNullable<O[Name]> extends Tensor ? Name : never]-?: Tensor | null };
type WithoutBuffers<O> = [keyof Buffers<O>] extends [never] ? Readonly<O> : Readonly<Omit<O, keyof Buffers<O>>>;
type Properties<O> = { readonly [Name in keyof O]-?: Exclude<O[Name], undefined> };

/**
 * Types of derived modules. There are two interfaces so that the documentation prints a named parameter `x` for modules
 * with one operand, instead of a tuple.
 */
export interface DerivedOfX extends Module<[x: Tensor], Tensor> {
  forward<D extends FloatDType>(x: Tensor<D>): Tensor<D>;
  forward(x: Tensor): Tensor;
}
/** A derived module whose `forward` takes these operands. */
export interface DerivedOf<Operands extends readonly unknown[]> extends Module<Operands, Tensor> {
  forward(...values: Operands): Tensor;
}
type Derived<Operands extends readonly unknown[]> = Operands extends readonly [Tensor]
  ? DerivedOfX
  : DerivedOf<Operands>;
/** The options of a derived module. */
export interface HasOptions<O> {
  /** The options with which the operation is called. */
  readonly options: WithoutBuffers<O>;
}

/** Constructor arguments that differ from the options of the operation. See {@link taking}. */
interface Taking<Given extends readonly unknown[], Options, Operands> {
  readonly declared: Parameters;
  /** Carries types only. */
  readonly types?: readonly [Given, Options, Operands];
}

/**
 * Declares constructor arguments that differ from the options of the operation: fewer options, stricter kinds, or
 * another order by position. `Given` lists the ways to pass them. `Options` is the options object, if it is not the
 * first way. `Operands` are the arguments of `forward`, if some are not tensors.
 *
 * @example
 * const anAxis = taking<Given<{ dim?: number }, ["dim"]>>({ dim: optional(axis, -1) });
 * class Softmax extends propertiesOf("Softmax", { softmax }, anAxis) {} // not the option `dtype` of `softmax`
 */
export const taking = <Given extends readonly unknown[], Options = OptionsIn<Given>, Operands = unknown>(
  declared: Parameters,
): Taking<Given, Options, Operands> => ({ declared });

/** The type of {@link moduleOf} and {@link propertiesOf}. `Kept` is where the module keeps its options. */
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
 * Derives the class of a module without trained parameters from an operation. Its property `options` has the options
 * that the operation is called with. Options that are tensors are buffers instead: properties, null if not given.
 *
 * @param name the name of the class, for errors and the table of parameters
 * @param operation the operation under its name: `{ mseLoss }`
 * @param taken the constructor arguments, if they differ from the options of the operation
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
  const all = parametersOf(ofOperation, call);
  const declared = taken?.declared ?? Object.fromEntries(Object.entries(all).filter(([, { by }]) => by !== "operand"));
  const operands = Object.keys(all).filter((option) => all[option].isRequired && !(option in declared));
  const names = Object.keys(declared);
  const properties = names.filter((property) => kept === "properties" || declared[property].kind === aTensor);
  const read = parameters(name, declared);

  class OfOperation extends Module<readonly unknown[]> {
    declare options: object | undefined;

    constructor(...values: unknown[]) {
      super();
      const given = Object.entries(read(values));
      const options = Object.fromEntries(given.filter(([key]) => !properties.includes(key)));
      if (kept === "options") this.options = Object.freeze(options);
      for (const [key, value] of given) if (properties.includes(key)) Reflect.set(this, key, value ?? null);
    }

    override forward(...values: readonly unknown[]): unknown {
      const surplus = surplusOf(`${name}.forward`, operands, values);
      if (surplus) throw surplus;
      const tensors = operands.map((_, at) => values[at]);
      return names.length > 0 ? call(...tensors, optionsOf(this)) : call(...tensors);
    }

    /** @internal */
    override details(): string {
      return listed(optionsOf(this));
    }
  }

  const optionsOf = (module: OfOperation): object => ({
    ...module.options,
    ...Object.fromEntries(properties.map((property) => [property, Reflect.get(module, property) ?? undefined])),
  });
  return called(name, OfOperation) as never;
}

/** @internal Sets the name of a class that a function makes, for errors. */
export function called<Class extends abstract new (...values: never) => object>(name: string, made: Class): Class {
  return Object.defineProperty(made, "name", { value: name });
}

/** @internal Formats the given options except functions and objects, for printing a module. */
export const listed = (options: object): string =>
  Object.entries(options)
    .filter(([, value]) => value !== undefined && (typeof value !== "object" || Array.isArray(value)))
    .filter(([, value]) => typeof value !== "function")
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? `[${value.join(", ")}]` : value}`)
    .join(", ");
