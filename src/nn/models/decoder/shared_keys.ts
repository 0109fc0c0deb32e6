/** Keys and values that several layers of a {@link Decoder} share in one call. */
import { isGradEnabled } from "../../../autograd/modes.ts";
import { keep } from "../../../tensor/tidy.ts";
import type { KeysAndValues } from "../../cache/store.ts";

/** Maps a name to the keys and values of the batch, or of each row if each row has a separate cache. */
export class SharedKeys implements Disposable {
  private readonly held = new Map<string, KeysAndValues[]>();

  /** Removes the keys and values of an earlier call. */
  start(name: string): void {
    this.held.set(name, []);
  }

  add(name: string, { keys, values }: KeysAndValues): void {
    this.held.get(name)!.push({ keys: keep(keys), values: keep(values) });
  }

  /** Returns the stored keys and values. */
  of(name: string): readonly KeysAndValues[] {
    return this.held.get(name) ?? [];
  }

  /** Frees keys and values that no gradient needs. */
  [Symbol.dispose](): void {
    if (!isGradEnabled())
      for (const { keys, values } of [...this.held.values()].flat()) {
        keys.dispose();
        values.dispose();
      }
    this.held.clear();
  }
}
