/** Tests the device and the system's tools. */
import { metalContext } from "../../../src/backend/metal/context.ts";
import { NotChecked, type Probe, Refuted } from "../probe.ts";

const defaultDevice: Probe = () => {
  const { name } = metalContext().deviceInfo();
  return `a process without windows has the device "${name}"${process.env["SSH_CONNECTION"] ? ", over ssh" : ""}`;
};

const isMac = process.platform === "darwin";

/** This runs only after a successful build, so it only tests whether Xcode is installed. */
const commandLineTools: Probe = () => {
  if (!isMac) throw new NotChecked("Apple's command-line tools are not installed");
  const { stdout } = Bun.spawnSync(["xcode-select", "--print-path"]);
  const path = stdout.toString().trim();
  if (!path.endsWith("CommandLineTools")) throw new NotChecked(`Xcode is selected: ${path}`);
  return "the package was built with the command-line tools alone";
};

const hostedRunner: Probe = () => {
  const { name, families, capabilities } = metalContext().deviceInfo({ probe: true });
  if (!/paravirtual/i.test(name)) throw new NotChecked(`"${name}" is not a paravirtual device`);
  if (families.some((family) => family === "metal3")) throw new Refuted(`"${name}" is of the family metal3`);
  const lacking = Object.entries(capabilities ?? {}).filter(([, { supported }]) => !supported);
  return `"${name}" of ${families.join(", ")} lacks ${lacking.map(([what]) => what).join(", ") || "nothing"}`;
};

const tensorOperations: Probe = () => {
  const { supported, reason } = metalContext().deviceInfo({ probe: true }).capabilities!.tensorOps;
  if (!supported) throw new NotChecked(`the probe was rejected: ${reason}`);
  return "the probe compiles and runs";
};

export const systemProbes = {
  "default-device": defaultDevice,
  "command-line-tools": commandLineTools,
  "hosted-runner": hostedRunner,
  "tensor-operations": tensorOperations,
} satisfies Readonly<Record<string, Probe>>;
