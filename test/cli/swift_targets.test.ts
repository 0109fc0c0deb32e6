/** Which targets of a Swift package `orchard swift` leaves out. */
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { collect } from "../../src/cli/swift_module.ts";
import {
  absentImports,
  chooseTargets,
  mayLeaveOut,
  roots,
  type Target,
  withDependencies,
} from "../../src/cli/swift_targets.ts";
import { findSwift } from "../../src/cli/toolchain.ts";
import { testFolder } from "../support/folder.ts";

const folder = testFolder("swift-targets");

function target(name: string, type: string, source: string, needed: readonly string[] = []): Target {
  const path = `${type === "test" ? "Tests" : "Sources"}/${name}`;
  mkdirSync(dirname(folder.file(path, "File.swift")), { recursive: true });
  writeFileSync(folder.file(path, "File.swift"), source);
  return { name, type, path, sources: ["File.swift"], target_dependencies: needed };
}

test.each([
  ["import SwiftUI\nimport Metal\n@preconcurrency import AppKit\nstruct A: View {}\n", ["SwiftUI", "AppKit"]],
  ["import SwiftUI\n// of a View\nlet red = Color.red\n", []],
  ["public import struct CoreImage.CIColor\n", ["CoreImage"]],
  ["#if canImport(SwiftUI)\nimport SwiftUI\n#endif\nimport Foundation\n", []],
  ["#if os(macOS)\n#if DEBUG\n#endif\nimport AppKit\n#else\nimport UIKit\n#endif\nimport Vision\n", ["Vision"]],
  ['// import SwiftUI\nlet text = "import UIKit"\nimport SwiftUIHelpers\n', []],
])("a file with %j imports %j", (source, names) => {
  expect(absentImports(source)).toEqual(names);
});

test("targets that import frameworks for screens are left out, and those that depend on them", () => {
  const targets = [
    target("Kernels", "library", "import Metal\n"),
    target("Views", "library", "import SwiftUI\nimport Kernels\nextension View {}\n", ["Kernels"]),
    target("App", "executable", "import Views\n", ["Views", "Kernels"]),
    target("Tool", "executable", "import Kernels\n", ["Kernels"]),
    target("KernelTests", "test", "import XCTest\n", ["Kernels"]),
    target("Charts", "library", "import Foundation\n"),
    target("Plots", "library", "import Charts\n", ["Charts"]),
  ];
  const choice = chooseTargets(targets, folder.path);
  expect([...choice.reasons]).toEqual([
    ["Views", "imports SwiftUI"],
    ["App", "depends on Views"],
  ]);
  expect(choice.kept.map(({ name }) => name)).toEqual(["Kernels", "Tool", "KernelTests", "Charts", "Plots"]);
  expect(roots(choice)).toEqual(["Tool", "Plots"]);
  expect(mayLeaveOut(folder.path)).toBe(true);
  const tests = choice.kept.filter(({ type }) => type === "test");
  expect([...withDependencies(tests, targets)]).toEqual(["KernelTests", "Kernels"]);
  expect([...withDependencies([targets[2]!], targets)]).toEqual(["App", "Views", "Kernels"]);
});

test("a package without such imports is searched once", () => {
  mkdirSync(folder.file("plain/Sources"), { recursive: true });
  writeFileSync(folder.file("plain/Sources/A.swift"), "import Metal\n");
  expect(mayLeaveOut(folder.file("plain"))).toBe(false);
});

test.if(findSwift() !== undefined)("warnings of SwiftPM are not part of the description that it prints", async () => {
  const printed = await collect(findSwift()!, ["sh", "-c", "echo '{}'; echo warning >&2"], folder.path);
  expect(printed).toEqual({ status: 0, printed: "{}\n", output: "{}\nwarning\n" });
});
