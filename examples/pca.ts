// Principal components of handwritten digits: the directions in which the images vary most, from the eigenvectors of
// their covariance. Writes a picture: the digits in the plane of the first two, and the first components as images.
//
//   bun examples/pca.ts [digits.png] [count]
import { cov, eye, linalg, type Tensor } from "../src/index.ts";
import { pixels, readDigits } from "./digits.ts";
import { dotsOf, draw, imageOf, numbersOf, type Scale, save } from "./picture.ts";

const [path = "digits.png", count = "3000"] = process.argv.slice(2);

const colors = [
  "#4e79a7",
  "#f28e2b",
  "#e15759",
  "#76b7b2",
  "#59a14f",
  "#edc948",
  "#b07aa1",
  "#ff9da7",
  "#9c755f",
  "#888888",
];
const shown = 10;

const { images, labels } = readDigits("train", Number(count));
const x = images.to("float32").div(255);
const centered = x.sub(x.mean(0));
// Rows of cov's operand are variables: here, pixels.
const { eigenvalues, eigenvectors } = linalg.eigh(cov(x.T));
// In ascending order: the last columns are the principal ones.
const components = eigenvectors.T.flip(0).narrow(0, 0, shown).contiguous();
const shares = Array.from(eigenvalues.div(eigenvalues.sum()).flip(0).dataSync() as Float32Array);
const scores = centered.matmul(components.T);

const [first, second] = shares as [number, number];
const total = shares.slice(0, shown).reduce((sum, share) => sum + share, 0);
const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
const off = linalg.vectorNorm(components.matmul(components.T).sub(eye(shown))).item();
console.log(`${count} digits of ${pixels} pixels; the components are orthonormal to ${off.toExponential(0)}`);
console.log(`variance along the first two: ${percent(first)} and ${percent(second)}; the first ten: ${percent(total)}`);
// The error of images reconstructed from only ten components.
const left = centered.sub(scores.matmul(components)).square().sum().div(centered.square().sum()).item();
console.log(`ten components leave ${percent(left)} of the variance`);

const columnOf = (values: Tensor, column: number): number[] => numbersOf(values.select(1, column));
const [across, up] = [columnOf(scores, 0), columnOf(scores, 1)];
const digits = Array.from(labels.dataSync(), Number);

const dots = (x: Scale, y: Scale): string =>
  colors
    .map((color, digit) => {
      const members = [...digits.keys()].filter((at) => digits[at] === digit);
      return dotsOf(
        members.map((at) => [x(across[at]), y(up[at])] as const),
        2.2,
        color,
      );
    })
    .join("\n");

const legend = colors
  .map((color, digit) => {
    const place = 466 + digit * 22;
    return `<circle cx="${place}" cy="24" r="4" fill="${color}"/><text x="${place + 7}" y="28">${digit}</text>`;
  })
  .join("");

/** A component as an image: white where it is 0, blue where it adds ink and red where it removes ink. */
function pictureOf(component: Tensor, left: number, top: number): string {
  const values = numbersOf(component);
  const most = Math.max(...values.map(Math.abs));
  const shades = values.map((value) => {
    const fade = Math.round(25.5 * Math.round(10 * (1 - Math.abs(value) / most)));
    return value > 0 ? `rgb(${fade},${fade},255)` : `rgb(255,${fade},${fade})`;
  });
  return `<g transform="translate(${left} ${top})">${imageOf(shades, 28, 3.4)}</g>`;
}

const pictures = Array.from({ length: 8 }, (_, at) => {
  const [left, top] = [692 + (at % 2) * 128, 48 + Math.floor(at / 2) * 118];
  const place = `x="${left + 48}" y="${top + 108}" text-anchor="middle" font-size="11"`;
  return `${pictureOf(components.select(0, at), left, top)}<text ${place}>${at + 1}: ${percent(shares[at])}</text>`;
}).join("\n");

const domainOf = (values: readonly number[]): [number, number] => [
  Math.min(...values) - 0.3,
  Math.max(...values) + 0.3,
];
const svg = draw(
  {
    title: "Digits by their first two principal components",
    x: { title: `first component (${percent(first)})`, domain: domainOf(across) },
    y: { title: `second component (${percent(second)})`, domain: domainOf(up) },
    right: 680,
    marks: dots,
  },
  legend + pictures,
);
await save(path, svg);
