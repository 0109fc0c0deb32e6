/** Exchanges which GPU each rank uses, and chooses NCCL if no two ranks share a GPU. */
import { DeviceBuffer } from "../backend/metal/buffer.ts";
import { environment } from "../core/environment.ts";
import { Cuda } from "./cuda.ts";
import { DistributedError } from "./errors.ts";
import { ID_BYTES, Nccl, NcclLibrary } from "./nccl.ts";

/** The information about its GPU that a rank sends to the others. */
interface Offer {
  /** The GPU's UUID; empty without a GPU. */
  readonly gpu: string;
  /** Whether the user chose the GPU by number, and so agrees to share it. */
  readonly isNamed: boolean;
  /** The number of GPUs that the rank sees. */
  readonly count: number;
  /** `NCCL 2.28.9`, or why there is none. */
  readonly nccl: string;
  readonly hasNccl: boolean;
}

/** How ranks find each other before NCCL connects them. */
export interface Meeting {
  readonly rank: number;
  readonly size: number;
  /** Returns the text of each rank, of at most 256 bytes. */
  readonly exchangeTexts: (text: string) => string[];
  /** Returns rank 0's bytes. */
  readonly broadcast: (bytes: Uint8Array<ArrayBuffer>) => void;
}

/** The agreement: NCCL, or why it isn't used. */
export interface Agreement {
  readonly nccl: Nccl | undefined;
  readonly reason: string;
}

/** The variable's value that turns NCCL off. */
const OFF = "none";

const NONE: Offer = {
  gpu: "",
  isNamed: false,
  count: 0,
  nccl: "the metal backend runs on no NVIDIA GPU",
  hasNccl: false,
};

/**
 * Compares the GPUs of all ranks, and joins them by NCCL if it can.
 *
 * @throws {DistributedError} `gpuShared` on every rank if two ranks have the same GPU and neither named it
 */
export function agree({ rank, size, exchangeTexts, broadcast }: Meeting): Agreement {
  const own = openGpu();
  const offers = exchangeTexts(encode(own.offer)).map(decode);
  checkShared(offers);
  const reason = whyNot(offers);
  if (reason !== undefined || own.library === undefined) return { nccl: undefined, reason: reason ?? own.offer.nccl };
  const id = rank === 0 ? own.library.createId() : new Uint8Array(new ArrayBuffer(ID_BYTES));
  broadcast(id);
  return { nccl: new Nccl(own.library, own.cuda!, rank, size, id), reason: "" };
}

interface Own {
  readonly offer: Offer;
  readonly cuda?: Cuda;
  readonly library?: NcclLibrary;
}

/** Opens this rank's GPU and NCCL, unless the metal backend runs on another device. */
function openGpu(): Own {
  const [device, named] = [environment("ORCHARD_METAL_DEVICE") ?? "", environment("ORCHARD_NCCL")];
  const isNamed = device.startsWith("nvidia:");
  if (!device.startsWith("nvidia") && (named === undefined || named === OFF)) return { offer: NONE };
  let offer: Offer = { ...NONE, isNamed };
  try {
    new DeviceBuffer(16).dispose(); // makes the GPU's context current on this thread
    const cuda = new Cuda();
    offer = { ...offer, gpu: cuda.currentGpu(), count: cuda.gpuCount() };
    if (named === OFF) return { offer: { ...offer, nccl: `ORCHARD_NCCL is ${OFF}` } };
    const library = new NcclLibrary();
    return { offer: { ...offer, nccl: library.name, hasNccl: true }, cuda, library };
  } catch (error) {
    return { offer: { ...offer, nccl: error instanceof Error ? error.message : String(error) } };
  }
}

/** @throws {DistributedError} `gpuShared` */
function checkShared(offers: readonly Offer[]): void {
  const byGpu = Map.groupBy(offers.keys(), (rank) => offers[rank].gpu);
  for (const [gpu, ranks] of byGpu) {
    if (gpu === "" || ranks.length === 1 || ranks.every((rank) => offers[rank].isNamed)) continue;
    const { count } = offers[ranks[0]];
    const text =
      `ranks ${ranks.join(" and ")} use the same GPU (${gpu}), and their machine has ${count}: start at most one ` +
      "rank per GPU, or set ORCHARD_METAL_DEVICE=nvidia:0 to share the first one";
    throw new DistributedError("distributed.init", "gpuShared", text, ranks);
  }
}

/** Why NCCL can't connect the ranks; undefined if it can. */
function whyNot(offers: readonly Offer[]): string | undefined {
  const [{ nccl: first } = NONE] = offers;
  for (const [rank, { gpu, hasNccl, nccl }] of offers.entries()) {
    if (!hasNccl) return `rank ${rank}: ${nccl}`;
    if (nccl !== first) return `rank 0 has ${first}, and rank ${rank} has ${nccl}`;
    const twin = offers.findIndex((other) => other.gpu === gpu);
    if (twin < rank) return `ranks ${twin} and ${rank} share a GPU`;
  }
  return undefined;
}

const encode = ({ gpu, isNamed, count, hasNccl, nccl }: Offer): string =>
  [gpu, Number(isNamed), count, Number(hasNccl), nccl.slice(0, 160)].join("\n");

function decode(text: string): Offer {
  const [gpu = "", isNamed, count, hasNccl, ...nccl] = text.split("\n");
  return { gpu, isNamed: isNamed === "1", count: Number(count), hasNccl: hasNccl === "1", nccl: nccl.join(" ") };
}
