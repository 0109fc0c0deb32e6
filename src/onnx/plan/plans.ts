/** The plans of a model, by shapes of inputs. */
import { getBackend } from "../../backend/policy.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { boundCache } from "../../tensor/usage.ts";
import type { Value } from "../call.ts";
import type { Graph } from "../graph.ts";
import type { Plan } from "./plan.ts";
import { planFor, planKey } from "./trace.ts";

/** Maximum number of plans; the least recently used one is dropped. */
const MOST_PLANS = 16;
/** Maximum number of plans that keep a native program, with memory for its intermediate results. */
const MOST_PROGRAMS = 4;
/** The number of keys to remember. A plan is made when a key occurs for the second time. */
const MOST_KEYS = 256;

/**
 * The number of runs, from the first on, that keep the cache of free blocks small. Later runs may also have many
 * different shapes, but a larger cache makes them faster.
 */
const BOUNDED_RUNS = 2;

export class Plans {
  /** The plans in order of last use; `null` for inputs that have no plan. */
  readonly #plans = new Map<string, Plan | null>();
  readonly #seen = new Set<string>();
  #runs = 0;

  /** Computes a graph's outputs: the first time for a shape node by node, later by a plan. */
  run(graph: Graph, given: readonly Value[], weights: ReadonlyMap<string, Tensor>): readonly Value[] {
    const plan = this.#planOf(graph, given, weights);
    if (plan) return plan.run(given);
    return graph.runOnce(given, weights, this.#runs++ < BOUNDED_RUNS ? boundCache : undefined);
  }

  #planOf(graph: Graph, given: readonly Value[], weights: ReadonlyMap<string, Tensor>): Plan | null {
    const shapes = planKey(given);
    if (shapes === undefined) return null;
    const key = `${getBackend()} ${shapes}`;
    const existing = this.#plans.get(key);
    if (existing === null) return null;
    if (existing?.isCurrent(weights)) {
      this.#plans.delete(key);
      this.#plans.set(key, existing);
      return existing;
    }
    if (!this.#seen.has(key)) {
      if (this.#seen.size >= MOST_KEYS) this.#seen.clear();
      this.#seen.add(key);
      return null;
    }
    const made = planFor(graph, given, weights) ?? null;
    this.#plans.delete(key);
    this.#plans.set(key, made);
    for (const plan of [...this.#plans.values()].slice(0, -MOST_PROGRAMS)) plan?.freeProgram();
    if (this.#plans.size > MOST_PLANS) this.#plans.delete(this.#plans.keys().next().value!);
    return made;
  }
}
