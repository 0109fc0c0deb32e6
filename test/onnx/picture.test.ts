/** Pictures of drawn graphs: every node has a box, boxes do not overlap, and values flow down. */
import { expect, test } from "bun:test";
import { io } from "../../src/index.ts";
import { encodeModel, type WrittenNode } from "../../src/onnx/write/encode.ts";
import { toPng } from "../../src/train/curve.ts";
import { Random } from "../ops/samples.ts";
import { repeats } from "../support/repeats.ts";

const operators = ["Relu", "Add", "Mul", "Sigmoid", "Concat", "Identity"] as const;

/** A graph whose nodes use values of any earlier nodes. */
function drawNodes(random: Random, name: (at: number) => string): WrittenNode[] {
  const values = ["x"];
  return Array.from({ length: random.integer(1, 25) }, (_, at) => {
    const operator = operators[random.integer(0, operators.length - 1)];
    const count = operator === "Add" || operator === "Mul" ? 2 : operator === "Concat" ? random.integer(1, 3) : 1;
    const inputs = Array.from({ length: count }, () => values[random.integer(0, values.length - 1)]);
    values.push(name(at));
    const attributes: WrittenNode["attributes"] = operator === "Concat" ? { axis: 0 } : {};
    return { operator, inputs, outputs: [name(at)], attributes };
  });
}

async function load(nodes: readonly WrittenNode[]) {
  return io.loadOnnx(
    await encodeModel({
      nodes,
      constants: [],
      inputs: [{ name: "x", dtype: "float32", shape: [3] }],
      outputs: [{ name: nodes.at(-1)!.outputs[0], dtype: "float32", shape: ["n"] }],
    }),
  );
}

const numbersIn = (text: string): number[] => (text.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number);

test("boxes of drawn graphs show every node, do not overlap, and edges go down", async () => {
  const random = new Random(1);
  for (let count = 0; count < repeats({ usual: 25, all: 1000 }); count++) {
    const nodes = drawNodes(random, (at) => `v${at}`);
    const svg = await (await load(nodes)).toSvg();
    const titles = [...svg.matchAll(/<g><rect[^>]*\/><text[^>]*>([^<]*)</g)].map(([, title]) => title);
    expect(titles).toEqual(["x", ...nodes.map(({ operator }) => operator), nodes.at(-1)!.outputs[0]]);
    const boxes = [...svg.matchAll(/<g><rect x="([^"]*)" y="([^"]*)" width="([^"]*)" height="([^"]*)"/g)].map(
      (match) => match.slice(1).map(Number) as [x: number, y: number, width: number, height: number],
    );
    for (const [at, [x, y, width, height]] of boxes.entries())
      for (const [left, top, wide, high] of boxes.slice(at + 1))
        expect(x + width <= left || left + wide <= x || y + height <= top || top + high <= y).toBe(true);
    const paths = [...svg.matchAll(/<path d="([^"]*)"/g)].map(([, path]) => numbersIn(path));
    expect(paths.length).toBe(nodes.reduce((sum, { inputs }) => sum + new Set(inputs).size, 0) + 1);
    for (const path of paths) expect(path.at(-1)!).toBeGreaterThan(path[1]);
  }
});

test("names of any characters make a picture that renders", async () => {
  const nodes = drawNodes(new Random(2), (at) => `<a href="${at}">&\u0001\n😀\ud800${"long".repeat(20)}`);
  const png = await toPng(await (await load(nodes)).toSvg());
  expect([...png.slice(1, 4)]).toEqual([...Buffer.from("PNG")]);
});
