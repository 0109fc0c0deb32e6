/** Calls a function with a hostile value in each argument, one at a time. */
import { OrchardError } from "../../src/core/errors.ts";
import { signatures } from "../../src/core/parameters.ts";
import { usually } from "../support/repeats.ts";
import { CallersError, hostiles } from "./hostile.ts";
import type { Call } from "./upper.ts";

/** Runs a call to its end; returns what it threw or rejected with. */
export async function failureOf(call: () => unknown): Promise<unknown> {
  try {
    const result = call();
    if (result instanceof Promise) await result;
    return undefined;
  } catch (error) {
    return error ?? new Error("threw nothing");
  }
}

/** Yields the arguments of a call with one value replaced, for each argument and each option. */
function* mutations(values: readonly unknown[], hostile: () => unknown): Generator<readonly [string, unknown[]]> {
  for (const [at, value] of values.entries()) {
    yield [`argument ${at}`, values.with(at, hostile())];
    if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) continue;
    for (const name of Object.keys(value)) yield [`option ${name}`, values.with(at, { ...value, [name]: hostile() })];
  }
}

const isFunction = (value: unknown): boolean => typeof value === "function";

/**
 * Returns errors that a call threw, other than an `OrchardError` with a code, with the argument and the value. In a
 * usual run, places take turns: each gets every second value, and two neighboring ones get all.
 */
export async function untypedErrors(call: Call, values: () => readonly unknown[]): Promise<string[]> {
  const untyped: string[] = [];
  for (const [turn, { name, make }] of hostiles.entries()) {
    const places = [...mutations(values(), make)];
    const isTurn = (at: number) => places.length === 1 || (at + turn + places.length) % 2 === 0;
    for (const [place, given] of usually(places, (_, at) => isTurn(at))) {
      const error = await failureOf(() => call(...(given as never[])));
      if (error === undefined || error instanceof CallersError) continue;
      if (typeof make() === "function" && values().some(isFunction)) continue; // errors from a callback are passed on
      const isTyped = error instanceof OrchardError && error.message.length > 0;
      if (isTyped && !signatures.has(error.code)) continue; // a code must not be an operation's name
      untyped.push(`${place}, ${name}: ${String(error).slice(0, 200)}`);
    }
  }
  return untyped;
}
