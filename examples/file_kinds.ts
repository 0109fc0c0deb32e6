// Detects the kind of each file only from its bytes, with Google's magika, an ONNX model. Writes a picture.
//
//   bun examples/file_kinds.ts [file_kinds.png] [files…]
//
// Without arguments, it reads the files of this repository. The model is from the package magika on PyPI.
import { basename, join } from "node:path";
import { kindOf, loadKinds } from "./file_kind_model.ts";
import { height, save, width } from "./picture.ts";

const [path = "file_kinds.png", ...given] = process.argv.slice(2);
const root = join(import.meta.dir, "..");
const files =
  given.length > 0
    ? given
    : [
        "README.md",
        "package.json",
        "examples/speech.ts",
        "LICENSE",
        ".gitignore",

        "scripts/fixtures/onnx_cases.py",
        "docs/pictures/spirals.svg",
        "native/replay/replay.cpp",
        "swift/Package.swift",
        "node_modules/@expo-google-fonts/inter/400Regular/Inter_400Regular.ttf",
        "test/fixtures/onnx/node.bin",
        "node_modules/@resvg/resvg-wasm/index_bg.wasm",
      ].map((file) => join(root, file));

const kinds = await loadKinds();
const found: { file: string; kind: string; probability: number }[] = [];
for (const file of files) {
  if (!(await Bun.file(file).exists())) continue;
  const { kind, probability } = await kindOf(await Bun.file(file).bytes(), kinds);
  found.push({ file: basename(file), kind, probability });
  console.log(`${basename(file)}: ${kind} (${probability.toFixed(3)})`);
}

const [top, zero, longest] = [64, 400, 420];
const row = Math.min(36, (height - top - 20) / found.length);
const bars = found.map(({ file, kind, probability }, at) => {
  const y = top + at * row;
  const name = `<text x="${zero - 110}" y="${y + row / 2 + 5}" text-anchor="end">${Bun.escapeHTML(file)}</text>`;
  const label = `<text x="${zero - 10}" y="${y + row / 2 + 5}" text-anchor="end" font-weight="bold">${kind}</text>`;
  const bar = `<rect x="${zero}" y="${y + 4}" width="${(longest * probability).toFixed(1)}" height="${row - 8}"/>`;
  const number = `<text x="${zero + longest + 10}" y="${y + row / 2 + 5}">${probability.toFixed(2)}</text>`;
  return `${name}${label}${bar}${number}`;
});
const size = `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`;
await save(
  path,
  `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="Inter, sans-serif" font-size="14" fill="#334155">
<title>Kinds of files</title>
<rect width="${width}" height="${height}" fill="white"/>
<text x="24" y="36" font-size="16">What kind of file is this? The model reads at most 2,048 bytes of each</text>
${bars.join("\n").replaceAll("<rect ", '<rect fill="#59a14f" ')}
</svg>
`,
);
