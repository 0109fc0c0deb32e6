/** Orchard's names on the pages for users of PyTorch and MLX exist. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../src/core/paths.ts";
import * as orchard from "../src/index.ts";

const layer = new orchard.nn.Linear(1, 1);
const scopes: Readonly<Record<string, object>> = {
  data: orchard.data,
  io: orchard.io,
  linalg: orchard.linalg,
  nn: orchard.nn,
  optim: orchard.optim,
  transforms: orchard.transforms,
  console,
  loss: orchard.tensor([1]),
  parameter: orchard.tensor([1]),
  x: orchard.tensor([1]),
  model: layer,
  optimizer: new orchard.optim.SGD(layer.parameters(), { lr: 1 }),
};

/** The code in the second column of the tables. */
const names = (page: string): string[] =>
  [...readFileSync(join(packageRoot, page), "utf8").matchAll(/^\| .* \| (.*) \|$/gm)]
    .flatMap(([, cell]) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code))
    .filter((code) => !/^(?:ORCHARD_|\{|Orchard$)/.test(code));

function isThere(code: string): boolean {
  const [, scope, name] = /^(?:const \{.*\} = |await |new )?(?:(\w+)\.)?(\w+)/.exec(code) ?? [];
  const owner = scope === undefined ? orchard : scopes[scope];
  // A name without a scope is an export, or a method of the row's subject.
  const owners = scope === undefined ? [orchard, ...Object.values(scopes)] : [owner];
  return owners.some((one) => one !== undefined && name in one);
}

test.each([
  ["docs/from-pytorch.md", 45],
  ["docs/from-mlx.md", 40],
  ["docs/from-tensorflow-js.md", 45],
  ["docs/indexing.md", 25],
])("each name in %s exists", (page, count) => {
  const all = names(page);
  expect(all.length).toBeGreaterThan(count);
  expect(all.filter((code) => !isThere(code))).toEqual([]);
});
