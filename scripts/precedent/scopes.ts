/** The names of a program, by the braces in which they are declared. */
import type { Type } from "./types.ts";

export type Entry =
  | { readonly kind: "variable"; readonly type: Type | undefined }
  | { readonly kind: "type"; readonly type: Type | undefined };

/** An overload of a project's function; undefined for an unknown type. */
export interface Signature {
  readonly result: Type | undefined;
  readonly parameters: readonly (Type | undefined)[];
}

interface Scope {
  readonly names: Map<string, Entry>;
  /** The struct to which the braces belong; undefined for other braces. */
  readonly struct: string | undefined;
}

export class Scopes {
  readonly functions = new Map<string, Signature[]>();
  readonly members = new Map<string, Map<string, Type | undefined>>();
  /** Every declared name. */
  readonly declared = new Set<string>();
  readonly #stack: Scope[] = [{ names: new Map(), struct: undefined }];
  /** Parameters, which belong to the following braces. */
  #pending = new Map<string, Entry>();

  declare(name: string, entry: Entry, isPending: boolean): void {
    this.declared.add(name);
    (isPending ? this.#pending : this.#stack.at(-1)!.names).set(name, entry);
  }

  addFunction(name: string, signature: Signature): void {
    this.declared.add(name);
    const known = this.functions.get(name);
    if (known) known.push(signature);
    else this.functions.set(name, [signature]);
  }

  open(struct: string | undefined): void {
    this.#stack.push({ names: this.#pending, struct });
    this.#pending = new Map();
  }

  close(): void {
    if (this.#stack.length === 1) return;
    const { names, struct } = this.#stack.pop()!;
    if (struct === undefined) return;
    const members = this.members.get(struct) ?? new Map<string, Type | undefined>();
    for (const [name, entry] of names) if (entry.kind === "variable") members.set(name, entry.type);
    this.members.set(struct, members);
  }

  /** A declaration without braces has ended: drops its parameters. */
  forgetPending(): void {
    if (this.#pending.size > 0) this.#pending = new Map();
  }

  find(name: string): Entry | undefined {
    const pending = this.#pending.get(name);
    if (pending) return pending;
    for (let at = this.#stack.length - 1; at >= 0; at--) {
      const entry = this.#stack[at].names.get(name);
      if (entry) return entry;
    }
    return undefined;
  }

  get depth(): number {
    return this.#stack.length;
  }

  get isInStruct(): boolean {
    return this.#stack.at(-1)!.struct !== undefined;
  }
}
