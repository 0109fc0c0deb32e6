/** Describes the machine in a report. */
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import packageFile from "../../package.json" with { type: "json" };
import type { DeviceInfo } from "../../src/backend/metal/context.ts";
import { run, tail } from "../../src/cli/run.ts";
import { packageRoot } from "../../src/core/paths.ts";
import { Failure } from "../failure.ts";

export interface Machine {
  readonly device: DeviceInfo;
  /** Language versions that the system's compiler supports. */
  readonly versions: readonly string[];
  /** Lines of the report: name and value. */
  readonly facts: readonly (readonly [string, string])[];
}

/** @throws {Failure} if there is no Metal device */
export async function describeMachine(environment: Readonly<Record<string, string>>): Promise<Machine> {
  const child = join(packageRoot, "scripts", "verify", "child.ts");
  const { output, status } = await run([process.execPath, child, "--machine"], { environment: { ...environment } });
  if (status !== 0) throw new Failure(`There is no Metal device to verify:\n${tail(output)}`);
  const { device, versions } = JSON.parse(output.trimEnd().split("\n").at(-1)!) as Pick<Machine, "device" | "versions">;
  const model = cpus()[0]?.model.trim() ?? "unknown";
  const facts = [
    ["Orchard", `${packageFile.version}, ${await firstLine("git", "describe", "--always", "--dirty")}`],
    ["machine", `${await hardware()}${model}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB`],
    ["system", await system()],
    ...(await tools()),
    ["GPU", `${device.name}, ${device.families.join(", ") || "of no family"}`],
    ["Metal", versions.join(", ") || "no version"],
    [
      "GPU can",
      Object.entries(device.capabilities ?? {})
        .flatMap(([what, capability]) => (capability.supported ? [what] : []))
        .join(", "),
    ],
    ["environment", variables(environment)],
  ] as const;
  return { device, versions, facts };
}

const isMac = process.platform === "darwin";

/** Returns the model of the machine, such as `Mac14,2: `. */
const hardware = async (): Promise<string> => (isMac ? `${await firstLine("sysctl", "-n", "hw.model")}: ` : "");

async function system(): Promise<string> {
  if (!isMac) return `${process.platform} ${release()}, ${process.arch}`;
  return `macOS ${await firstLine("sw_vers", "-productVersion")} (${await firstLine("sw_vers", "-buildVersion")})`;
}

async function tools(): Promise<[string, string][]> {
  if (!isMac) return [];
  const xcode = await lines("xcodebuild", "-version");
  const sdk = await firstLine("xcrun", "--show-sdk-version");
  return [
    ["Xcode", `${xcode.join(", ") || "none"}; SDK ${sdk}`],
    ["Metal compiler", await firstLine("xcrun", "metal", "--version")],
  ];
}

/** Returns the set variables of Metal and of Orchard. */
function variables(environment: Readonly<Record<string, string>>): string {
  const set = Object.entries({ ...process.env, ...environment }).filter(([name]) =>
    /^(METAL_|MTL_|ORCHARD_)/.test(name),
  );
  return set.map(([name, value]) => `${name}=${value}`).join(" ") || "nothing";
}

const firstLine = async (...command: string[]): Promise<string> => (await lines(...command))[0] ?? "unknown";

async function lines(...command: string[]): Promise<string[]> {
  if (Bun.which(command[0]) === null) return [];
  const { output, status } = await run(command, { cwd: packageRoot });
  return status === 0 ? output.trim().split("\n") : [];
}
