/** Programs for a project that has the package, and the settings of its types. */
import packageFile from "../../package.json";

/** Learns 2·x + 1 from eight points by gradient descent, and prints the result and the backend. */
export const program = `
import { codepaths, noGrad, type Tensor, tensor } from "${packageFile.name}";

const x: Tensor<"float32"> = tensor([[-2], [-1.5], [-1], [-0.5], [0.5], [1], [1.5], [2]]);
const y = x.mul(2).add(1);
let [w, b]: [Tensor, Tensor] = [tensor([[0]]), tensor([0])];
for (let step = 0; step < 200; step++) {
  for (const parameter of [w, b]) parameter.requiresGrad = true;
  const loss = x.matmul(w).add(b).sub(y).square().mean();
  loss.backward();
  [w, b] = noGrad(() => [w.sub(w.grad!.mul(0.1)).detach(), b.sub(b.grad!.mul(0.1)).detach()]);
}
const learned: readonly number[] = [Number(w.item()), Number(b.item())];
const backends = [...new Set(codepaths().map(({ backend }) => backend))];
console.log(JSON.stringify({ learned, backends, sum: tensor([1, 2, 3]).sum().item() }));
`;

export const kernelProgram = `
import { metalKernel } from "${packageFile.name}";

const ahead = process.argv[2] === "past" ? 1 : 0;
const kernel = metalKernel({
  name: "odd",
  source: "#include <metal_stdlib>\\nkernel void odd(const device float *x, device float *y, " +
    "uint i [[thread_position_in_grid]]) { y[i] = 2 * x[i + " + ahead + "] + 1; }",
});
const { y } = kernel.run({ x: new Float32Array([1, 2, 3]), y: new Float32Array(3) }, { grid: 3 }).outputs;
console.log(y.join(), "metal");
`;

export type Names = Readonly<Record<string, unknown>>;

/** Returns the names of functions and classes by their paths; also used as text in a separate program. */
export function namesOf(library: Names): Record<string, string> {
  const rooms = ["data", "distributed", "io", "linalg", "nn", "optim", "text"].map((room) => [room, library[room]]);
  const found = [["", library], ...rooms].flatMap(([room, members]) =>
    Object.entries(members as Names).map(([key, value]) => [
      `${room}.${key}`,
      typeof value === "function" ? value.name : typeof value,
    ]),
  );
  return Object.fromEntries(found.sort());
}

/** Loads one file of the library and prints its names, errors and threads. */
export const oneFile = `
import * as library from "${packageFile.name}";
import { data, matmul, tensor } from "${packageFile.name}";

${namesOf.toString()}
const stack = (() => {
  try { return String(matmul(tensor([[1, 2]]), tensor([[1, 2]]))); } catch (error) { return error.stack; }
})();
const source = import.meta.resolve("${packageFile.name}").replace("file://", "").replace("index.js", "");
const paths = Object.keys(require.cache).filter((path) => path.startsWith(source));
const loaded = paths.map((path) => path.slice(source.length));
using items = await data.openWorkerDataset(new URL("./items.ts", import.meta.url), { workers: 1 });
const item = await items.get(1);
console.log(JSON.stringify({ names: namesOf(library), stack, loaded: loaded.sort(), item }));
`;

export const archive = `
import { io, tensor } from "${packageFile.name}";

await io.saveNpz("archive.npz", { x: tensor([1, 2]) });
console.log(io.loadNpz("archive.npz")["x"]!.toArray());
`;

/** Stricter than what `bun init` writes: declarations are checked, and no import may name a TypeScript file. */
export const tsconfig = {
  compilerOptions: {
    lib: ["ESNext"],
    target: "ESNext",
    module: "Preserve",
    moduleDetection: "force",
    types: ["bun"],
    moduleResolution: "bundler",
    verbatimModuleSyntax: true,
    noEmit: true,
    strict: true,
    skipLibCheck: false,
    erasableSyntaxOnly: true,
    exactOptionalPropertyTypes: true,
    noFallthroughCasesInSwitch: true,
    noUncheckedIndexedAccess: true,
    noImplicitOverride: true,
    noPropertyAccessFromIndexSignature: true,
    noUnusedLocals: true,
  },
};
