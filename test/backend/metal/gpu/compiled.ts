/**
 * Compiles and loads kernels of the given files for the GPU that ORCHARD_METAL_DEVICE selects: `[count, seed,
 * ...files]`. Draws `count` functions and the values of their function constants; 0: every function. Prints the number
 * of modules.
 */
import fc from "fast-check";
import { createLibrary, finishPipeline } from "../../../../src/backend/metal/pipeline.ts";
import { dataTypeOf, encodeScalar } from "../../../../src/backend/metal/scalars.ts";
import { readText } from "../../../../src/backend/metal/status.ts";
import { includedTexts } from "../../../../src/cli/kernels.ts";
import { metalContext } from "../../../../src/index.ts";

interface FunctionInfo {
  readonly name: string;
  readonly constants: readonly { readonly name: string; readonly index: number; readonly type: number }[];
}

const [count = 0, seed = 0] = Bun.argv.slice(2, 4).map(Number);
const context = metalContext();
const boolean = 53; // MTLDataType

/** The libraries with their functions, as [library, function]. */
const functions = Bun.argv.slice(4).flatMap((path) => {
  const texts = includedTexts(path);
  const library = createLibrary(context, "compile", { source: texts.source, headers: texts.headers });
  const json = readText(context.native, "compile", (buffer, capacity, length) =>
    context.native.orchard_library_functions(library, buffer, capacity, length),
  );
  return (JSON.parse(json) as FunctionInfo[]).map((info) => ({ library, info }));
});

const chosen = count === 0 ? functions : fc.sample(fc.constantFrom(...functions), { numRuns: count, seed });
const draws = fc.sample(fc.infiniteStream(fc.nat({ max: 1 })), { numRuns: 1, seed })[0];
for (const { library, info } of chosen) {
  const constants = info.constants.map(({ name, index, type }) => {
    const value = draws.next().value as number;
    const bytes = encodeScalar(dataTypeOf(type)!, type === boolean ? value === 1 : value);
    if (typeof bytes === "string") throw new Error(`${info.name}, ${name}: ${bytes}`);
    return { name, index, type, value: bytes };
  });
  finishPipeline(context, info.name, library, info.name, constants);
}
console.log(chosen.length);
