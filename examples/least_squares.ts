// Least squares with a design matrix whose columns are linearly dependent: an intercept and an indicator for each
// group. The solution is not unique; `lstsq` finds the rank, and returns the shortest solution. The fitted values are
// the same for every solution.
//
//   bun examples/least_squares.ts [fit.png]
import { cat, linalg, manualSeed, oneHot, ones, randint, randn, type Tensor, tensor, uniform } from "../src/index.ts";
import { draw, type Scale, save } from "./picture.ts";

const [path = "fit.png"] = process.argv.slice(2);
const [count, groups, noise] = [120, 3, 0.2];
const slope = 0.8;
const levels = [1, 2.5, 3];

manualSeed(3);
const group = randint(0, groups, [count], { dtype: "int64" });
const x = uniform(0, 4, [count, 1], { dtype: "float64" });
const indicators = oneHot(group, { numClasses: groups }).to("float64");
const level = indicators.matmul(tensor(levels, { dtype: "float64" })).unsqueeze(1);
const y = level.add(x.mul(slope)).add(randn([count, 1], { dtype: "float64" }).mul(noise));

// The indicators add up to the intercept: five columns of rank four.
const design = cat([ones([count, 1], { dtype: "float64" }), indicators, x], 1);
const names = ["intercept", "group 0", "group 1", "group 2", "slope"];

const { solution, rank } = linalg.lstsq(design, y);
const pseudo = linalg.pinv(design).matmul(y);
/** Another solution: a number is added to the intercept and subtracted from every group. */
const other = solution.add(tensor([[1], [-1], [-1], [-1], [0]], { dtype: "float64" }));

const lengthOf = (v: Tensor): number => Number(linalg.vectorNorm(v).item());
const residualOf = (coefficients: Tensor): number => lengthOf(design.matmul(coefficients).sub(y));
const listOf = (v: Tensor): number[] => Array.from(v.dataSync() as Float64Array);

console.log(`a design of ${count} rows and ${design.shape[1]} columns, of rank ${rank.item()}`);
console.log(`its condition number, ${linalg.cond(design).item().toExponential(0)}, says that inv(AᵀA) would be noise`);
console.log(`lstsq and pinv agree to ${lengthOf(solution.sub(pseudo)).toExponential(0)}`);
for (const [title, coefficients] of [
  ["shortest solution", solution],
  ["another solution", other],
] as const)
  console.log(
    `${title}: length ${lengthOf(coefficients).toFixed(3)}, residual ${residualOf(coefficients).toFixed(6)}, ` +
      listOf(coefficients)
        .map((value, at) => `${names[at]} ${value.toFixed(2)}`)
        .join(", "),
  );
const found = listOf(solution);
const [intercept, learned] = [found[0], found[4]];
const lines = levels.map((_, at) => intercept + found[1 + at]);
const told = lines.map((value, at) => `${value.toFixed(2)} (${levels[at]})`).join(", ");
console.log(`what does not depend on the solution: levels ${told}; slope ${learned.toFixed(2)} (${slope})`);

const colors = ["#4e79a7", "#f28e2b", "#59a14f"];
function marks(across: Scale, up: Scale): string {
  const [xs, ys, members] = [listOf(x), listOf(y), Array.from(group.dataSync(), Number)];
  const dots = xs.map((value, at) => {
    const place = `cx="${across(value).toFixed(1)}" cy="${up(ys[at]).toFixed(1)}"`;
    return `<circle ${place} r="3.5" fill="${colors[members[at]]}" fill-opacity="0.7"/>`;
  });
  const fits = lines.map((start, at) => {
    const [from, to] = [up(start).toFixed(1), up(start + 4 * learned).toFixed(1)];
    return `<path d="M${across(0)},${from}L${across(4)},${to}" stroke="${colors[at]}" stroke-width="2.5"/>`;
  });
  return [...dots, ...fits].join("\n");
}

const svg = draw({
  title: "Three groups, one slope: a design of five columns and rank four",
  x: { title: "x", domain: [0, 4] },
  y: { title: "y", domain: [0, 7] },
  marks,
});
await save(path, svg);
