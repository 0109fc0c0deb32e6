/** Adds tensors on the device that ORCHARD_METAL_DEVICE selects, then multiplies the sum. Prints both as JSON. */
import { setBackend, tensor } from "../../../../src/index.ts";

setBackend("metal");
const sum = tensor([1, 2, 3]).add(tensor([4, 5, 6]));
const first = Array.from(await sum.data());
console.log(JSON.stringify({ sum: first, later: Array.from(await sum.mul(4).data()) }));
