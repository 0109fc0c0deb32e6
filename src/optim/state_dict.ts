/** An optimizer's state as a plain record, and back. */
import { ArgumentError } from "../core/errors.ts";
import { clone } from "../ops/copy/copy.ts";
import { sameShape } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import type { LearningRate, ParameterGroup } from "./groups.ts";
import { type Optimizer, type Slot, stateDType } from "./optimizer.ts";

/** What JSON holds. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** The options of a group, and the names of its parameters. */
export interface GroupState {
  readonly options: Readonly<Record<string, Json>>;
  readonly parameters: readonly string[];
}

/** `tensors` can be saved as safetensors, everything else as JSON. */
export interface OptimizerStateDict {
  /** The optimizer's class. */
  readonly optimizer: string;
  readonly groups: readonly GroupState[];
  /** Steps that each parameter took part in, by its name. */
  readonly steps: Readonly<Record<string, number>>;
  /** Such as `"0.firstMoment"`: the parameter's name (by default its number) and the tensor's. */
  readonly tensors: Readonly<Record<string, Tensor>>;
}

export function saveState<Options extends LearningRate>({
  name,
  groups,
  slots,
}: Optimizer<Options>): OptimizerStateDict {
  const namesIn = (group: ParameterGroup<Options>) =>
    slots.filter((slot) => slot.group === group).map((slot) => slot.name);
  return {
    optimizer: name,
    groups: groups.map((group) => ({ options: optionsOf(group), parameters: namesIn(group) })),
    steps: Object.fromEntries(slots.map((slot) => [slot.name, slot.steps])),
    tensors: Object.fromEntries(
      slots.flatMap((slot) => Object.entries(slot.state).map(([key, tensor]) => [`${slot.name}.${key}`, tensor])),
    ),
  };
}

function optionsOf<Options extends LearningRate>(group: ParameterGroup<Options>): Record<string, Json> {
  const { parameters: _, ...options } = group;
  return structuredClone(options) as unknown as Record<string, Json>;
}

export function loadState<Options extends LearningRate>(optimizer: Optimizer<Options>, dict: OptimizerStateDict): void {
  const differences = differencesOf(optimizer, dict);
  if (differences.length > 0)
    throw new ArgumentError(
      optimizer.name,
      "stateDiffers",
      `the state is not that of this optimizer:\n${differences.map((line) => `  ${line}`).join("\n")}`,
    );
  for (const [index, group] of optimizer.groups.entries())
    Object.assign(group, structuredClone(dict.groups[index]!.options));
  for (const slot of optimizer.slots) loadSlot(optimizer, slot, dict);
}

function loadSlot<Options extends LearningRate>(
  optimizer: Optimizer<Options>,
  slot: Slot<Options>,
  { steps, tensors }: OptimizerStateDict,
): void {
  const old = Object.values(slot.state);
  slot.steps = steps[slot.name]!;
  const names = slot.steps === 0 ? [] : optimizer.stateNames(slot.group, slot.parameter);
  slot.state = Object.fromEntries(names.map((key) => [key, keep(clone(tensors[`${slot.name}.${key}`]!))]));
  for (const tensor of old) tensor.dispose(); // last: they may be what is loaded
}

/** What keeps a record from being the state of an optimizer, one line each. */
function differencesOf<Options extends LearningRate>(
  optimizer: Optimizer<Options>,
  dict: OptimizerStateDict,
): string[] {
  if (dict.optimizer !== optimizer.name) return [`it is the state of ${dict.optimizer}, wanted is ${optimizer.name}`];
  const own = saveState(optimizer);
  if (dict.groups.length !== own.groups.length)
    return [`it has ${dict.groups.length} groups, wanted are ${own.groups.length}`];
  const groups = own.groups.flatMap((group, index) => groupDifferences(index, group, dict.groups[index]!));
  if (groups.length > 0) return groups;
  const wanted = new Set<string>();
  const slots = optimizer.slots.flatMap((slot) => slotDifferences(optimizer, slot, dict, wanted));
  const extra = Object.keys(dict.tensors).filter((name) => !wanted.has(name));
  return [...slots, ...extra.map((name) => `unexpected tensor ${name}`)];
}

function groupDifferences(index: number, own: GroupState, { options, parameters }: GroupState): string[] {
  const lines = (what: string, wanted: readonly string[], came: readonly string[]) => [
    ...wanted.filter((name) => !came.includes(name)).map((name) => `group ${index}: missing ${what} ${name}`),
    ...came.filter((name) => !wanted.includes(name)).map((name) => `group ${index}: unexpected ${what} ${name}`),
  ];
  return [
    ...lines("option", Object.keys(own.options), Object.keys(options)),
    ...lines("parameter", own.parameters, parameters),
  ];
}

function slotDifferences<Options extends LearningRate>(
  optimizer: Optimizer<Options>,
  { name, parameter, group }: Slot<Options>,
  { steps, tensors, groups }: OptimizerStateDict,
  wanted: Set<string>,
): string[] {
  const taken = steps[name];
  if (taken === undefined || !Number.isSafeInteger(taken) || taken < 0)
    return [`parameter ${name}: a number of steps is wanted, ${String(taken)} came`];
  if (taken === 0) return [];
  const options = groups[optimizer.groups.indexOf(group)]!.options as unknown as ParameterGroup<Options>;
  const dtype = stateDType(parameter);
  return optimizer.stateNames(options, parameter).flatMap((key) => {
    const full = `${name}.${key}`;
    wanted.add(full);
    const tensor = tensors[full];
    if (!(tensor instanceof Tensor)) return [`missing tensor ${full}`];
    const fits = tensor.dtype === dtype && sameShape(tensor.shape, parameter.shape);
    return fits ? [] : [`tensor ${full} is ${tensor.describe()}, wanted is ${dtype}[${parameter.shape.join(", ")}]`];
  });
}
