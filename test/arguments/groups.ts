/** The groups of functions that the fuzz of arguments calls. A new group is one more entry of {@link groups}. */
import { backward, detach, grad, valueAndGrad } from "../../src/ops/gradient/backward.ts";
import { gradcheck } from "../../src/ops/gradient/gradcheck.ts";
import * as operations from "../../src/ops/index.ts";
import { methods } from "../../src/ops/methods.ts";
import { Tensor } from "../../src/tensor/tensor.ts";
import { calls, leafOf, type OperationName, operandsOnDemand, operationNames } from "../ops/calls.ts";
import { type Call, type Subject, signatureOf } from "./fuzz.ts";
import { calls as upperCalls } from "./upper.ts";

export interface Group {
  readonly name: string;
  /** The minimum number of functions. */
  readonly atLeast: number;
  /** The functions with their rows of the table, and the names of those that have no row or no valid call. */
  readonly collect: () => { readonly subjects: readonly Subject[]; readonly missing: readonly string[] };
  /** Names of functions that belong to no group, because other tests call them. */
  readonly elsewhere?: readonly string[];
}

type Functions = Readonly<Record<string, unknown>>;
type Rights = Readonly<Partial<Record<string, () => readonly unknown[]>>>;

/** A group of functions, each with a valid call. */
function collected(functions: Functions, rights: Rights): ReturnType<Group["collect"]> {
  const subjects: Subject[] = [];
  const missing: string[] = [];
  for (const [name, call] of Object.entries(functions)) {
    if (typeof call !== "function") continue;
    const [signature, right] = [signatureOf(name, functions), rights[name]];
    if (signature === undefined || right === undefined) missing.push(name);
    else subjects.push({ name, call: call as Call, signature, right });
  }
  return { subjects, missing };
}

const rightCall = (name: OperationName) => (): readonly unknown[] => calls[name](operandsOnDemand(4));
const ofOperations: Rights = {
  ...Object.fromEntries(operationNames.map((name) => [name, rightCall(name)])),
  gather: () => [operations.ones([4, 4]), 1, operations.ones([4, 4], { dtype: "int64" })],
  indexSelect: () => [operations.ones([4, 4]), 1, operations.ones([4], { dtype: "int64" })],
  indexAdd: () => [operations.ones([4, 4]), 1, operations.ones([4], { dtype: "int64" }), operations.ones([4, 4])],
  scatterAdd: () => [operations.ones([4, 4]), 1, operations.ones([4, 4], { dtype: "int64" }), operations.ones([4, 4])],
};

const leaf = () => leafOf(operations.ones([2]));
const scalar = (x: Tensor) => operations.sum(operations.mul(x, x));
const gradients = { backward, detach, grad, valueAndGrad, gradcheck };
const ofGradients: Rights = {
  backward: () => [scalar(leaf())],
  detach: () => [operations.ones([2])],
  grad() {
    const x = leaf();
    return [scalar(x), [x]];
  },
  valueAndGrad: () => [scalar],
  gradcheck: () => [scalar, [operations.ones([2], { dtype: "float64", requiresGrad: true })]],
};

const operationsGroup: Group = {
  name: "operations",
  atLeast: 170,
  collect: () => collected(operations, ofOperations),
};

/** The same functions as methods: `this` is the tensor, and the other arguments are fuzzed. */
const asMethods: Functions = Object.fromEntries(
  Object.keys(methods)
    .filter((name) => name !== "to" && name !== "unfold" && name !== "detach" && name !== "backward")
    .map((name) => [name, (x: unknown, ...values: readonly unknown[]) => callMethod(x, name, values)]),
);

function callMethod(x: unknown, name: string, values: readonly unknown[]): unknown {
  if (!Tensor.isTensor(x)) return undefined; // only tensors have the method
  return (x as unknown as Record<string, Call>)[name](...values);
}

const methodsGroup: Group = {
  name: "methods",
  atLeast: 150,
  collect() {
    const { subjects, missing } = collected(asMethods, ofOperations);
    const names = new Set(missing);
    const found = Object.keys(asMethods).flatMap((name): Subject[] => {
      const signature = signatureOf(name, operations);
      const right = ofOperations[name];
      return signature && right && names.delete(name)
        ? [{ name: `x.${name}`, call: asMethods[name] as Call, signature, right }]
        : [];
    });
    return { subjects: [...subjects, ...found], missing: [...names] };
  },
};

const gradientsGroup: Group = {
  name: "gradients",
  atLeast: 4,
  collect: () => collected(gradients, ofGradients),
};

/** Functions that `metal.test.ts` calls. */
const metalCalls = [
  "metalKernel",
  "MetalKernel.run",
  "MetalKernel.apply",
  "MetalContext",
  ...["deviceInfo", "wait", "trim", "injectFault", "labeled", "capture"].map((method) => `MetalContext.${method}`),
  "configure",
  "report",
  "kernelOverride",
  "output",
  ...["", ".read", ".write", ".fill", ".copyTo", ".moveTo"].map((method) => `DeviceBuffer${method}`),
];

/** Functions above the operations; `upper.test.ts` calls them. */
const upperGroup: Pick<Group, "elsewhere"> = {
  elsewhere: [...Object.keys(upperCalls), ...metalCalls, "setState", "loadStateDict", "LanguageModel.forward"],
};

export const groups: readonly Group[] = [{ ...operationsGroup, ...upperGroup }, methodsGroup, gradientsGroup];
