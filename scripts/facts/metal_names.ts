/**
 * Writes `swift/Tests/Facts/metal-names.tsv`: the names of Apple's Metal in a public binding, which is generated from
 * the headers of Apple's SDK. The table has only facts: types, selectors, and the numbers of enumerations.
 *
 *     cargo init facts && cd facts && cargo add objc2-metal@0.3.2 && cargo fetch
 *     bun scripts/facts/metal_names.ts ~/.cargo/registry/src/<index>/objc2-metal-0.3.2
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../src/core/paths.ts";

const source = "objc2-metal 0.3.2, a crate (Zlib, Apache-2.0 or MIT), made from the SDK of macOS 26";

/** Returns rows: the type, the kind of name, and the name; for an enumeration case its number too. */
function rowsOf(text: string): string[] {
  const rows: string[] = [];
  let owner: string | undefined;
  let enumeration: string | undefined;
  for (const line of text.split("\n")) {
    const protocol = /pub unsafe trait (MTL\w+)/.exec(line)?.[1];
    const declared = /^\s*pub struct (MTL\w+)(\()?/.exec(line);
    const implemented = /^(?: {4})?impl (MTL\w+)(?:: NSU?Integer)? \{/.exec(line)?.[1];
    const selector = /#\[unsafe\(method\(([^)]*)\)\)\]/.exec(line)?.[1]?.replace(/_$/, "");
    const constant = /^\s*(?:pub )?const (\w+)(?:: Self)? = (?:Self\()?([^);]+)\)?;/.exec(line);
    if (protocol) rows.push(`${protocol}\tprotocol\t`);
    else if (declared) rows.push(`${declared[1]}\ttype\t`);
    if (protocol ?? implemented) [owner, enumeration] = [protocol ?? implemented, implemented];
    if (line === "}") [owner, enumeration] = [undefined, undefined];
    if (selector && owner) rows.push(`${owner}\tselector\t${selector}`);
    const value = constant && numberOf(constant[2]);
    if (enumeration && constant && value !== undefined) rows.push(`${enumeration}\tcase\t${constant[1]}\t${value}`);
  }
  return rows;
}

/** Parses `3`, `0x10`, `1<<4`; returns undefined for values computed from other names. */
function numberOf(text: string): bigint | undefined {
  const found = /^(-?(?:0x[\da-f]+|\d+))(?:\s*<<\s*(\d+))?$/i.exec(text.trim());
  return found ? BigInt(found[1]) << BigInt(found[2] ?? 0) : undefined;
}

const folder = join(process.argv[2] ?? ".", "src", "generated");
const files = readdirSync(folder).filter((name) => name !== "mod.rs");
const rows = new Set(files.flatMap((name) => rowsOf(readFileSync(join(folder, name), "utf8"))));
const head = `# Names of Apple's Metal: type, what it is, selector or case, number. Facts of ${source}.`;
await Bun.write(
  join(packageRoot, "swift", "Tests", "Facts", "metal-names.tsv"),
  `${[head, ...[...rows].sort()].join("\n")}\n`,
);
