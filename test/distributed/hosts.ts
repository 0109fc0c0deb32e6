/** Two machines for tests: network namespaces (Linux), each with an address and a host name, and a cable between. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { program } from "./installations.ts";
import { type Command, type Installation, localCommand } from "./launch.ts";

const ip = (...words: string[]): string | undefined => {
  const { exitCode, stderr } = Bun.spawnSync(["ip", ...words], { stdout: "ignore", stderr: "pipe" });
  return exitCode === 0 ? undefined : `ip ${words.join(" ")}: ${stderr.toString().trim()}`;
};

/** A machine. */
export interface Host {
  readonly namespace: string;
  readonly link: string;
  readonly address: string;
}

export class Hosts implements Disposable {
  /** Why the two hosts can't be created; undefined if they exist. */
  readonly missing: string | undefined;
  readonly first: Host;
  readonly second: Host;
  private readonly agent: string;

  /** @param folder for the script that starts commands there, instead of `ssh` */
  constructor(folder: string) {
    const names = ["a", "b"].map((letter) => `orchard-${process.pid}-${letter}`);
    const [first, second] = names.map((namespace, at) => ({
      namespace,
      link: `orchard${process.pid}${at}`.slice(-15),
      address: `10.77.0.${at + 1}`,
    }));
    [this.first, this.second] = [first, second];
    this.agent = join(folder, "agent.sh");
    this.missing = this.make();
  }

  private make(): string | undefined {
    if (process.platform !== "linux") return "two hosts: network namespaces are Linux's";
    const { missing } = program(["ip"], "iproute2");
    if (missing !== undefined) return `two hosts: ${missing}`;
    writeFileSync(this.agent, this.agentScript(), { mode: 0o755 });
    const { first: a, second: b } = this;
    const steps = [
      ...[a, b].map(({ namespace }) => ["netns", "add", namespace]),
      ["link", "add", a.link, "netns", a.namespace, "type", "veth", "peer", "name", b.link, "netns", b.namespace],
      ...[a, b].flatMap(({ namespace, link, address }) => [
        ["-n", namespace, "addr", "add", `${address}/24`, "dev", link],
        ["-n", namespace, "link", "set", link, "up"],
        ["-n", namespace, "link", "set", "lo", "up"],
      ]),
    ];
    for (const step of steps) {
      const problem = ip(...step);
      if (problem !== undefined) return `two hosts: this machine does not allow them: ${problem}`;
    }
    return undefined;
  }

  /** `agent.sh [options] ADDRESS COMMAND…`, as launchers call `ssh`. A host name requires a separate namespace. */
  private agentScript(): string {
    const lines = [this.first, this.second].map(({ address, namespace }) => `${address}) host=${namespace} ;;`);
    return `#!/bin/sh
while :; do case $1 in -*) shift ;; *) break ;; esac; done
case $1 in ${lines.join(" ")} esac
shift
exec ip netns exec "$host" unshare --uts sh -c 'hostname "$0"; exec sh -c "$1"' "$host" "$*"
`;
  }

  /** Runs a command as two ranks, one on each host, which MPI connects over TCP. */
  command(installation: Installation, words: readonly string[]): Command {
    const { agent, first, second } = this;
    const addresses = `${first.address}:1,${second.address}:1`;
    const options =
      installation.family === "Open MPI"
        ? ["--mca", "plm_rsh_agent", agent, "-host", addresses]
        : ["-launcher", "rsh", "-launcher-exec", agent, "-hosts", addresses, "-iface", first.link];
    const command = localCommand(installation, 2, words, options);
    const script = 'hostname "$0"; exec "$@"';
    const at = ["ip", "netns", "exec", first.namespace, "unshare", "--uts", "sh", "-c", script, first.namespace];
    const environment = {
      ...command.environment,
      FI_PROVIDER: "tcp",
      UCX_TLS: "tcp,self", // libfabric and UCX see one machine, and would share memory
      OMPI_MCA_oob_tcp_keepalive_time: "2",
      OMPI_MCA_oob_tcp_keepalive_intvl: "1",
      OMPI_MCA_oob_tcp_keepalive_probes: "2",
    };
    return { words: [...at, ...command.words], environment };
  }

  /** Disconnects the cable. */
  cut(): void {
    ip("-n", this.second.namespace, "link", "set", this.second.link, "down");
  }

  /** Reconnects the second host. */
  mend(): void {
    ip("-n", this.second.namespace, "link", "set", this.second.link, "up");
  }

  /** The processes of a host. */
  pids({ namespace }: Host): number[] {
    const { stdout } = Bun.spawnSync(["ip", "netns", "pids", namespace]);
    return stdout.toString().split("\n").filter(Boolean).map(Number);
  }

  /** Simulates a power failure of the host: its processes send nothing more. */
  fail(host: Host): void {
    for (const pid of this.pids(host)) kill(pid);
  }

  [Symbol.dispose](): void {
    for (const host of [this.first, this.second]) {
      if (this.missing === undefined) this.fail(host);
      ip("netns", "del", host.namespace);
    }
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // the process has already ended
  }
}
