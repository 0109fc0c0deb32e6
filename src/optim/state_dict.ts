/** Converts an optimizer's state to a plain record and back. */
import { describeValue } from "../core/describe.ts";
import { ArgumentError } from "../core/errors.ts";
import { listed } from "../core/kinds.ts";
import type { Json } from "../io/json.ts";
import { clone } from "../ops/copy/copy.ts";
import { type Shape, sameShape } from "../tensor/shape.ts";
import { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import type { LearningRate, ParameterGroup } from "./groups.ts";
import { type Slot, stateDType } from "./slot.ts";

/** The options of a group, and the names of its parameters. */
export interface GroupState {
  readonly options: Readonly<Record<string, Json>>;
  readonly parameters: readonly string[];
}

/** The result of {@link Optimizer.stateDict}. `tensors` can be saved as safetensors, everything else as JSON. */
export interface OptimizerStateDict {
  /** The name of the optimizer's class. */
  readonly optimizer: string;
  readonly groups: readonly GroupState[];
  /** The number of steps that updated each parameter, by parameter name. */
  readonly steps: Readonly<Record<string, number>>;
  /** State tensors, keyed by parameter name (its index by default) and state name: `"0.firstMoment"`. */
  readonly tensors: Readonly<Record<string, Tensor>>;
}

/** The parts of an optimizer that are saved and loaded. */
interface Owner<Options> {
  readonly name: string;
  readonly groups: readonly ParameterGroup<Options>[];
  readonly slots: readonly Slot<Options>[];
  stateNames(group: ParameterGroup<Options>, parameter: Tensor): readonly string[];
  stateShape(name: string, parameter: Tensor): Shape;
}

export function saveState<Options extends LearningRate>({ name, groups, slots }: Owner<Options>): OptimizerStateDict {
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

export function loadState<Options extends LearningRate>(optimizer: Owner<Options>, dict: OptimizerStateDict): void {
  const differences = differencesOf(optimizer, dict);
  if (differences.length > 0)
    throw new ArgumentError(
      optimizer.name,
      "stateDiffers",
      `the state does not match this optimizer:\n${differences.map((line) => `  ${line}`).join("\n")}`,
    );
  for (const [index, group] of optimizer.groups.entries())
    Object.assign(group, structuredClone(dict.groups[index].options));
  for (const slot of optimizer.slots) loadSlot(optimizer, slot, dict);
}

function loadSlot<Options extends LearningRate>(
  optimizer: Owner<Options>,
  slot: Slot<Options>,
  { steps, tensors }: OptimizerStateDict,
): void {
  const old = Object.values(slot.state);
  slot.steps = steps[slot.name];
  const names = slot.steps === 0 ? [] : optimizer.stateNames(slot.group, slot.parameter);
  slot.state = Object.fromEntries(names.map((key) => [key, keep(clone(tensors[`${slot.name}.${key}`]))]));
  for (const tensor of old) tensor.dispose(); // disposed of last, because they may be the tensors being loaded
}

/** The differences between a state dict and the state that an optimizer expects, one line each. */
function differencesOf<Options extends LearningRate>(optimizer: Owner<Options>, dict: OptimizerStateDict): string[] {
  if (!isState(dict)) return [`expected a state from stateDict(), got ${describeValue(dict)}`];
  if (dict.optimizer !== optimizer.name)
    return [`expected the state of ${optimizer.name}, got ${describeValue(dict.optimizer)}`];
  const current = saveState(optimizer);
  if (dict.groups.length !== current.groups.length)
    return [`expected ${current.groups.length} groups, got ${dict.groups.length}`];
  const groups = current.groups.flatMap((group, index) => groupDifferences(index, group, dict.groups[index]));
  if (groups.length > 0) return groups;
  const expected = new Set<string>();
  const slots = optimizer.slots.flatMap((slot) => slotDifferences(optimizer, slot, dict, expected));
  const extra = Object.keys(dict.tensors).filter((name) => !expected.has(name));
  return [...slots, ...extra.map((name) => `unexpected tensor ${name}`)];
}

function isState(dict: unknown): dict is OptimizerStateDict {
  const { groups, steps, tensors } = (dict ?? {}) as Partial<OptimizerStateDict>;
  const areGroups = listed(groups)?.every((group) => {
    const { options, parameters } = (group ?? {}) as Partial<GroupState>;
    return isObject(options) && isNameList(parameters);
  });
  return areGroups === true && isObject(steps) && isObject(tensors);
}

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null;
const isNameList = (value: unknown): boolean => listed(value)?.every((name) => typeof name === "string") === true;

function groupDifferences(index: number, current: GroupState, { options, parameters }: GroupState): string[] {
  const lines = (what: string, expected: readonly string[], got: readonly string[]) => [
    ...expected.filter((name) => !got.includes(name)).map((name) => `group ${index}: missing ${what} ${name}`),
    ...got.filter((name) => !expected.includes(name)).map((name) => `group ${index}: unexpected ${what} ${name}`),
  ];
  return [
    ...lines("option", Object.keys(current.options), Object.keys(options)),
    ...lines("parameter", current.parameters, parameters),
  ];
}

function slotDifferences<Options extends LearningRate>(
  optimizer: Owner<Options>,
  { name, parameter, group }: Slot<Options>,
  { steps, tensors, groups }: OptimizerStateDict,
  expected: Set<string>,
): string[] {
  const taken = steps[name];
  if (taken === undefined || !Number.isSafeInteger(taken) || taken < 0)
    return [`parameter ${name}: expected a number of steps, got ${describeValue(taken)}`];
  if (taken === 0) return [];
  const options = groups[optimizer.groups.indexOf(group)].options as unknown as ParameterGroup<Options>;
  const dtype = stateDType(parameter);
  return optimizer.stateNames(options, parameter).flatMap((key) => {
    const full = `${name}.${key}`;
    expected.add(full);
    const tensor = tensors[full];
    if (!Tensor.isTensor(tensor)) return [`missing tensor ${full}`];
    const shape = optimizer.stateShape(key, parameter);
    if (tensor.dtype === dtype && sameShape(tensor.shape, shape)) return [];
    return [`tensor ${full}: expected ${dtype}[${shape.join(", ")}], got ${tensor.describe()}`];
  });
}
