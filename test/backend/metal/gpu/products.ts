/**
 * Multiplies random matrices on the device that ORCHARD_METAL_DEVICE selects. Arguments: `[seed, count]`. Prints the
 * differences from the definition, and the codepaths, as JSON.
 */
import { codepaths } from "../../../../src/backend/codepaths.ts";
import { setBackend, setStrict } from "../../../../src/backend/policy.ts";
import { drawProduct, problemsOf } from "./drawn_products.ts";

const [seed = 1, count = 1] = Bun.argv.slice(2).map(Number);
setBackend("metal");
setStrict(true);
const differences = Array.from({ length: count }, (_, at) => problemsOf(drawProduct(seed * 1000 + at))).flat();
console.log(
  JSON.stringify({ differences, codepaths: codepaths().map(({ operation, reason }) => [operation, reason]) }),
);
