/** `orchard onnx`: the command line. */
import { type Command, Option } from "commander";
import { backendNames } from "../backend/names.ts";
import type { OnnxFlags } from "../onnx/command.ts";
import { parseNumber } from "./number.ts";

/** Parses `batch=4` and adds it to the earlier ones. */
function size(text: string, before: Readonly<Record<string, number>> = {}): Record<string, number> {
  const [name = "", value = ""] = text.split("=");
  return { ...before, [name]: parseNumber(value) };
}

export function addOnnxCommand(program: Command): void {
  program
    .command("onnx")
    .description("print the inputs, outputs, operators and weights of an ONNX file, or its unsupported parts")
    .argument("<file.onnx>", "the model")
    .option("--run", "run the model with random inputs, and print its results' shapes and the time")
    .option("--size <name=number>", "value of a size that the file leaves open, such as batch=4 (repeatable)", size)
    .option("--svg <path>", "draw the graph into an SVG file")
    .addOption(new Option("--backend <name>", "backend to run on").choices(backendNames))
    .action(async (file: string, flags: OnnxFlags) => {
      const { runOnnx } = await import("../onnx/command.ts");
      process.exitCode = await runOnnx(file, flags);
    });
}
