/** `orchard swift`: a compute program as written for macOS, compiled and run here. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../../src/core/paths.ts";
import { withoutAnnouncement } from "../../support/child.ts";
import { testFolder } from "../../support/folder.ts";
import { bunWords } from "../../support/program.ts";

const { path: folder } = testFolder("swift");

function runProgram(source: string, environment: Record<string, string> = {}, ...words: string[]) {
  const path = join(folder, "program.swift");
  writeFileSync(path, source);
  const { stdout, stderr, exitCode } = Bun.spawnSync([...bunWords, "src/cli/orchard.ts", "swift", path, ...words], {
    cwd: packageRoot,
    env: { ...process.env, ...environment },
  });
  return { out: stdout.toString(), err: withoutAnnouncement(stderr.toString()), exitCode };
}

const program = `
import Foundation
import Metal

let source = """
    #include <metal_stdlib>
    using namespace metal;
    kernel void add(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) { y[i] += x[i]; }
    """
guard let device = MTLCreateSystemDefaultDevice() ?? MTLCopyAllDevices().first else { fatalError("no device") }
let function = try device.makeLibrary(source: source, options: nil).makeFunction(name: "add")!
let pipeline = try device.makeComputePipelineState(function: function)
let addend = Float(CommandLine.arguments[1])!
let x = device.makeBuffer(bytes: [addend, addend], length: 8)!
let y = device.makeBuffer(bytes: [Float(1), 2], length: 8)!
let buffer = device.makeCommandQueue()!.makeCommandBuffer()!
let encoder = buffer.makeComputeCommandEncoder()!
encoder.setComputePipelineState(pipeline)
encoder.setBuffer(x, offset: 0, index: 0)
encoder.setBuffer(y, offset: 0, index: 1)
let grid = MTLSize(width: 2, height: 1, depth: 1)
encoder.dispatchThreads(grid, threadsPerThreadgroup: grid)
encoder.endEncoding()
buffer.commit()
buffer.waitUntilCompleted()
let sums = UnsafeBufferPointer(start: y.contents().assumingMemoryBound(to: Float.self), count: 2)
print(sums.map { String(format: "%.2f", $0) }.joined(separator: " "))
exit(3)
`;

test("a program receives the arguments after it, and its exit status is the command's", () => {
  const { out, err, exitCode } = runProgram(program, {}, "0.25");
  expect([out, err, exitCode]).toEqual(["1.25 2.25\n", "", 3]);
});

test("a program that does not compile prints the compiler's errors", () => {
  const { err, exitCode } = runProgram('import Metal\nlet n: Int = "x"\n');
  expect(err).toMatch(/program\.swift:2:14: error: cannot convert value of type 'String' to specified type 'Int'/);
  expect(exitCode).toBe(1);
});

test("without Swift, one line says how to install it", () => {
  const { err, exitCode } = runProgram(program, { PATH: folder, HOME: folder, XDG_CACHE_HOME: folder });
  expect([err, exitCode]).toEqual(["There is no Swift 6.0 or newer on this machine: bun run setup\n", 1]);
});
