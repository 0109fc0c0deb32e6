/**
 * Runs chat templates within limits, since they are untrusted programs that come with models. `@huggingface/jinja`
 * evaluates them; this module counts the work, and checks sizes before values are created.
 */
import type { Environment, Interpreter, Template } from "@huggingface/jinja";

/** Maximum number of evaluated nodes; a value counts as one per 64 characters or 8 elements. */
const MOST_STEPS = 1_000_000;
/** Maximum nesting of nodes and macros. */
const MOST_DEPTH = 1000;
/** Maximum characters and elements of a value, including nested ones. */
const MOST_WEIGHT = 2 ** 24;
const MOST_INDENT = 64;
const INDENTING = new Set(["tojson", "indent"]);

type Program = Template["parsed"];
type Value = ReturnType<Interpreter["evaluate"]>;
type Node = Program["body"][number];

/** Members that the package's types declare private. */
interface Internals {
  run(program: Program): Value;
  evaluate(node: Node | undefined, environment: Environment): Value;
  applyFilter(operand: Value, filter: Node, environment: Environment): Value;
  evaluateArguments(nodes: readonly Node[], environment: Environment): [Value[], Map<string, Value>];
}

type Constructor = new (environment: Environment) => Internals;

const tooMuch = (what: string): Error => new Error(`expected a template that ${what}`);

/** Renders a template. @throws {Error} if the template raises an error or exceeds a limit. */
export function runTemplate(program: Program, variables: Readonly<Record<string, unknown>>): string {
  const jinja = require("@huggingface/jinja") as typeof import("@huggingface/jinja");
  bounded ??= boundedInterpreter(jinja.Interpreter as unknown as Constructor);
  const environment = new jinja.Environment();
  for (const [name, value] of Object.entries({ ...globals, ...variables })) environment.set(name, value);
  return String(new bounded(environment).run(program).value);
}

let bounded: Constructor | undefined;

function boundedInterpreter(Base: Constructor): Constructor {
  return class Bounded extends Base {
    private readonly work = new Work();

    override evaluate(node: Node | undefined, environment: Environment): Value {
      const value = this.work.within(() => super.evaluate(node, environment));
      this.work.add(node, value);
      return node?.type === "MemberExpression" ? this.work.guarded(node, value) : value;
    }

    override applyFilter(operand: Value, filter: Node, environment: Environment): Value {
      if (filter.type === "CallExpression") {
        const { args, callee } = filter as Node & { args: readonly Node[]; callee: { value: string } };
        const [values, named] = this.evaluateArguments(args, environment);
        const all = [...values, ...named.values()];
        if (INDENTING.has(callee.value) && all.some(({ value }) => (value as number) > MOST_INDENT))
          throw tooMuch(`indents by at most ${MOST_INDENT} characters`);
        this.work.checkProduct(operand, all);
      }
      return super.applyFilter(operand, filter, environment);
    }
  };
}

/** Counts the work of one run. Its methods throw if a limit is exceeded. */
class Work {
  private steps = 0;
  private depth = 0;
  private readonly weights = new WeakMap<object, number>();
  /** The last value of each node, to find the object of a method. */
  private readonly last = new WeakMap<object, Value>();

  /** Evaluates with a depth limit. The depth is restored after errors, which loops use for `continue`. */
  within<T>(body: () => T): T {
    if (++this.depth > MOST_DEPTH) throw tooMuch(`nests at most ${MOST_DEPTH} levels`);
    try {
      return body();
    } finally {
      this.depth--;
    }
  }

  /** Adds the evaluation of a node. */
  add(node: Node | undefined, value: Value): void {
    this.steps += 1 + costOf(value) + this.turnsOf(node);
    if (this.steps > MOST_STEPS) throw tooMuch(`uses at most ${MOST_STEPS} steps`);
    if (node) this.last.set(node, value);
    this.weigh(value);
  }

  /** Returns the number of iterations of a loop, even with an empty body. */
  private turnsOf(node: Node | undefined): number {
    if (node?.type !== "For") return 0;
    const { iterable } = node as Node & { iterable: Node & { lhs?: Node } };
    const { value } = this.last.get(iterable.lhs ?? iterable)!;
    return Array.isArray(value) ? value.length : (value as Map<string, Value>).size;
  }

  /** Checks calls of string methods, as `applyFilter` does for filters. */
  guarded(node: Node, method: Value): Value {
    const object = this.last.get((node as Node & { object: Node }).object);
    if (method.type !== "FunctionValue" || object?.type !== "StringValue") return method;
    const Method = method.constructor as new (call: unknown) => Value;
    const call = method.value as (values: Value[], environment: Environment) => Value;
    return new Method((values: Value[], environment: Environment) => {
      this.checkProduct(object, values);
      return call(values, environment);
    });
  }

  /** Checks operations whose result may grow with the product of two lengths: `replace`, `join`, `indent`. */
  checkProduct(operand: Value, values: readonly Value[]): void {
    for (const value of values)
      if (this.weigh(operand) * this.weigh(value) > 4 * MOST_WEIGHT)
        throw tooMuch(`makes texts of at most ${MOST_WEIGHT} characters`);
  }

  /** Returns the characters and elements of a value. Namespaces are mutable, so they can't be nested. */
  private weigh(value: Value): number {
    if (isText(value)) return checked((value.value as string).length + 1);
    const inner = innerOf(value);
    if (inner === undefined) return 1;
    const known = this.weights.get(value);
    if (known !== undefined) return known;
    let weight = 1;
    for (const part of inner) {
      if (typeof part === "string") weight += part.length;
      else if (part.type === "NamespaceValue") throw tooMuch("puts no namespace into another value");
      else weight += this.weigh(part);
      checked(weight);
    }
    if (value.type !== "NamespaceValue") this.weights.set(value, weight);
    return weight;
  }
}

function checked(weight: number): number {
  if (weight > MOST_WEIGHT) throw tooMuch(`makes values of at most ${MOST_WEIGHT} characters and elements`);
  return weight;
}

const isText = (value: Value): boolean => value.type === "StringValue";

/** Returns the elements of a list, or the keys and values of an object. */
function innerOf({ value }: Value): Iterable<Value | string> | undefined {
  if (Array.isArray(value)) return value;
  return value instanceof Map ? [...value].flat() : undefined;
}

function costOf({ value }: Value): number {
  if (typeof value === "string") return value.length >> 6;
  return Array.isArray(value) ? value.length >> 3 : 0;
}

/** Global functions of templates, as in the package. */
const globals = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
  raise_exception(message: unknown) {
    throw new Error(String(message));
  },
  range(start: number, stop?: number, step = 1): number[] {
    const [first, end] = stop === undefined ? [0, start] : [start, stop];
    const count = Math.max(0, Math.ceil((end - first) / step));
    if (!(count * 8 <= MOST_STEPS)) throw tooMuch(`has ranges of at most ${MOST_STEPS >> 3} numbers, and no step of 0`);
    return Array.from({ length: count }, (_, at) => first + at * step);
  },
  /** Python's `strftime`, as far as templates use it. */
  strftime_now(format: string): string {
    const now = new Date();
    const two = (value: number) => String(value).padStart(2, "0");
    const month = (length: "long" | "short") => new Intl.DateTimeFormat(undefined, { month: length }).format(now);
    const parts: Record<string, string> = {
      "%Y": String(now.getFullYear()),
      "%m": two(now.getMonth() + 1),
      "%d": two(now.getDate()),
      "%H": two(now.getHours()),
      "%M": two(now.getMinutes()),
      "%b": month("short"),
      "%B": month("long"),
      "%%": "%",
    };
    return format.replace(/%[YmdbBHM%]/g, (token) => parts[token]);
  },
};
