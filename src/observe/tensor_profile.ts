import { tmpdir } from "node:os";
import { join } from "node:path";
import { appended, writeWhole } from "./debug_file.ts";
import type { Allocation, Recorder } from "./observer.ts";

/**
 * `ORCHARD_TENSOR_PROFILE=1`: appends a line per allocation to `orchard_tensor_profile.log` in the temporary folder,
 * which all processes share.
 *
 * @example
 * pid=4711 ms=12.345 bytes=1048576 storage=shared live=2097152 peak=3145728 label=matmul
 */
export class TensorProfile implements Recorder {
  private readonly file = appended(join(tmpdir(), "orchard_tensor_profile.log"));

  allocated({ byteLength, storage, label, usage }: Allocation): void {
    const { liveBytes = "-", peakBytes = "-" } = usage ?? {};
    const time = performance.now().toFixed(3);
    const memory = `bytes=${byteLength} storage=${storage} live=${liveBytes} peak=${peakBytes}`;
    const line = `pid=${process.pid} ms=${time} ${memory} label=${label.replace(/\s+/g, " ")}\n`;
    this.file.use((descriptor) => writeWhole(descriptor, line));
  }
}
